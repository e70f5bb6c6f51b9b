package arch_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/testdata"
)

// encoderFile opens an encoder of testdata.
func encoderFile(t *testing.T, name string) *pack.Model {
	t.Helper()
	m, err := pack.Open(filepath.Join(testdata.Dir(t), "hf", name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// What encoders do, and which rows each of their layers sees.
func TestEncoders(t *testing.T) {
	for name, want := range map[string]struct {
		input, layer, output string
		around               []int // by layer: rows on each side; 0: all
		bases                []float64
	}{
		"bert":           {"bias addRows ln", "mul bias mul bias mul bias kv att mul bias add ln mul bias act mul bias add ln", "scale", []int{0, 0, 0}, nil},
		"modernbert":     {"ln", "mul mul mul rope rope kv att mul add ln mul mul geglu mul add", "ln", []int{0, 8, 8, 0}, []float64{160000, 10000}},
		"embeddinggemma": {"scale", "rms mul mul mul rms rms rope rope kv att mul rms add rms mul mul geglu mul rms add", "rms", []int{8, 8, 8, 8, 8, 0}, []float64{1e6, 10000}},
	} {
		m := encoderFile(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds(h.Input(m.Has)); got != want.input {
			t.Errorf("%s: before the layers: %q", name, got)
		}
		if got := kinds(h.Layer(0, m.Has)); got != want.layer {
			t.Errorf("%s: layer 0: %q", name, got)
		}
		if got := kinds(h.Output(m.Has)) + kinds(h.LogitOps(m.Has)); got != want.output || !h.Encoder || h.Head() != "" || len(h.Notes) > 0 {
			t.Errorf("%s: after the layers: %q; encoder %v, head %q, notes %q", name, got, h.Encoder, h.Head(), h.Notes)
		}
		for l, around := range want.around {
			mask := h.Masks[h.Layers[l].Mask]
			if mask != (arch.Mask{Around: around, All: around == 0}) {
				t.Errorf("%s: layer %d: %+v", name, l, mask)
			}
			if rope := h.Layers[l].Rope; len(want.bases) > 0 && h.Ropes[rope].Base != want.bases[min(around, 1)] {
				t.Errorf("%s: layer %d: base %v", name, l, h.Ropes[rope].Base)
			}
		}
		if slices.ContainsFunc(h.Layer(h.BlockCount-1, m.Has), func(o arch.Op) bool { return o.Kind == arch.KeepLogitRows }) {
			t.Errorf("%s: the last layer drops rows", name)
		}
	}
}

// How a text's vector is made is what the file says.
func TestPoolingKey(t *testing.T) {
	m := encoderFile(t, "bert")
	for value, want := range map[any]arch.Pooling{nil: arch.PoolingUnset, uint32(0): arch.PoolingNone, uint32(1): arch.PoolingMean, uint32(2): arch.PoolingFirst, uint32(3): arch.PoolingLast, uint32(4): arch.PoolingRank} {
		if h, err := arch.Read(withKey(t, m, "bert.pooling_type", value)); err != nil || h.Pooling != want {
			t.Errorf("%v: error %v", value, err)
		}
	}
}

// A classifier is refused as such, and so are activations and windows that the architecture has no place for.
func TestEncoderRefusals(t *testing.T) {
	_, err := arch.Read(withTensor(t, encoderFile(t, "bert"), pack.Global, -1, "cls.output.weight", 1, 64))
	var unread *arch.UnreadError
	if !errors.As(err, &unread) || !strings.Contains(unread.Hint(), "classifier") || !strings.Contains(err.Error(), "cls.output.weight") {
		t.Errorf("a classifier: error %v", err)
	}
	if _, err := arch.Read(withKey(t, encoderFile(t, "bert"), "bert.attention.sliding_window", uint32(16))); err == nil || !strings.Contains(err.Error(), "sliding_window") {
		t.Errorf("BERT with a window: error %v", err)
	}
	m := encoderFile(t, "modernbert")
	if _, err := arch.Read(withKey(t, m, "modern-bert.hidden_activation", "relu")); err == nil || !strings.Contains(err.Error(), `found "relu", wanted gelu or silu`) {
		t.Errorf("another activation: error %v", err)
	}
	v := withKey(t, m, "modern-bert.hidden_activation", "silu")
	h, err := arch.Read(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(h.Layer(1, v.Has)); !strings.Contains(got, " swiglu ") {
		t.Errorf("with silu: %q", got)
	}
	if h, err := arch.Read(withKey(t, m, "modern-bert.attention.sliding_window", nil)); err != nil || h.Windowed(1) || h.Layers[1].Rope != 0 {
		t.Errorf("without a window: error %v", err)
	}
}
