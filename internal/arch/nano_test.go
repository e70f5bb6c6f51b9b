package arch_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/tools/golden/tiny"
)

// nano opens one of tools/golden's models.
func nano(t *testing.T, name string) *pack.Model {
	t.Helper()
	var b bytes.Buffer
	if err := tiny.Write(&b, name); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := pack.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Metadata that doesn't fit the architecture, or the tensors, is refused with a word on what.
func TestReadRefusesMixtures(t *testing.T) {
	for _, c := range []struct {
		name, model, key string
		value            any // nil: the key is not there
		want             string
		unsupported      bool
	}{
		{"no pattern of windows", "mimo2-nano", "mimo2.attention.sliding_window_pattern", nil, "sliding_window_pattern", false},
		{"one number for a pattern of windows", "mimo2-nano", "mimo2.attention.sliding_window_pattern", uint32(2), "sliding_window_pattern", false},
		{"a pattern of too few layers", "step35-nano", "step35.attention.sliding_window_pattern", []bool{true, false}, "sliding_window_pattern", false},
		{"no length of windows", "exaone-moe-nano", "exaone-moe.attention.sliding_window", nil, "sliding_window", false},
		{"a bound below 0", "step35-nano", "step35.swiglu_clamp_exp", []float32{0, 0, -1, 0}, "bounds of layer 2", false},
		{"bounds of too few layers", "step35-nano", "step35.swiglu_clamp_shexp", []float32{0, 1}, "swiglu_clamp_shexp", false},
		{"half of a head of an odd number of pairs", "step35-nano", "step35.rope.dimension_count", uint32(14), "rope.dimension_count", false},
		{"a gating nobody knows", "glm4moe-nano", "glm4moe.expert_gating_func", uint32(4), "expert_gating_func", false},
		{"only layers for further tokens", "glm4moe-nano", "glm4moe.nextn_predict_layers", uint32(4), "block_count", false},
		{"a shared expert of another width", "qwen2moe-nano", "qwen2moe.expert_shared_feed_forward_length", uint32(64), "ffn_gate_shexp", false},
		{"no dense layer", "glm4moe-nano", "glm4moe.leading_dense_block_count", uint32(0), "no operation reads", false},
		{"no window", "gpt-oss-nano", "gpt-oss.attention.sliding_window", nil, "sliding_window", false},
		{"groups that don't divide", "deepseek3-nano", "deepseek2.expert_group_count", uint32(5), "groups", false},
		{"no group used", "deepseek3-nano", "deepseek2.expert_group_used_count", uint32(0), "groups", false},
		{"groups with too few experts", "deepseek3-nano", "deepseek2.expert_group_count", uint32(12), "groups", false},
		{"a latent of another size", "deepseek3-nano", "deepseek2.attention.kv_lora_rank", uint32(32), "latent attention", false},
		{"several key heads", "deepseek3-nano", "deepseek2.attention.head_count_kv", uint32(4), "latent attention", false},
		{"all of a head turns", "deepseek3-nano", "deepseek2.attention.key_length_mla", uint32(16), "key_length_mla", false},
		{"a head that the kernels can't read", "deepseek3-nano", "deepseek2.attention.key_length_mla", uint32(46), "multiples of 4", false},
		{"an old file", "deepseek3-nano", "deepseek2.attention.key_length_mla", nil, "key_length_mla", true},
		{"key heads that don't divide", "qwen3next-nano", "qwen3next.ssm.group_count", uint32(3), "delta net", false},
		{"heads of another size", "qwen3next-nano", "qwen3next.ssm.state_size", uint32(16), "delta net", false},
		{"a long convolution", "qwen35moe-nano", "qwen35moe.ssm.conv_kernel", uint32(5), "conv_kernel", false},
		{"no period", "qwen35moe-nano", "qwen35moe.full_attention_interval", uint32(0), "full_attention_interval", false},
		{"another period", "qwen35moe-nano", "qwen35moe.full_attention_interval", uint32(3), "which other layers of its kind have", false},
		{"no sizes of states", "qwen35moe-nano", "qwen35moe.ssm.state_size", nil, "ssm.state_size", false},
		{"no rotary dimension", "deepseek3-nano", "deepseek2.rope.dimension_count", nil, "dimension_count", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := nano(t, c.model)
			if c.value == nil {
				m.Metadata.Delete(c.key)
			} else if err := m.Metadata.Set(c.key, c.value); err != nil {
				t.Fatal(err)
			}
			_, err := arch.Read(m)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, wanted one with %q", err, c.want)
			}
			if errors.Is(err, errors.ErrUnsupported) != c.unsupported {
				t.Errorf("%v: unsupported %v, wanted %v", err, !c.unsupported, c.unsupported)
			}
		})
	}
}

// What a mixture's file says, and what follows where it says nothing.
func TestReadMixtures(t *testing.T) {
	for name, want := range map[string]arch.Mixture{
		"qwen2moe-nano":       {Count: 6, Used: 2, FeedForwardLength: 32, Scale: 1, SharedLength: 96},
		"glm4moe-nano":        {Count: 8, Used: 3, FeedForwardLength: 32, Gating: arch.Sigmoid, Normalise: true, Scale: 2.5, SharedLength: 32},
		"gpt-oss-nano":        {Count: 5, Used: 2, FeedForwardLength: 32, Gating: arch.SoftMaxChosen, Scale: 1, Biased: true, Clamped: true},
		"deepseek2-lite-nano": {Count: 8, Used: 2, FeedForwardLength: 32, Scale: 4, Groups: 4, GroupsUsed: 2, GroupBest: 1, SharedLength: 64},
		"deepseek3-nano": {Count: 12, Used: 3, FeedForwardLength: 32, Gating: arch.Sigmoid, Normalise: true, Scale: 2.5, Groups: 4, GroupsUsed: 2, GroupBest: 2,
			SharedLength: 32},
		"phimoe-nano":     {Count: 6, Used: 2, FeedForwardLength: 32, Gating: arch.SparseMixer, Scale: 1},
		"mimo2-nano":      {Count: 8, Used: 3, FeedForwardLength: 32, Gating: arch.Sigmoid, Normalise: true, Scale: 1},
		"step35-nano":     {Count: 8, Used: 3, FeedForwardLength: 32, Gating: arch.Sigmoid, Normalise: true, Scale: 3, SharedLength: 32},
		"exaone-moe-nano": {Count: 6, Used: 2, FeedForwardLength: 32, Gating: arch.Sigmoid, Normalise: true, Scale: 2.5, SharedLength: 64},
		"qwen3next-nano":  {Count: 6, Used: 2, FeedForwardLength: 32, Normalise: true, Scale: 1, SharedLength: 32},
	} {
		h, err := arch.Read(nano(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if h.Experts != want {
			t.Errorf("%s: got %+v, want %+v", name, h.Experts, want)
		}
	}
}

// Layers have a cache or a state.
func TestStateLayers(t *testing.T) {
	h, err := arch.Read(nano(t, "qwen35moe-nano"))
	if err != nil {
		t.Fatal(err)
	}
	want := arch.DeltaNet{Heads: 4, KeyHeads: 2, HeadLength: 32, Taps: 4, Tiled: true}
	if h.Delta != want || h.Delta.Channels() != 256 || h.BlockCount != 4 {
		t.Errorf("got %+v of %d channels, %d layers; want %+v", h.Delta, h.Delta.Channels(), h.BlockCount, want)
	}
	for l, state := range []bool{true, true, true, false} {
		s, parts := h.Layers[l], h.StateParts(l)
		if s.State != state || s.Cache == state || (s.Rope == arch.NoRope) != state {
			t.Errorf("layer %d: %+v", l, s)
		}
		conv, heads := parts[arch.ConvPart].Bytes(), parts[arch.ScanPart].Bytes()
		if state && (conv != 3*256*4 || heads != 4*32*32*4) || !state && conv+heads != 0 {
			t.Errorf("layer %d: a state of %d and %d bytes", l, conv, heads)
		}
	}
	if h.StateBytes() != 3*(3*256*4+4*32*32*4) {
		t.Errorf("all states have %d bytes", h.StateBytes())
	}
	dense, err := arch.Read(nano(t, "gpt-oss-nano"))
	if err != nil {
		t.Fatal(err)
	}
	if dense.Layers[0].State || !dense.Layers[1].Cache || dense.StateBytes() != 0 {
		t.Errorf("a model without states has some: %+v %d", dense.Layers, dense.StateBytes())
	}
}

// A layer of a view is what the model's own layer is, whatever its number; its cache and its state are as large.
func TestView(t *testing.T) {
	for name, other := range map[string]int{"glm4moe-nano": 1, "gpt-oss-nano": 1, "deepseek3-nano": 1, "qwen3next-nano": 3} {
		m := nano(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		as := []int{other, 0, 0, other, 0}
		v := h.View(as)
		kinds := map[string]bool{}
		for l, of := range as {
			if v.Layers[l] != h.Layers[of] || v.StateParts(l) != h.StateParts(of) {
				t.Errorf("%s: layer %d of the view: %+v, wanted %+v", name, l, v.Layers[l], h.Layers[of])
			}
			prefix, own := fmt.Sprintf("blk.%d.", l), fmt.Sprintf("blk.%d.", of)
			rename := func(tensor string) string { return own + strings.TrimPrefix(tensor, prefix) }
			has := func(tensor string) bool { _, _, ok := m.Tensor(tensor); return ok }
			got := fmt.Sprint(everyRow(v.Layer(l, func(tensor string) bool { return has(rename(tensor)) })))
			want := fmt.Sprint(everyRow(h.Layer(of, has)))
			if got = strings.ReplaceAll(got, prefix, own); got != want {
				t.Errorf("%s: layer %d is not layer %d:\n%s\n%s", name, l, of, got, want)
			}
			kinds[strings.ReplaceAll(want, own, "")] = true
		}
		if len(kinds) != 2 {
			t.Errorf("%s: no test: layers 0 and %d are alike", name, other)
		}
	}
}
