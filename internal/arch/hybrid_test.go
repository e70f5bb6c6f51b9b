package arch_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// converted opens a model of the test data that Hugging Face's converter wrote.
func converted(t *testing.T, name string) *pack.Model {
	t.Helper()
	m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Models with Mamba or short convolutions load whole, and each layer has what its tensors say: s a state, c a cache, e experts, - none of them.
func TestHybrids(t *testing.T) {
	for name, want := range map[string]struct {
		layers string
		parts  [2]arch.StatePart // of the first layer
		scale  float32           // of attention's scores
	}{
		"mamba":         {"s s s", [2]arch.StatePart{{Rows: 3, Cols: 128}, {Rows: 128, Cols: 16}}, 0},
		"mamba2":        {"s s s", [2]arch.StatePart{{Rows: 3, Cols: 160}, {Rows: 128, Cols: 16}}, 0},
		"jamba":         {"s se c se", [2]arch.StatePart{{Rows: 3, Cols: 128}, {Rows: 128, Cols: 16}}, 0.25},
		"granitehybrid": {"se se ce se", [2]arch.StatePart{{Rows: 3, Cols: 160}, {Rows: 128, Cols: 16}}, 0.1},
		"nemotron-h":    {"s c - s", [2]arch.StatePart{{Rows: 3, Cols: 192}, {Rows: 128, Cols: 16}}, 0.25},
		"falcon-h1":     {"cs cs cs", [2]arch.StatePart{{Rows: 3, Cols: 96}, {Rows: 64, Cols: 16}}, 0.25},
		"lfm2":          {"s s c s", [2]arch.StatePart{{Rows: 2, Cols: 64}}, 0.25},
		"lfm2moe":       {"s se ce se", [2]arch.StatePart{{Rows: 2, Cols: 64}}, 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			m := converted(t, name)
			h, err := arch.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			for l, s := range h.Layers {
				if l > 0 {
					found += " "
				}
				kinds := ""
				for mark, is := range map[string]bool{"c": s.Cache, "s": s.State, "e": s.Experts} {
					if is {
						kinds += mark
					}
				}
				letters := []byte(kinds)
				slices.SortFunc(letters, func(a, b byte) int { return slices.Index([]byte("cse"), a) - slices.Index([]byte("cse"), b) })
				if found += string(letters); kinds == "" {
					found += "-"
				}
				readsWritten(t, h, m, l)
			}
			if found != want.layers || h.StateParts(0) != want.parts || h.AttentionScale != want.scale || len(h.Notes) > 0 {
				t.Errorf("layers %s, parts %v, scale %g, notes %q", found, h.StateParts(0), h.AttentionScale, h.Notes)
			}
		})
	}
}

// readsWritten wants every value that operations of layer l read to be written before.
func readsWritten(t *testing.T, h *arch.Hyper, m *pack.Model, l int) {
	t.Helper()
	plain := h.Layer(l, m.Has)
	for _, ops := range [][]arch.Op{plain, arch.Fuse(plain)} {
		there := []arch.Value{arch.X}
		for i := range ops {
			for _, v := range ops[i].Reads() {
				if !slices.Contains(there, v) {
					t.Errorf("layer %d: operation %d of kind %d reads value %d, which nothing has written", l, i, ops[i].Kind, v)
				}
			}
			there = append(there, ops[i].Writes()...)
		}
	}
}

// B and C of Jamba have norms of their own, each of its part of the value; a key gives Mamba norms without weights.
func TestTimeStepNorms(t *testing.T) {
	norms := func(m *pack.Model) (list []string) {
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range h.Layer(0, m.Has) {
			if o.Kind == arch.RMSNorm && o.Dst >= arch.SSMGate && o.Dst <= arch.SSMOut {
				list = append(list, fmt.Sprintf("%s %d+%d", o.Weight, o.Off, o.Cols))
			}
		}
		return list
	}
	if found := norms(converted(t, "jamba")); !slices.Equal(found, []string{"blk.0.ssm_dt_norm.weight 0+8", "blk.0.ssm_b_norm.weight 0+16", "blk.0.ssm_c_norm.weight 16+16"}) {
		t.Errorf("Jamba: %q", found)
	}
	m := converted(t, "mamba")
	if found := norms(m); len(found) > 0 {
		t.Errorf("Mamba: %q", found)
	}
	if found := norms(withKey(t, m, "mamba.ssm.dt_b_c_rms", true)); !slices.Equal(found, []string{" 0+8", " 0+16", " 16+16"}) {
		t.Errorf("Mamba with norms: %q", found)
	}
}

// After the last scan only logit rows go on, with what its gate and the residual stream need.
func TestLogitRowsOfMamba(t *testing.T) {
	for name, want := range map[string][]arch.Value{
		"mamba": {arch.X, arch.SSMGate, arch.SSMOut}, "nemotron-h": {arch.X, arch.SSMGate, arch.SSMOut}, "lfm2": {arch.X, arch.ConvB, arch.ConvC}, "falcon-h1": {arch.X, arch.Q},
	} {
		m := converted(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		if found := h.LogitRowValues(m.Has); !slices.Equal(found, want) {
			t.Errorf("%s: found values %v, wanted %v", name, found, want)
		}
	}
}

// Experts of Nemotron-H have no gate, and may read and write a latent of the row.
func TestPlainExperts(t *testing.T) {
	for _, latent := range []int64{0, 32} {
		m := plainExperts(t, latent)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatalf("latent %d: %v", latent, err)
		}
		wide := 64
		if latent > 0 {
			wide = int(latent)
		}
		if h.Experts.LatentLength != int(latent) || h.PairWidth(2, arch.ExpertOut) != wide || h.MaxWidth(arch.ExpertUp) != 2*48 || h.MaxWidth(arch.ExpertGate) != 0 || h.MaxWidth(arch.ExpertSum) != int(latent) {
			t.Errorf("latent %d: found %+v, output %d wide", latent, h.Experts, h.PairWidth(2, arch.ExpertOut))
		}
		readsWritten(t, h, m, 2)
		for _, n := range []int64{latent, 16} { // Hugging Face's converter writes the key
			if _, err := arch.Read(withKey(t, plainExperts(t, latent), "nemotron_h_moe.moe_latent_size", uint32(n))); (err == nil) != (n == latent) {
				t.Errorf("latent %d, key of %d: error %v", latent, n, err)
			}
		}
	}
	if _, err := arch.Read(withKey(t, plainExperts(t, 0), "nemotron_h_moe.expert_count", uint32(0))); err == nil {
		t.Error("experts that no key counts: load")
	}
}

// plainExperts is a Nemotron-H whose layer 2 has experts, of latents of the given size, instead of an FFN; 0: of whole rows.
func plainExperts(t *testing.T, latent int64) *pack.Model {
	tensor := func(name string, shape ...int64) pack.Tensor {
		return pack.Tensor{Name: "blk.2." + name, Type: gguf.F32, Shape: shape, Bytes: 4}
	}
	m := with(t, converted(t, "nemotron-h"), func(md *gguf.Metadata, units []pack.Unit) []pack.Unit {
		wide, layer := int64(64), []pack.Tensor{tensor("ffn_gate_inp.weight", 8, 64), tensor("exp_probs_b.bias", 8), tensor("ffn_up_shexp.weight", 96, 64), tensor("ffn_down_shexp.weight", 64, 96)}
		if latent > 0 {
			wide, layer = latent, append(layer, tensor("ffn_latent_down.weight", latent, 64), tensor("ffn_latent_up.weight", 64, latent))
		}
		for i := range units {
			if u := &units[i]; u.Kind == pack.Layer && u.Layer == 2 {
				u.Tensors = append(slices.DeleteFunc(u.Tensors, func(x pack.Tensor) bool { return x.Name != "blk.2.attn_norm.weight" }), layer...)
			}
		}
		for e := range 8 {
			units = append(units, pack.Unit{Kind: pack.Experts, Layer: 2, Expert: e, Name: fmt.Sprintf("blk.2.exp.%d", e), Tensors: []pack.Tensor{
				tensor("ffn_up_exps.weight", 48, wide), tensor("ffn_down_exps.weight", wide, 48)}})
		}
		return units
	})
	return withKey(t, withKey(t, m, "nemotron_h_moe.expert_feed_forward_length", uint32(48)), "nemotron_h_moe.expert_shared_feed_forward_length", uint32(96))
}
