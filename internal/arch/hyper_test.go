package arch_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/synth/synthetic"
)

func open(t *testing.T, o synthetic.Options) *pack.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, o); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestRead(t *testing.T) {
	m := open(t, synthetic.Options{Arch: "qwen3"})
	h, err := arch.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	shape := arch.LayerShape{HeadCount: 8, HeadCountKV: 4, KeyLength: 64, ValueLength: 64, FeedForwardLength: 512, Cache: true}
	if h.Architecture != "qwen3" || h.BlockCount != 4 || h.EmbeddingLength != 256 || !slices.Equal(h.Layers, []arch.LayerShape{shape, shape, shape, shape}) ||
		h.VocabSize != 512 || h.Tied || len(h.Ropes) != 1 || !h.Ropes[0].Neox || h.Ropes[0].Dim != 64 {
		t.Errorf("got %+v", h)
	}
	if w := h.Width(3, arch.Q); w != 512 {
		t.Errorf("Q is %d wide, wanted 512: heads of 64 are not the width over the heads", w)
	}
}

func TestReadExperts(t *testing.T) {
	for name, want := range map[string]arch.Mixture{
		"qwen3moe": {Count: 8, Used: 2, FeedForwardLength: 256, Normalise: true, Scale: 1},
		"mixtral":  {Count: 4, Used: 2, FeedForwardLength: 512, Normalise: true, Scale: 1},
	} {
		h, err := arch.Read(open(t, synthetic.Options{Arch: name}))
		if err != nil {
			t.Fatal(err)
		}
		if h.Experts != want {
			t.Errorf("%s: got %+v, want %+v", name, h.Experts, want)
		}
		if h.MaxWidth(arch.ExpertOut) != 2*256 || h.PairWidth(0, arch.ExpertOut) != 256 || h.Width(0, arch.Scores) != want.Count || h.MaxWidth(arch.Gate) != 0 {
			t.Errorf("%s: widths %d %d %d %d", name, h.MaxWidth(arch.ExpertOut), h.PairWidth(0, arch.ExpertOut), h.Width(0, arch.Scores), h.MaxWidth(arch.Gate))
		}
	}
}

// The layers differ only where the architectures do.
func TestLayerOps(t *testing.T) {
	count := func(name string) (norms, biases int) {
		m := open(t, synthetic.Options{Arch: name})
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range h.Layer(1, func(n string) bool { _, _, ok := m.Tensor(n); return ok }) {
			switch o.Kind {
			case arch.RMSNorm:
				norms++
			case arch.Bias:
				biases++
			}
		}
		return norms, biases
	}
	for name, want := range map[string][2]int{"llama": {2, 0}, "qwen2": {2, 3}, "qwen3": {4, 0}} {
		if norms, biases := count(name); norms != want[0] || biases != want[1] {
			t.Errorf("%s: %d norms and %d biases in a layer, wanted %v", name, norms, biases, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"architecture", "general.architecture", "rwkv7", "rwkv7"},
		{"experts", "qwen2.expert_count", uint32(8), "mixture of experts"},
		{"no heads", "llama.attention.head_count", uint32(0), "head_count"},
		{"heads that don't divide", "llama.attention.head_count_kv", uint32(3), "multiple"},
		{"huge", "llama.embedding_length", uint64(1 << 40), "embedding_length"},
		{"negative", "llama.block_count", int32(-1), "block_count"},
		{"not a number", "llama.block_count", "four", "block_count"},
		{"head size", "llama.attention.key_length", uint32(60), "head size"},
		{"rope dimension", "llama.rope.dimension_count", uint32(66), "dimension_count"},
		{"rope base", "llama.rope.freq_base", float32(0), "freq_base"},
		{"rope scaling", "llama.rope.scaling.type", "longrope", "scaling.type"},
		{"epsilon", "llama.attention.layer_norm_rms_epsilon", float32(-1), "epsilon"},
		{"shape", "llama.feed_forward_length", uint32(511), "ffn_gate"},
		{"missing layer", "llama.block_count", uint32(5), "layer 4"},
		{"no expert used", "qwen3moe.expert_used_count", uint32(0), "expert_used_count"},
		{"more used than there are", "qwen3moe.expert_used_count", uint32(9), "expert_used_count"},
		{"more than the kernels hold", "qwen3moe.expert_count", uint32(1025), "expert_count"},
		{"fewer than there are", "qwen3moe.expert_count", uint32(7), "8 experts, wanted the 7 of key"},
		{"width of an expert", "qwen3moe.expert_feed_forward_length", uint32(255), "ffn_gate_exps"},
		{"heads per layer", "llama.attention.head_count_kv", []int32{2, 2, 1, 2}, "blk.2.attn_k.weight"},
		{"heads of too few layers", "llama.attention.head_count_kv", []int32{2, 1}, "one for each of 4 layers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, _, _ := strings.Cut(c.key, ".")
			if name == "general" {
				name = "llama"
			}
			m := open(t, synthetic.Options{Arch: name})
			if err := m.Metadata.Set(c.key, c.value); err != nil {
				t.Fatal(err)
			}
			_, err := arch.Read(m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found error %v, wanted one with %q", err, c.want)
			}
		})
	}
	t.Run("hint", func(t *testing.T) {
		m := open(t, synthetic.Options{Arch: "llama"})
		if err := m.Metadata.Set("general.architecture", "rwkv7"); err != nil {
			t.Fatal(err)
		}
		_, err := arch.Read(m)
		var u *arch.UnsupportedError
		if !errors.As(err, &u) || u.Hint() == "" || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("found error %v, wanted an UnsupportedError with a hint", err)
		}
	})
}
