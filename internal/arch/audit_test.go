package arch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
)

// kinds of the keys that operations read; all others are integers.
var readKinds = map[string]string{
	"attention.layer_norm_rms_epsilon": "float", "rope.freq_base": "float", "rope.scaling.factor": "float", "rope.scale_linear": "float", "rope.scaling.attn_factor": "float",
	"rope.scaling.yarn_beta_fast": "float", "rope.scaling.yarn_beta_slow": "float", "rope.scaling.yarn_ext_factor": "float", "rope.scaling.yarn_log_multiplier": "float",
	"expert_weights_scale": "float", "expert_weights_norm": "bool", "rope.scaling.type": "string", "attention.layer_norm_epsilon": "float", "rope.freq_base_swa": "float",
	"attention.sliding_window_pattern": "", "ssm.dt_b_c_rms": "bool", "rope.scaling.finetuned": "bool", "embedding_scale": "float",
	"residual_scale": "float", "logit_scale": "float", "attention.scale": "float", "attention.temperature_scale": "float",
	"attn_logit_softcapping": "float", "final_logit_softcapping": "float", "use_parallel_residual": "bool", "attention.clamp_kqv": "float",
	"attention.max_alibi_bias": "float", "xielu.alpha_p": "float", "xielu.alpha_n": "float", "xielu.beta": "float",
	"xielu.eps": "float", "attention.value_scale": "float", "swiglu_clamp_exp": "float", "swiglu_clamp_shexp": "float",
	"hidden_activation": "string",
}

// whole is a key with the name of the architecture before it. The keys of xIELU have none.
func whole(name, key string) string {
	if strings.HasPrefix(key, "xielu.") {
		return key
	}
	return name + "." + key
}

// hyper reads the keys of an architecture, of a file of which little more is known than that its last layer has attention.
func hyper(md *gguf.Metadata, name string) (*keys, *Hyper, error) {
	k := newKeys(md, name)
	k.shape = func(tensor string) []int64 {
		if tensor == "blk.3.attn_output.weight" {
			return []int64{64, 64}
		}
		return nil
	}
	h, err := readHyper(k, families[name])
	if err == nil {
		err = k.audit(h)
	}
	return k, h, err
}

// sound are the keys of a model of each architecture, as few as can be.
func sound(name string) map[string]any {
	ks := map[string]any{"context_length": 64, "embedding_length": 64, "block_count": 4, "feed_forward_length": 64, "attention.head_count": 2,
		"attention.layer_norm_rms_epsilon": float32(1e-5)}
	if hasExperts(name) {
		ks["expert_count"], ks["expert_used_count"] = 4, 2
	}
	switch name {
	case "gemma4", "gpt-oss", "exaone-moe":
		ks["attention.sliding_window"] = 8
	case "mimo2", "step35":
		ks["attention.sliding_window"], ks["attention.sliding_window_pattern"] = 8, []bool{false, true, true, false}
	case "command-r":
		ks["logit_scale"] = float32(4)
	case "cohere2":
		ks["logit_scale"], ks["attention.sliding_window"] = float32(4), 8
	case "apertus":
		half := []float32{0.5, 0.5, 0.5, 0.5}
		ks["xielu.alpha_p"], ks["xielu.alpha_n"], ks["xielu.beta"], ks["xielu.eps"] = half, half, half, []float32{-1e-6, -1e-6, -1e-6, -1e-6}
	case "minicpm3":
		ks["attention.kv_lora_rank"], ks["rope.dimension_count"] = 32, 16
	case "qwen35", "qwen35moe", "qwen3next":
		ks["ssm.time_step_rank"], ks["ssm.group_count"], ks["ssm.state_size"], ks["ssm.conv_kernel"] = 2, 2, 16, 4
	case "mamba", "mamba2":
		ks["attention.head_count"], ks["feed_forward_length"] = 0, 0
	case "lfm2", "lfm2moe":
		ks["shortconv.l_cache"] = 3
	case "kimi-linear":
		ks["attention.kv_lora_rank"], ks["attention.head_count_kv"], ks["attention.key_length_mla"], ks["attention.value_length_mla"] = 32, 1, 24, 16
		ks["rope.dimension_count"], ks["ssm.conv_kernel"], ks["kda.head_dim"] = 8, 4, 16
	case "deepseek2", "deepseek32", "glm-dsa":
		ks["attention.kv_lora_rank"], ks["attention.head_count_kv"], ks["attention.key_length"], ks["attention.value_length"] = 32, 1, 40, 32
		ks["attention.key_length_mla"], ks["attention.value_length_mla"], ks["rope.dimension_count"] = 24, 16, 8
	}
	switch name {
	case "deepseek32", "glm-dsa":
		ks["attention.indexer.head_count"], ks["attention.indexer.key_length"], ks["attention.indexer.top_k"] = 2, 16, 64
	case "falcon-h1", "granitehybrid", "jamba", "mamba", "mamba2", "nemotron_h", "nemotron_h_moe":
		ks["ssm.inner_size"], ks["ssm.state_size"], ks["ssm.conv_kernel"], ks["ssm.time_step_rank"] = 128, 16, 4, 8
	}
	return ks
}

// hasExperts reports whether models of an architecture may have experts.
func hasExperts(name string) bool {
	return slices.Contains([]string{"llama", "afmoe", "deepseek2", "deepseek32", "dots1", "ernie4_5-moe", "exaone-moe", "gemma4", "glm-dsa", "glm4moe", "gpt-oss", "granite", "granitemoe", "hunyuan-moe", "kimi-linear", "lfm2moe", "llama4", "minimax-m2", "mistral", "mistral3", "olmoe", "phimoe", "qwen2moe", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vlmoe"}, name)
}

func metadata(t *testing.T, name string, ks map[string]any, more ...any) *gguf.Metadata {
	t.Helper()
	md := gguf.NewMetadata()
	set := func(key string, v any) {
		if n, ok := v.(int); ok {
			v = uint32(n)
		}
		if err := md.Set(whole(name, key), v); err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range ks {
		set(key, v)
	}
	for i := 0; i < len(more); i += 2 {
		set(more[i].(string), more[i+1])
	}
	return md
}

// Each key that an architecture reads, or that can change what it computes, is refused by its name where it is of another
// type; numbers that are none are, too.
func TestKeyTypes(t *testing.T) {
	values := []any{"x", uint32(1), int64(1), float32(0.5), 0.5, true, false, []string{"x"}, []float32{1}, []bool{true}}
	for name := range families {
		k, _, err := hyper(metadata(t, name, sound(name)), name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kinds := map[string]string{}
		for key, r := range rules {
			kinds[key] = r.kind
		}
		for key := range k.read {
			key = strings.TrimPrefix(key, name+".")
			kind, other := readKinds[key]
			if !other {
				kind = "integer"
			}
			kinds[key] = kind
		}
		for key, kind := range kinds {
			if kind == "" {
				continue
			}
			for _, v := range values {
				_, _, err := hyper(metadata(t, name, sound(name), key, v), name)
				if wrong := kindOf(v) != kind; wrong && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("key %q: found %s, wanted", whole(name, key), gguf.TypeName(v)))) {
					t.Errorf("%s: %s = %#v, wanted %s: error %v", name, key, v, kind, err)
				}
			}
			if kind != "float" {
				continue
			}
			for _, v := range []any{float32(math.NaN()), math.NaN(), float32(math.Inf(1)), math.Inf(-1), 1e39} {
				if _, _, err := hyper(metadata(t, name, sound(name), key, v), name); err == nil || !strings.Contains(err.Error(), whole(name, key)) {
					t.Errorf("%s: %s = %v: error %v", name, key, v, err)
				}
			}
		}
	}
}

// Integers of any width are the same number, alone or one for each layer.
func TestKeyWidths(t *testing.T) {
	for _, v := range []any{uint8(2), int8(2), uint16(2), int16(2), uint32(2), int32(2), uint64(2), int64(2), []uint32{2, 2, 2, 2}, []int64{2, 2, 2, 2}} {
		if _, h, err := hyper(metadata(t, "llama", sound("llama"), "attention.head_count", v), "llama"); err != nil || h.Layers[3].HeadCount != 2 {
			t.Errorf("%#v: error %v", v, err)
		}
	}
	if _, h, err := hyper(metadata(t, "llama", sound("llama"), "rope.freq_base", 5e5), "llama"); err != nil || h.Ropes[0].Base != 5e5 {
		t.Errorf("a float64: error %v", err)
	}
}

// Values that no model can have are refused by the key's name, and 0 is none where the field says so.
func TestKeyRanges(t *testing.T) {
	for _, c := range []struct {
		key    string
		values []any
	}{
		{"attention.layer_norm_rms_epsilon", []any{float32(0), float32(-1e-6), 1e-60, float32(2)}},
		{"rope.freq_base", []any{float32(0), float32(1), float32(-1e4)}},
		{"rope.scaling.factor", []any{float32(-1)}},
		{"rope.scaling.attn_factor", []any{float32(0), float32(-1)}},
		{"rope.scaling.yarn_beta_fast", []any{float32(0), float32(-1)}},
		{"expert_weights_scale", []any{float32(-1)}},
		{"attention.head_count", []any{0, int32(-1), uint64(1 << 40)}},
		{"attention.head_count_kv", []any{0, int32(-1)}},
		{"block_count", []any{0, int32(-1)}},
		{"embedding_length", []any{0}},
		{"context_length", []any{0}},
		{"rope.dimension_count", []any{0, 3, 66}},
		{"expert_used_count", []any{0, 5}},
		{"expert_gating_func", []any{4}},
		{"pooling_type", []any{5, int32(-1)}},
	} {
		for _, v := range c.values {
			if _, _, err := hyper(metadata(t, "qwen3moe", sound("qwen3moe"), c.key, v), "qwen3moe"); err == nil || !strings.Contains(err.Error(), c.key) {
				t.Errorf("%s = %v: error %v", c.key, v, err)
			}
		}
	}
	for name := range families {
		if !hasExperts(name) {
			continue
		}
		if _, h, err := hyper(metadata(t, name, sound(name), "expert_weights_scale", float32(0)), name); err != nil || h.Experts.Scale != 1 {
			t.Errorf("%s: no scale of experts' weights: error %v", name, err)
		}
	}
	if _, h, err := hyper(metadata(t, "llama", sound("llama"), "rope.scaling.factor", float32(0)), "llama"); err != nil || h.Ropes[0].Scale != 1 {
		t.Errorf("no factor: error %v", err)
	}
}

// Keys that change what a model computes, and that nothing here reads, are refused; values that change nothing aren't.
func TestKeysThatChange(t *testing.T) {
	for _, c := range []struct {
		key           string
		change, leave []any
	}{
		{"logit_scale", []any{float32(0.0625)}, []any{float32(1), float32(0)}},
		{"embedding_scale", []any{float32(12)}, []any{float32(1)}},
		{"residual_scale", []any{float32(0.22)}, []any{float32(1), float32(0)}},
		{"attn_logit_softcapping", []any{float32(50)}, []any{float32(0)}},
		{"final_logit_softcapping", []any{float32(30)}, []any{float32(0)}},
		{"router_logit_softcapping", []any{float32(30)}, []any{float32(0)}},
		{"attention.clamp_kqv", []any{float32(8)}, []any{float32(0)}},
		{"attention.max_alibi_bias", []any{float32(8)}, []any{float32(0)}},
		{"attention.scale", []any{float32(0.5)}, nil},
		{"attention.output_scale", []any{float32(2)}, []any{float32(1)}},
		{"attention.temperature_scale", []any{float32(0.1)}, []any{float32(0)}},
		{"use_parallel_residual", []any{true}, []any{false}},
		{"swiglu_clamp_exp", []any{float32(7), []float32{0, 7, 0, 0}}, []any{[]float32{0, 0, 0, 0}}},
		{"rope.scaling.alpha", []any{float32(1000)}, []any{float32(1)}},
		{"wkv.head_size", []any{64, "64", "", []uint32{0, 64}}, []any{0, []uint32{0, 0}}},
		{"classifier.output_labels", nil, []any{[]string{"no", "yes"}}},
		{"attention.indexer.top_k", []any{64}, []any{0}},
		{"full_attention_interval", []any{4}, []any{1}},
		{"attention.recurrent_layers", []any{[]bool{true, false, false, false}, []bool{false}}, nil},
		{"attention.sliding_window", []any{32, []uint32{0, 32, 0, 32}}, []any{0, 64, 4096}},
		{"pooling_type", nil, []any{3}},
		{"attention.layer_norm_epsilon", nil, []any{float32(1e-5)}},
		{"rope.dimension_sections", nil, []any{[]int32{11, 11, 10, 0}}},
	} {
		for name := range families {
			k, _, _ := hyper(metadata(t, name, sound(name)), name)
			if k.read[name+"."+c.key] {
				continue // it is applied
			}
			for _, v := range c.change {
				if _, _, err := hyper(metadata(t, name, sound(name), c.key, v), name); err == nil || !strings.Contains(err.Error(), name+"."+c.key) {
					t.Errorf("%s: %s = %v: error %v", name, c.key, v, err)
				}
			}
			for _, v := range c.leave {
				if _, h, err := hyper(metadata(t, name, sound(name), c.key, v), name); err != nil || len(h.Notes) > 0 {
					t.Errorf("%s: %s = %v: error %v", name, c.key, v, err)
				}
			}
		}
	}
	for name := range families {
		_, h, err := hyper(metadata(t, name, sound(name)), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, causal := range []bool{false, true} {
			_, _, err := hyper(metadata(t, name, sound(name), "attention.causal", causal), name)
			if refused := err != nil && strings.Contains(err.Error(), name+".attention.causal"); refused != (causal == h.Encoder) {
				t.Errorf("%s: attention.causal = %v: error %v", name, causal, err)
			}
		}
	}
	if _, _, err := hyper(metadata(t, "llama", sound("llama"), "rope.scaling.type", "longrope"), "llama"); err == nil {
		t.Error("rope of another kind: loads")
	}
}

// What says which layers are of which kind has to say what the architecture does.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		name, key string
		value     any
		fits      bool
	}{
		{"qwen3next", "attention.recurrent_layers", []bool{true, true, true, false}, true},
		{"qwen3next", "attention.recurrent_layers", []bool{true, true, true, false, false}, true}, // one that predicts
		{"qwen3next", "attention.recurrent_layers", []bool{true, false, true, false}, false},
		{"llama", "attention.recurrent_layers", []bool{false, false, false, false}, true},
		{"gpt-oss", "attention.sliding_window_pattern", []bool{true, false, true, false}, true},
		{"gpt-oss", "attention.sliding_window_pattern", []bool{true, true, true, false}, false},
		{"gpt-oss", "attention.sliding_window_pattern", 2, true},
		{"gpt-oss", "attention.sliding_window_pattern", 4, false},
		{"gpt-oss", "rope.freq_base_swa", float32(10000), true},
		{"gpt-oss", "rope.freq_base_swa", float32(20000), false},
		{"llama", "rope.freq_base_swa", float32(20000), true},
		{"llama", "attention.scale", float32(1 / math.Sqrt(32)), true},
	} {
		if _, _, err := hyper(metadata(t, c.name, sound(c.name), c.key, c.value), c.name); (err == nil) != c.fits {
			t.Errorf("%s: %s = %v: error %v", c.name, c.key, c.value, err)
		}
	}
}

// A key that nobody knows is not ignored in silence.
func TestUnknownKey(t *testing.T) {
	_, h, err := hyper(metadata(t, "llama", sound("llama"), "made_up", 1), "llama")
	if err != nil || !slices.ContainsFunc(h.Notes, func(n string) bool { return strings.Contains(n, "llama.made_up") }) {
		t.Errorf("error %v, notes %q", err, h.Notes)
	}
}

// A bool is a number as well: false is 0, true is 1.
func TestAllNumbers(t *testing.T) {
	for _, ok := range []func(float64) bool{func(x float64) bool { return x == 0 }, func(x float64) bool { return x == 1 }, func(float64) bool { return false }, func(float64) bool { return true }} {
		if got := allNumbers(false, ok); got != ok(0) {
			t.Errorf("false: %v, wanted %v as of 0", got, ok(0))
		}
		if got := allNumbers(true, ok); got != ok(1) {
			t.Errorf("true: %v, wanted %v as of 1", got, ok(1))
		}
		if got := allNumbers([]bool{false, true}, ok); got != (ok(0) && ok(1)) {
			t.Errorf("both: %v, wanted %v", got, ok(0) && ok(1))
		}
	}
}

// A file whose weights are in a rotated basis says so by a key that is not of its architecture.
func TestRotatedWeights(t *testing.T) {
	md := metadata(t, "llama", sound("llama"))
	if err := md.Set("prism.hadamard.block_size", uint32(128)); err != nil {
		t.Fatal(err)
	}
	_, _, err := hyper(md, "llama")
	if e := (*UnsupportedError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), `key "prism.hadamard.block_size": a rotated basis`) {
		t.Errorf("error %v, want an UnsupportedError that names the key", err)
	}
}
