package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/internal/predict/training"
)

// trainReport is what leat plan --train prints.
type trainReport struct {
	Model   trainModel   `json:"model"`
	Machine trainMachine `json:"machine"`
	Fit     trainFit     `json:"fit"`
	Paths   []trainPath  `json:"paths"`
	Fill    int          `json:"drives_that_fill_the_link"`
	GPUs    []trainGPUs  `json:"pipeline"` // of several GPUs that read from one drive as given
}

type trainModel struct {
	Name         string  `json:"name"`
	Layers       int     `json:"layers"`
	LayerBytes   int64   `json:"layer_bytes"`   // the mean
	ActiveParams float64 `json:"active_params"` // of a layer
	BytesPerFlop float64 `json:"bytes_per_flop"`
}

type trainMachine struct {
	Name        string  `json:"name"`
	Flops       float64 `json:"flops"`
	FlopsAre    string  `json:"flops_are"`
	VRAMBytes   int64   `json:"vram_bytes"`
	LinkPerSec  float64 `json:"link_bytes_per_second"`
	P2P         bool    `json:"p2p"`
	DrivePerSec float64 `json:"drive_bytes_per_second"`
}

type trainFit struct {
	ReserveBytes   int64   `json:"reserve_bytes"` // adapter, optimizer, activations, driver
	GPUs           int     `json:"gpus"`
	LayersPerGPU   int     `json:"layers_per_gpu"`
	Resident       int     `json:"resident"`
	Streamed       int     `json:"streamed"`
	GPUsForAll     int     `json:"gpus_for_all"`         // 0: a layer doesn't fit
	ForwardMicros  float64 `json:"forward_us_per_token"` // of a layer
	TransferMillis float64 `json:"transfer_ms"`          // of a layer, over the link
}

// trainPath is one way for weights to come: how much longer a step takes, by its tokens.
type trainPath struct {
	Name        string    `json:"name"`
	BytesPerSec float64   `json:"bytes_per_second"`
	FreeFrom    float64   `json:"free_from_tokens"`
	FreeBySeed  float64   `json:"free_from_tokens_one_transfer"` // one transfer for three computes
	Tokens      []int     `json:"tokens"`
	Overhead    []float64 `json:"overhead"`
}

type trainGPUs struct {
	GPUs     int     `json:"gpus"`
	Layers   int     `json:"layers_per_gpu"`
	Resident int     `json:"resident"`
	FreeFrom float64 `json:"free_from_tokens"`
}

// What training takes beside weights and adapter: the driver, one layer's activations.
const trainReserve = 1600 << 20

// trainShare is what training reaches of the matrix units' peak; design and seeds have no
// measurement of ours yet.
const trainShare = 0.5

func (f *planFlags) runTraining(ctx context.Context, a *app, name string, m *pack.Model) error {
	mach, err := f.machine(ctx, a, nil, m)
	if err != nil {
		return err
	}
	r, err := f.training(name, m, mach)
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(r)
	}
	r.print(a.out)
	return nil
}

// layerSums adds up what a model's layers hold. Of experts, a token uses some.
func layerSums(m *pack.Model, rank int) (layers int, bytes int64, active, adapter float64) {
	used, count := 1.0, 1.0
	if n, ok := m.Int(m.Architecture() + ".expert_used_count"); ok && n > 0 {
		used = float64(n)
	}
	if n, ok := m.Int(m.Architecture() + ".expert_count"); ok && n > 0 {
		count = float64(n)
	}
	seen := map[int]bool{}
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind != pack.Layer && u.Kind != pack.Experts {
			continue
		}
		seen[u.Layer] = true
		bytes += u.Bytes
		for _, t := range u.Tensors {
			params := 1.0
			for _, d := range t.Shape {
				params *= float64(d)
			}
			if u.Kind == pack.Experts {
				active += params * used / count
				continue
			}
			active += params
			if len(t.Shape) == 2 && !strings.Contains(t.Name, "gate_inp") { // adapters sit on what every token passes, not on routers
				adapter += float64(rank) * float64(t.Shape[0]+t.Shape[1])
			}
		}
	}
	return len(seen), bytes, active, adapter
}

// adapterBytes are of an adapter's parameter: itself, its gradient and Adam's two, in F32.
const adapterBytes = 16

func (f *planFlags) training(name string, m *pack.Model, mach *machine) (*trainReport, error) {
	layers, bytes, active, adapter := layerSums(m, f.rank)
	if layers == 0 {
		return nil, fmt.Errorf("plan %s: the file holds no layers", m.Path)
	}
	perLayer := float64(bytes) / float64(layers)
	t := training.Layer{Bytes: perLayer, ActiveParams: active / float64(layers)}
	r := &trainReport{
		Model:   trainModel{name, layers, int64(perLayer), t.ActiveParams, t.BytesPerFlop()},
		Machine: trainMachine{Name: mach.Name, VRAMBytes: mach.budget.DeviceBytes, LinkPerSec: mach.speeds.Link.BytesPerSec, DrivePerSec: mach.speeds.Disk.BytesPerSec},
	}
	c := &r.Machine
	c.Flops, c.FlopsAre = mach.speeds.Kernels.FlopsPerSec, "of our kernels, measured in prefill"
	if g := mach.GPU; g != nil {
		c.Flops, c.FlopsAre, c.P2P = trainShare*g.BF16, fmt.Sprintf("half of its BF16 peak of %.0f", g.BF16/1e12), g.P2P
	}
	t.FlopsPerSec = c.Flops
	reserve := func(n int) float64 { return trainReserve + adapter*adapterBytes/float64(n) }
	fit := training.SplitLayers(layers, perLayer, float64(c.VRAMBytes), reserve(f.gpus), f.gpus)
	t.StreamedShare = fit.StreamedShare()
	r.Fit = trainFit{int64(reserve(f.gpus)), f.gpus, fit.Layers, fit.Resident, fit.Streamed, 0, 1e6 * t.ForwardSeconds(1), 1e3 * perLayer / c.LinkPerSec}
	for n := 1; n <= layers && r.Fit.GPUsForAll == 0; n++ {
		if training.SplitLayers(layers, perLayer, float64(c.VRAMBytes), reserve(n), n).Streamed == 0 {
			r.Fit.GPUsForAll = n
		}
	}
	if float64(c.VRAMBytes) < reserve(f.gpus)+2*perLayer && fit.Streamed > 0 {
		return nil, &plan.BudgetError{
			What: "two layers, the adapter and its optimizer", Tier: plan.VRAM, Need: int64(reserve(f.gpus) + 2*perLayer), Have: c.VRAMBytes,
			Remedy: fmt.Sprintf("--vram %dMiB fits, or a smaller --rank", int64(reserve(f.gpus)+2*perLayer)>>20+1),
		}
	}
	r.Paths = f.trainPaths(t, c)
	r.Fill = training.WeightPath{DriveBytesPerSec: c.DrivePerSec, LinkBytesPerSec: c.LinkPerSec}.DrivesToFill()
	for _, n := range []int{1, 2, 4, 8} {
		x := t
		fit := training.SplitLayers(layers, perLayer, float64(c.VRAMBytes), reserve(n), n)
		x.StreamedShare = fit.StreamedShare()
		x.BytesPerSec = training.WeightPath{DriveBytesPerSec: c.DrivePerSec, Drives: 1, Sharing: n, LinkBytesPerSec: c.LinkPerSec}.BytesPerSec()
		r.GPUs = append(r.GPUs, trainGPUs{n, fit.Layers, fit.Resident, math.Ceil(x.HiddenFrom())})
		if fit.Streamed == 0 {
			break
		}
	}
	return r, nil
}

// trainPaths are the disks people have, and RAM.
func (f *planFlags) trainPaths(t training.Layer, c *trainMachine) []trainPath {
	kinds := []struct {
		name   string
		rate   float64
		drives int
		pinned bool
	}{
		{"this disk", c.DrivePerSec, 1, false}, {"two of it, striped", c.DrivePerSec, 2, false},
		{"1 NVMe PCIe 3", 3.5e9, 1, false}, {"1 NVMe PCIe 4", 7e9, 1, false}, {"1 NVMe PCIe 5", 13e9, 1, false},
		{"2 NVMe PCIe 5", 13e9, 2, false}, {"4 NVMe PCIe 5", 13e9, 4, false}, {"RAM, pinned", 0, 0, true},
	}
	var paths []trainPath
	add := func(name string, p training.WeightPath) {
		x := t
		x.BytesPerSec = p.BytesPerSec()
		one := x
		one.OneTransfer = true
		row := trainPath{Name: name, BytesPerSec: x.BytesPerSec, FreeFrom: math.Ceil(x.HiddenFrom()), FreeBySeed: math.Ceil(one.HiddenFrom())}
		for tokens := 512; tokens <= 32768; tokens *= 2 {
			row.Tokens, row.Overhead = append(row.Tokens, tokens), append(row.Overhead, x.Overhead(float64(tokens)))
		}
		paths = append(paths, row)
	}
	for _, k := range kinds {
		add(k.name, training.WeightPath{DriveBytesPerSec: k.rate, Drives: k.drives, Sharing: f.gpus, LinkBytesPerSec: c.LinkPerSec, Pinned: k.pinned})
	}
	if c.P2P { // the device's own lanes still bound it
		for _, n := range []int{1, 4} {
			add(fmt.Sprintf("%d NVMe PCIe 5, past the CPU", n), training.WeightPath{DriveBytesPerSec: 13e9, Drives: n, Sharing: f.gpus, LinkBytesPerSec: c.LinkPerSec, P2P: true})
		}
	}
	return paths
}

func (r *trainReport) print(w io.Writer) {
	m, c, f := &r.Model, &r.Machine, &r.Fit
	fmt.Fprintf(w, "model    %s: %d layers of %s, %.0f million parameters of each active, %.3f bytes/FLOP\n", m.Name, m.Layers, formatSize(m.LayerBytes), m.ActiveParams/1e6, m.BytesPerFlop)
	fmt.Fprintf(w, "machine  %s, %s of VRAM, %.3g TFLOPS (%s), link %s\n", c.Name, formatSize(c.VRAMBytes), c.Flops/1e12, c.FlopsAre, formatRate(c.LinkPerSec))
	fmt.Fprintf(w, "layer    forward %.3g us a token, a step three times that; transfer %.3g ms over the link, twice a step\n", f.ForwardMicros, f.TransferMillis)
	fmt.Fprintf(w, "fits     %d of %d layers stay, %d stream (%.0f %%); adapter, optimizer and the rest take %s", f.Resident, f.LayersPerGPU, f.Streamed, 100*float64(f.Streamed)/float64(max(1, f.LayersPerGPU)), formatSize(f.ReserveBytes))
	if f.GPUsForAll > 0 {
		fmt.Fprintf(w, "; %d %s would hold all", f.GPUsForAll, plural(f.GPUsForAll, "GPU"))
	}
	fmt.Fprintf(w, "\n\n%-28s %10s %9s", "a step takes longer by", "GB/s", "free from")
	for _, n := range r.Paths[0].Tokens {
		fmt.Fprintf(w, " %6s", tokenCount(n))
	}
	fmt.Fprintln(w)
	for _, p := range r.Paths {
		fmt.Fprintf(w, "%-28s %10.1f %9.0f", p.Name, p.BytesPerSec/1e9, p.FreeFrom)
		for _, o := range p.Overhead {
			fmt.Fprintf(w, " %6s", overheadText(o))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nTokens are of one step, sequences times their length. \"Free from\" counts a transfer for each half\nof a step; with one for the whole step, as others count, it would be a third.\n")
	fmt.Fprintf(w, "%d %s like this one %s the link; more bring nothing", r.Fill, plural(r.Fill, "drive"), map[bool]string{true: "fills", false: "fill"}[r.Fill == 1])
	fmt.Fprintf(w, ".\n\n%8s %12s %10s %s\n", "GPUs", "layers each", "resident", "free from, all at this disk")
	for _, g := range r.GPUs {
		fmt.Fprintf(w, "%8d %12d %10d %.0f\n", g.GPUs, g.Layers, g.Resident, g.FreeFrom)
	}
}

func tokenCount(n int) string {
	if n >= 1024 {
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

func overheadText(o float64) string {
	switch {
	case o < 0.005:
		return "0%"
	case o > 9.995:
		return ">10x"
	}
	return fmt.Sprintf("+%.0f%%", 100*o)
}
