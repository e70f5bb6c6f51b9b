package arch_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// short names of operations, in which the test below writes down layers.
var kindNames = map[arch.Kind]string{
	arch.RMSNorm: "rms", arch.LayerNorm: "ln", arch.MulMat: "mul", arch.Bias: "bias", arch.RopeHeads: "rope", arch.KVAppend: "kv", arch.Attention: "att", arch.SwiGLU: "swiglu", arch.GeGLU: "geglu", arch.GeGLUErf: "geglu",
	arch.Act: "act", arch.Add: "add", arch.Scale: "scale", arch.ScaleRows: "scaleRows", arch.AddRows: "addRows", arch.Route: "route", arch.Experts: "experts", arch.SumExperts: "sum",
	arch.HeadCopy: "copy", arch.ScaleLogits: "scaleLogits",
}

func kinds(ops []arch.Op) string {
	var names []string
	for i := range ops {
		names = append(names, kindNames[ops[i].Kind])
	}
	return strings.Join(names, " ")
}

// What architectures do in a layer, before the layers, after them, and to the logits.
func TestOperations(t *testing.T) {
	const (
		fused      = "mul bias mul bias mul bias"
		sequential = "ln " + fused + " kv att mul bias add ln mul bias act mul bias add"
		parallel   = "ln mul mul mul rope rope kv att mul add mul mul swiglu mul add"
	)
	for name, want := range map[string][4]string{
		"gpt2":       {"addRows", sequential, "ln", ""},
		"starcoder":  {"addRows", sequential, "ln", ""},
		"bloom":      {"ln", sequential, "ln", ""},
		"starcoder2": {"", "ln " + fused + " rope rope kv att mul bias add ln mul bias act mul bias add", "ln", ""},
		"jais2":      {"", "ln " + fused + " rope rope kv att mul bias add ln mul bias act mul bias add", "ln", ""},
		"nemotron":   {"", "ln mul mul mul rope rope kv att mul add ln mul act mul add", "ln", ""},
		"falcon":     {"", "ln mul mul mul rope rope kv att mul add mul act mul add", "ln", ""},
		"phi2":       {"", "ln " + fused + " rope rope kv att mul bias add mul bias act mul bias add", "ln", "bias"},
		"stablelm":   {"", "ln " + fused + " rope rope kv att mul add ln mul mul swiglu mul add", "ln", ""},
		"cohere":     {"", parallel, "ln", "scaleLogits"},
		"cohere2":    {"", parallel, "ln", "scaleLogits"},
		"olmo":       {"", "ln mul mul mul rope rope kv att mul add ln mul mul swiglu mul add", "ln", ""},
		"arcee":      {"", "rms mul mul mul rope rope kv att mul add rms mul act mul add", "rms", ""},
		"apertus":    {"", "rms mul mul mul rms rms rope rope kv att mul add rms mul act mul add", "rms", ""},
		"granite":    {"scale", "rms mul mul mul rope rope kv att mul add rms mul mul swiglu mul add", "rms", "scaleLogits"},
		"granitemoe": {"scale", "rms mul mul mul rope rope kv att mul add rms mul route experts sum add", "rms", "scaleLogits"},
		"ministral3": {"", "rms mul mul mul rope rope kv scaleRows att mul add rms mul mul swiglu mul add", "rms", ""},
		"minicpm3":   {"scale", "rms mul rms mul mul mul rms mul rope rope copy copy copy kv att mul add rms mul mul swiglu mul add", "rms", "scaleLogits"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			h, err := arch.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			if got := [4]string{kinds(h.Input(m.Has)), kinds(h.Layer(0, m.Has)), kinds(h.Output(m.Has)), kinds(h.LogitOps(m.Has))}; got != want {
				t.Errorf("found %q, wanted %q", got, want)
			}
			if len(h.Notes) > 0 {
				t.Errorf("notes %q", h.Notes)
			}
			for l := range h.BlockCount {
				if ops := arch.Fuse(h.Layer(l, m.Has)); !writesCache(ops) {
					t.Errorf("layer %d: nothing writes the cache", l)
				}
			}
		})
	}
}

func writesCache(ops []arch.Op) bool {
	return slices.ContainsFunc(ops, func(o arch.Op) bool { return slices.Contains(o.Writes(), arch.Cache) })
}

// The numbers that models of testdata have for their factors, ropes, windows and activations.
func TestFactors(t *testing.T) {
	read := func(name string) *arch.Hyper {
		m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	holds := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-5*math.Abs(want) {
			t.Errorf("%s is %v, wanted %v", what, got, want)
		}
	}
	h := read("granite")
	holds("granite's scale of embeddings", float64(h.EmbeddingScale), 12)
	holds("granite's scale of what layers add", float64(h.ResidualScale), 0.3)
	holds("granite's scale of scores", float64(h.AttentionScale), 0.08)
	holds("granite's scale of logits", float64(h.LogitScale), 0.25)
	h = read("cohere2")
	holds("cohere2's scale of logits", float64(h.LogitScale), 0.25)
	for l := range h.BlockCount {
		if windowed := l%4 < 3; h.Windowed(l) != windowed || (h.Layers[l].Rope != arch.NoRope) != windowed {
			t.Errorf("cohere2, layer %d: window %v, rope %d", l, h.Windowed(l), h.Layers[l].Rope)
		}
	}
	h = read("minicpm3")
	holds("minicpm3's scale of embeddings", float64(h.EmbeddingScale), 12)
	holds("minicpm3's scale of what layers add", float64(h.ResidualScale), 1.4/math.Sqrt(3))
	holds("minicpm3's scale of logits", float64(h.LogitScale), 4)
	holds("minicpm3's width of values", float64(h.Width(0, arch.V)), 64)
	h = read("ministral3")
	holds("ministral3's factor of rotated values", h.Ropes[0].AttnFactor, 1) // two equal temperatures, one divided by the other
	holds("ministral3's queries before the trained length", float64(h.RowScale.At(16383)), 1)
	holds("ministral3's queries behind it", float64(h.RowScale.At(16384)), 1+0.1*math.Log(2))
	h = read("apertus")
	x := h.Layers[1].XIELU
	holds("apertus' square", float64(x[0]), math.Log1p(math.Exp(-0.21027)))
	holds("apertus' exponential", float64(x[1]), 0.5+math.Log1p(math.Exp(-1.29202)))
	holds("apertus' line", float64(x[2]), 0.5)
	if h = read("gpt2"); h.Positions != 256 || len(h.Ropes) > 0 {
		t.Errorf("gpt2 has %d positions and %d ropes", h.Positions, len(h.Ropes))
	}
}

// There are as many embeddings of positions as positions.
func TestPositions(t *testing.T) {
	m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", "gpt2.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, n := range []uint32{255, 257} {
		if _, err := arch.Read(withKey(t, m, "gpt2.context_length", n)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`"position_embd.weight": found shape [256 64], wanted [%d 64]`, n)) {
			t.Errorf("error %v", err)
		}
	}
}
