package training_test

import (
	"fmt"
	"math"
	"testing"

	"leat/internal/predict/training"
)

// The tables of nvme-weight-streaming.md ("the seed"), by its own rule of one transfer for
// three computes. Where its number is not what its rule gives, why says what is wrong, and the
// test demands that it still is: so nobody takes the figure for ours.

const (
	llamaNF4, llamaNF3               = 470e6, 342e6 // bytes of a layer
	glmMixed, glmNF4, glmNF2         = 1237e6, 2250e6, 1150e6
	llamaParams, glmParams           = 1.05e9, 514e6
	t4090, t5090, t5090fp4           = 160e12, 210e12, 567e12
	tA100, tH100                     = 156e12, 330e12 // the A100's is its TF32 peak; BF16 is 312
	gen3, gen4, gen5, raid49         = 3.5e9, 7e9, 12e9, 49e9
	pcie4, pcie5                     = 11e9, 22e9 // the seed's; x16 reaches 25 and 50 (design §10)
	kilo                     float64 = 1024
)

func seed(layer, params, flops, resident, layers, bw float64) *training.Layer {
	return &training.Layer{Bytes: layer, ActiveParams: params, FlopsPerSec: flops, BytesPerSec: bw, StreamedShare: (layers - resident) / layers, OneTransfer: true}
}

func llama(bytes, flops, resident, bw float64) *training.Layer {
	return seed(bytes, llamaParams, flops, resident, 80, bw)
}
func glm(bytes, flops, resident, bw float64) *training.Layer {
	return seed(bytes, glmParams, flops, resident, 92, bw)
}

func TestSeedTiming(t *testing.T) {
	for _, c := range []struct {
		name              string
		got, want, within float64
	}{
		{"compute a token, RTX 4090", glm(glmMixed, t4090, 0, gen4).ComputeSeconds(1), 0.0193e-3, 0.01},
		{"compute a token, RTX 5090 BF16", glm(glmMixed, t5090, 0, gen4).ComputeSeconds(1), 0.0147e-3, 0.01},
		{"compute a token, RTX 5090 NVFP4", glm(glmMixed, t5090fp4, 0, gen4).ComputeSeconds(1), 0.0054e-3, 0.01},
		{"compute a token, A100", glm(glmMixed, tA100, 0, gen4).ComputeSeconds(1), 0.0198e-3, 0.01},
		{"compute a token, H100", glm(glmMixed, tH100, 0, gen4).ComputeSeconds(1), 0.0094e-3, 0.01},
		{"bytes/FLOP, Llama NF4", llama(llamaNF4, t4090, 0, 1).BytesPerFlop(), 0.075, 0.01},
		{"bytes/FLOP, Llama NF3", llama(llamaNF3, t4090, 0, 1).BytesPerFlop(), 0.054, 0.01},
		{"bytes/FLOP, GLM NF4", glm(glmNF4, t4090, 0, 1).BytesPerFlop(), 0.730, 0.01},
		{"bytes/FLOP, GLM mixed", glm(glmMixed, t4090, 0, 1).BytesPerFlop(), 0.401, 0.01},
		{"bytes/FLOP, GLM NF2", glm(glmNF2, t4090, 0, 1).BytesPerFlop(), 0.373, 0.01},
		// The seed divides 1.21 GB, which is 1237 MB of 2^20 bytes in units of 2^30.
		{"transfer, 3.5 GB/s", glm(glmMixed, t4090, 0, 3.5e9).TransferSeconds(), 345e-3, 0.03},
		{"transfer, 7 GB/s", glm(glmMixed, t4090, 0, 7e9).TransferSeconds(), 173e-3, 0.03},
		{"transfer, 11 GB/s", glm(glmMixed, t4090, 0, 11e9).TransferSeconds(), 112e-3, 0.03},
		{"transfer, 12 GB/s", glm(glmMixed, t4090, 0, 12e9).TransferSeconds(), 103e-3, 0.03},
		{"transfer, 22 GB/s", glm(glmMixed, t4090, 0, 22e9).TransferSeconds(), 56e-3, 0.03},
		{"transfer, 49 GB/s", glm(glmMixed, t4090, 0, 49e9).TransferSeconds(), 25e-3, 0.03},
		{"compute at 1K, Llama", llama(llamaNF4, t4090, 0, gen4).ComputeSeconds(kilo), 40e-3, 0.03},
		{"compute at 1K, GLM", glm(glmMixed, t4090, 0, gen4).ComputeSeconds(kilo), 20e-3, 0.03},
	} {
		near(t, c.name, c.got, c.want, c.within)
	}
	near(t, "compute at 8K, NVFP4", glm(glmMixed, t5090fp4, 0, gen5).ComputeSeconds(8*kilo), 44.6e-3, 0.01)
	// "Why NVFP4 raises thresholds" says 8.1 ms for that, and 21.8 ms for BF16: neither is its
	// own 0.0054 and 0.0147 ms a token times 8192 (44.6 and 120 ms).
}

// "If fraction f is streamed": the residency table.
func TestSeedResidency(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {25, 0.75}, {50, 0.5}, {67, 0.33}, {79, 0.21}} {
		x := seed(1, 1, 1, c[0], 100, 1)
		near(t, fmt.Sprintf("%g %% resident", c[0]), x.HiddenFrom()*x.ComputeSeconds(1), c[1], 1e-9)
	}
}

// "0% @": from how many tokens streaming is free. The seed gives powers of two, and calls up
// to 5 % of overhead none.
func TestSeedThresholds(t *testing.T) {
	const cap11 = "its own cap of 11 GB/s is left out: a RAID behind the link is no faster (it says so itself under RAID convergence)"
	const coarse = "its table begins at 1K"
	for _, c := range []struct {
		name string
		t    *training.Layer
		want float64
		why  string
	}{
		{"Llama NF4, 4090, Gen3", llama(llamaNF4, t4090, 41, gen3), 2048, ""},
		{"Llama NF4, 4090, Gen4", llama(llamaNF4, t4090, 41, gen4), 1024, ""},
		{"Llama NF4, 4090, Gen5", llama(llamaNF4, t4090, 41, pcie4), 512, ""},
		{"Llama NF3, 4090, Gen3", llama(llamaNF3, t4090, 57, gen3), 1024, ""},
		{"Llama NF3, 4090, Gen4", llama(llamaNF3, t4090, 57, gen4), 512, ""},
		{"Llama NF3, 4090, Gen5", llama(llamaNF3, t4090, 57, pcie4), 256, ""},
		{"Llama NF4, 5090, Gen3", llama(llamaNF4, t5090, 58, gen3), 2048, ""},
		{"Llama NF4, 5090, Gen4", llama(llamaNF4, t5090, 58, gen4), 1024, ""},
		{"Llama NF4, 5090, Gen5", llama(llamaNF4, t5090, 58, gen5), 512, ""},
		{"Llama NF4, 5090 NVFP4, Gen3", llama(llamaNF4, t5090fp4, 58, gen3), 4096, ""},
		{"Llama NF4, 5090 NVFP4, Gen4", llama(llamaNF4, t5090fp4, 58, gen4), 2048, ""},
		{"Llama NF4, 5090 NVFP4, Gen5", llama(llamaNF4, t5090fp4, 58, gen5), 1024, ""},

		{"GLM, 4090, Gen3", glm(glmMixed, t4090, 14, gen3), 16 * kilo, ""},
		{"GLM, 4090, Gen4", glm(glmMixed, t4090, 14, gen4), 8 * kilo, ""},
		{"GLM, 4090, Gen5", glm(glmMixed, t4090, 14, pcie4), 8 * kilo, ""},
		{"GLM, 4090, 2×Gen5", glm(glmMixed, t4090, 14, pcie4), 4 * kilo, cap11},
		{"GLM, 5090, Gen4", glm(glmMixed, t5090, 20, gen4), 16 * kilo, ""},
		{"GLM, 5090, Gen5", glm(glmMixed, t5090, 20, gen5), 8 * kilo, ""},
		{"GLM, 5090, 2×Gen5", glm(glmMixed, t5090, 20, pcie5), 4 * kilo, ""},
		{"GLM, 5090 NVFP4, Gen4", glm(glmMixed, t5090fp4, 20, gen4), 32 * kilo, ""},
		{"GLM, 5090 NVFP4, Gen5", glm(glmMixed, t5090fp4, 20, gen5), 16 * kilo, ""},
		{"GLM, 5090 NVFP4, 2×Gen5", glm(glmMixed, t5090fp4, 20, pcie5), 8 * kilo, ""},

		{"GLM, PRO 6000, Gen5 GDS", glm(glmMixed, t5090, 73, gen5), 2 * kilo, ""},
		{"GLM, PRO 6000, RAID GDS", glm(glmMixed, t5090, 73, raid49), 1 * kilo, coarse},
		{"GLM, PRO 6000, pinned", glm(glmMixed, t5090, 73, pcie5), 1 * kilo, ""},
		{"GLM, PRO 6000 NVFP4, Gen5 GDS", glm(glmMixed, t5090fp4, 73, gen5), 4 * kilo, ""},
		{"GLM, PRO 6000 NVFP4, RAID GDS", glm(glmMixed, t5090fp4, 73, raid49), 2 * kilo, "958 tokens by its own rule"},
		{"GLM, PRO 6000 NVFP4, pinned", glm(glmMixed, t5090fp4, 73, pcie5), 2 * kilo, ""},
		{"GLM, A100, Gen5 GDS", glm(glmMixed, tA100, 60, gen5), 2 * kilo, ""},
		{"GLM, A100, RAID GDS", glm(glmMixed, tA100, 60, 24e9), 1 * kilo, ""},
		{"GLM, A100, pinned", glm(glmMixed, tA100, 60, pcie5), 1 * kilo, ""},
		{"GLM, H100, Gen5 GDS", glm(glmMixed, tH100, 60, gen5), 4 * kilo, ""},
		{"GLM, H100, RAID GDS", glm(glmMixed, tH100, 60, 24e9), 2 * kilo, ""},
		{"GLM, H100, pinned", glm(glmMixed, tH100, 60, pcie5), 2 * kilo, ""},

		{"GLM NF4, 4090, Gen3", glm(glmNF4, t4090, 6, gen3), 32 * kilo, ""},
		{"GLM NF4, 4090, Gen4", glm(glmNF4, t4090, 6, gen4), 16 * kilo, ""},
		{"GLM NF4, 4090, Gen5", glm(glmNF4, t4090, 6, pcie4), 16 * kilo, ""},
		{"GLM NF4, 4090, 2×Gen5", glm(glmNF4, t4090, 6, pcie4), 8 * kilo, cap11},
		{"GLM NF4, 5090, Gen3", glm(glmNF4, t5090, 9, gen3), 32 * kilo, "39.5K by its own rule"},
		{"GLM NF4, 5090, Gen4", glm(glmNF4, t5090, 9, gen4), 16 * kilo, "19.7K by its own rule"},
		{"GLM NF4, 5090, Gen5", glm(glmNF4, t5090, 9, gen5), 16 * kilo, ""},
		{"GLM NF4, 5090, 2×Gen5", glm(glmNF4, t5090, 9, pcie5), 8 * kilo, ""},
		{"GLM NF4, 5090 NVFP4, Gen5", glm(glmNF4, t5090fp4, 9, gen5), 32 * kilo, ""},
		{"GLM NF4, 5090 NVFP4, 2×Gen5", glm(glmNF4, t5090fp4, 9, pcie5), 16 * kilo, ""},

		// Pipeline: layers of one GPU, each with drives of its own.
		{"GLM, 2 × 4090", seed(glmMixed, glmParams, t4090, 15, 46, gen4), 8 * kilo, ""},
		{"GLM, 4 × 4090", seed(glmMixed, glmParams, t4090, 15, 23, gen4), 4 * kilo, ""},
		{"GLM, 2 × 5090", seed(glmMixed, glmParams, t5090, 21, 46, gen4), 8 * kilo, ""},
		{"GLM, 2 × 5090 NVFP4", seed(glmMixed, glmParams, t5090fp4, 21, 46, gen4), 16 * kilo, "17.6K by its own rule, 8 % more"},
	} {
		n := c.t.HiddenFrom()
		agrees := n <= 1.05*c.want && n > c.want/2
		if agrees != (c.why == "") {
			t.Errorf("%s: by its rule %.0f tokens, the seed says %.0f, which we say is so: %q", c.name, n, c.want, c.why)
		}
		if o := c.t.Overhead(c.want); agrees && o > 0.05 {
			t.Errorf("%s: %.0f %% overhead at %.0f tokens", c.name, 100*o, c.want)
		}
		// What we say of the same: the forward half has one compute to hide a transfer behind.
		ours := *c.t
		ours.OneTransfer = false
		near(t, c.name+", two transfers", ours.HiddenFrom(), 3*n, 1e-9)
	}
}

// The crossover matrices: overhead in percent by tokens (1K and doubling, unless first says
// otherwise). 0 is "0%", -1 is "more than ten times".
func TestSeedCrossover(t *testing.T) {
	const eleven = "computed at 11.7 GB/s, not at the 11 it names"
	const own = "not what its rule gives"
	for _, c := range []struct {
		name  string
		t     *training.Layer
		first float64
		want  []float64
		why   map[float64]string // by tokens
	}{
		{"4090, Gen3", glm(glmMixed, t4090, 14, gen3), 1024, []float64{-1, 641, 271, 85, 0}, nil},
		{"4090, Gen4", glm(glmMixed, t4090, 14, gen4), 1024, []float64{641, 271, 85, 0, 0}, nil},
		{"4090, 11 GB/s", glm(glmMixed, t4090, 14, pcie4), 1024, []float64{354, 127, 14, 0, 0}, map[float64]string{1024: eleven, 2048: eleven, 4096: eleven}},
		{"5090, Gen4", glm(glmMixed, t5090, 20, gen4), 1024, []float64{800, 350, 125, 13, 0}, nil},
		{"5090, Gen5", glm(glmMixed, t5090, 20, gen5), 1024, []float64{435, 168, 34, 0, 0}, nil},
		{"5090, 22 GB/s", glm(glmMixed, t5090, 20, pcie5), 1024, []float64{194, 47, 0, 0, 0}, nil},
		{"5090 NVFP4, Gen5", glm(glmMixed, t5090fp4, 20, gen5), 4096, []float64{260, 80, 0, 0}, nil},
		{"5090 NVFP4, 22 GB/s", glm(glmMixed, t5090fp4, 20, pcie5), 4096, []float64{100, 0, 0, 0}, nil},
		{"PRO 6000, Gen5", glm(glmMixed, t5090, 73, gen5), 1024, []float64{5, 0, 0, 0}, map[float64]string{1024: own}},
		{"PRO 6000, 49 GB/s", glm(glmMixed, t5090, 73, raid49), 1024, []float64{0, 0, 0, 0}, nil},
		{"PRO 6000 NVFP4, Gen5", glm(glmMixed, t5090fp4, 73, gen5), 1024, []float64{180, 40, 0, 0}, map[float64]string{1024: own, 2048: own}},
		{"PRO 6000 NVFP4, 49 GB/s", glm(glmMixed, t5090fp4, 73, raid49), 1024, []float64{20, 0, 0, 0}, map[float64]string{1024: own}},
		{"A100, Gen4", glm(glmMixed, tA100, 60, gen4), 512, []float64{493, 197, 48, 0, 0}, nil},
		{"A100, Gen5", glm(glmMixed, tA100, 60, gen5), 512, []float64{246, 73, 0, 0, 0}, nil},
		{"A100, 24 GB/s", glm(glmMixed, tA100, 60, 24e9), 512, []float64{73, 0, 0, 0, 0}, nil},
		{"A100, pinned", glm(glmMixed, tA100, 60, pcie5), 512, []float64{73, 0, 0, 0, 0}, map[float64]string{512: "its row for 24 GB/s, though it says 22"}},
	} {
		for i, want := range c.want {
			tokens := c.first * math.Exp2(float64(i))
			got := 100 * c.t.Overhead(tokens)
			agrees := math.Abs(got-want) <= 0.035*(100+want)
			if want == -1 {
				agrees = got > 900
			}
			if agrees != (c.why[tokens] == "") {
				t.Errorf("%s at %.0f tokens: by its rule +%.0f %%, the seed says +%.0f %%, which we say is so: %q", c.name, tokens, got, want, c.why[tokens])
			}
		}
	}
}

// The seed's own measurement (RTX 4090 behind PCIe 3, Llama NF4, nothing resident) shows what
// its model leaves out: compute is 12.6 ms at 1K tokens, where its comparison table has 40 for
// the same. The measured pass is one compute for one transfer, a forward pass: our model.
func TestSeedMeasured(t *testing.T) {
	x := llama(llamaNF4, t4090, 0, 11e9)
	for _, c := range []struct{ tokens, compute, overhead float64 }{{512, 6.4e-3, 536}, {1024, 12.6e-3, 224}, {2048, 24.5e-3, 67}, {4096, 50e-3, 0}, {8192, 100e-3, 0}} {
		near(t, fmt.Sprintf("forward at %.0f tokens", c.tokens), x.ForwardSeconds(c.tokens), c.compute, 0.10)
		forward := 100 * (max(x.ForwardSeconds(c.tokens), x.TransferSeconds())/x.ForwardSeconds(c.tokens) - 1)
		if math.Abs(forward-c.overhead) > 0.07*(100+c.overhead) {
			t.Errorf("%.0f tokens: a forward pass has %.0f %% overhead, measured were %.0f %%", c.tokens, forward, c.overhead)
		}
		if byRule := x.ComputeSeconds(c.tokens); byRule < 2.5*c.compute {
			t.Errorf("%.0f tokens: the seed's compute %.1f ms agrees with what it measured, %.1f ms", c.tokens, 1e3*byRule, 1e3*c.compute)
		}
	}
	near(t, "transfer", x.TransferSeconds(), 43e-3, 0.03)
	ours := *x
	ours.OneTransfer = false
	near(t, "free from, ours", ours.HiddenFrom(), 3256, 0.01) // measured: below 1 % at 4096, 67 % at 2048
	if ours.HiddenFrom() < 2048 || ours.HiddenFrom() > 4096 || x.HiddenFrom() > 2048 {
		t.Errorf("free from %.0f tokens by ours, %.0f by the seed's; measured between 2048 and 4096", ours.HiddenFrom(), x.HiddenFrom())
	}
}

// Between the halves of a step nothing is hidden: a step is never faster than either rule's
// busiest lane, and streaming everything costs at most two transfers.
func TestTrainingProperties(t *testing.T) {
	for _, f := range []float64{0, 0.2, 0.5, 1} {
		for tokens := 64.0; tokens < 1e5; tokens *= 1.5 {
			x := training.Layer{Bytes: llamaNF4, ActiveParams: llamaParams, FlopsPerSec: t4090, BytesPerSec: gen4, StreamedShare: f}
			y := x
			y.OneTransfer = true
			if x.StepSeconds(tokens) < y.StepSeconds(tokens)*(1-1e-9) || x.Overhead(tokens) < -1e-9 {
				t.Errorf("f %.1f, %.0f tokens: two transfers take %.4f s, one %.4f", f, tokens, x.StepSeconds(tokens), y.StepSeconds(tokens))
			}
			if free := x.Overhead(tokens) < 1e-9; free != (tokens >= x.HiddenFrom()*(1-1e-9)) {
				t.Errorf("f %.1f, %.0f tokens: free %v, said from %.0f", f, tokens, free, x.HiddenFrom())
			}
		}
	}
}

func TestSeedRAID(t *testing.T) {
	for _, c := range []struct {
		name string
		p    training.WeightPath
		want float64
	}{
		{"4090, 1×Gen4", training.WeightPath{DriveBytesPerSec: gen4, Drives: 1, LinkBytesPerSec: pcie4}, 7e9},
		{"4090, 1×Gen5", training.WeightPath{DriveBytesPerSec: 13e9, Drives: 1, LinkBytesPerSec: pcie4}, 11e9},
		{"4090, 4×Gen5", training.WeightPath{DriveBytesPerSec: 13e9, Drives: 4, LinkBytesPerSec: pcie4}, 11e9},
		{"4090, 2×Gen4", training.WeightPath{DriveBytesPerSec: gen4, Drives: 2, LinkBytesPerSec: pcie4}, 11e9},
		{"5090, 2×Gen5", training.WeightPath{DriveBytesPerSec: 13e9, Drives: 2, LinkBytesPerSec: pcie5}, 22e9},
		{"5090, 3×Gen4", training.WeightPath{DriveBytesPerSec: gen4, Drives: 3, LinkBytesPerSec: pcie5}, 21e9},
		{"PRO 6000, 5×Gen5 GDS", training.WeightPath{DriveBytesPerSec: 9.8e9, Drives: 5, LinkBytesPerSec: pcie5, P2P: true, P2PBytesPerSec: 50e9}, 49e9},
		// "There is no PCIe cap", it says; the device's own lanes are one, as it says later.
		{"PRO 6000, 9×Gen5 GDS", training.WeightPath{DriveBytesPerSec: 9.8e9, Drives: 9, LinkBytesPerSec: pcie5, P2P: true, P2PBytesPerSec: 50e9}, 50e9},
		{"pinned", training.WeightPath{DriveBytesPerSec: gen3, Drives: 1, LinkBytesPerSec: pcie4, Pinned: true}, 11e9},
		{"two devices, one drive", training.WeightPath{DriveBytesPerSec: gen4, Drives: 1, Sharing: 2, LinkBytesPerSec: pcie4}, 3.5e9},
	} {
		near(t, c.name, c.p.BytesPerSec(), c.want, 1e-9)
	}
	if n := (training.WeightPath{DriveBytesPerSec: 13e9, LinkBytesPerSec: pcie5}).DrivesToFill(); n != 2 {
		t.Errorf("%d Gen5 drives fill a 5090's link, want 2", n)
	}
}

// What fits: the seed's budgets, which are rounded, within a layer. 4 GB is what LoRA, its
// optimizer, activations and the driver take (its table: 0.4 + 0.4 + 1.5 + 0.1 + 1.5).
func TestSeedFit(t *testing.T) {
	const reserve = 3.9e9
	for _, c := range []struct {
		name         string
		layers       int
		bytes, vram  float64
		devices      int
		wantResident int
	}{
		{"GLM, 4090", 92, glmMixed, 24e9, 1, 14}, {"GLM, 5090", 92, glmMixed, 32e9, 1, 20},
		{"GLM, PRO 6000", 92, glmMixed, 96e9, 1, 73}, {"GLM, A100", 92, glmMixed, 80e9, 1, 60},
		{"GLM NF4, 4090", 92, glmNF4, 24e9, 1, 6}, {"GLM NF4, 5090", 92, glmNF4, 32e9, 1, 9},
		{"Llama NF4, 4090", 80, llamaNF4, 24e9, 1, 41}, {"Llama NF4, 5090", 80, llamaNF4, 32e9, 1, 58},
		{"Llama NF3, 4090", 80, llamaNF3, 24e9, 1, 57}, {"Llama NF3, 5090", 80, llamaNF3, 32e9, 1, 80},
		{"GLM, 2 × 4090", 92, glmMixed, 24e9, 2, 15}, {"GLM, 2 × 5090", 92, glmMixed, 32e9, 2, 21},
	} {
		f := training.SplitLayers(c.layers, c.bytes, c.vram, reserve, c.devices)
		if d := f.Resident - c.wantResident; d < -1 || d > 1 || f.Resident+f.Streamed != f.Layers {
			t.Errorf("%s: %+v, the seed keeps %d", c.name, f, c.wantResident)
		}
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: found %.4g, wanted %.4g within %.0f %%", what, got, want, 100*within)
	}
}
