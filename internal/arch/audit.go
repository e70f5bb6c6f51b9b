package arch

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"leat/gguf"
)

// rule says of a key that no operation reads which values don't change the logits.
type rule struct {
	kind    string // integer, float, bool or string, or an array of them, one for each layer
	neutral func(h *Hyper, v any) bool
}

// rules are the keys of GGUF that some architecture has and that can change what a model computes, or look as if they did. A
// key that is not here, and that no operation reads, gets a note.
var rules = map[string]rule{
	// Without effect on the logits.
	"vocab_size":                   {"integer", anything}, // see checkVocabulary
	"tensor_data_layout":           {"string", anything},
	"pooling_type":                 {"integer", anything}, // of embeddings
	"attention.layer_norm_epsilon": {"float", anything},   // all norms here are RMS norms
	"attention.group_norm_epsilon": {"float", anything},
	"rope.scaling.finetuned":       {"bool", anything},
	"rope.dimension_sections":      {"integer", anything}, // text has the same position in all of them

	// Of the residual stream and the logits.
	"embedding_length_out":             {"integer", equal(func(h *Hyper) float64 { return float64(h.EmbeddingLength) })},
	"embedding_length_per_layer_input": {"integer", off},
	"embedding_scale":                  {"float", one},
	"residual_scale":                   {"float", one},
	"logit_scale":                      {"float", one},
	"final_logit_softcapping":          {"float", off},
	"use_parallel_residual":            {"bool", off},
	"rescale_every_n_layers":           {"integer", off},
	"swin_norm":                        {"bool", off},
	"n_deepstack_layers":               {"integer", off},
	"features_length":                  {"integer", off},
	"decoder_block_count":              {"integer", off},
	"decoder_start_token_id":           {"integer", off},

	// Of feed-forward parts.
	"swiglu_clamp_exp":                  {"float", off},
	"swiglu_clamp_shexp":                {"float", off},
	"activation_sparsity_scale":         {"float", off},
	"router_logit_softcapping":          {"float", off},
	"leading_dense_block_count":         {"integer", dense},
	"interleave_moe_layer_step":         {"integer", dense},
	"moe_every_n_layers":                {"integer", dense},
	"moe_latent_size":                   {"integer", dense},
	"expert_feed_forward_length":        {"integer", dense},
	"expert_shared_feed_forward_length": {"integer", dense},
	"expert_chunk_feed_forward_length":  {"integer", dense},
	"expert_used_count":                 {"integer", dense},
	"expert_shared_count":               {"integer", dense},
	"expert_group_count":                {"integer", dense},
	"expert_group_used_count":           {"integer", dense},
	"experts_per_group":                 {"integer", dense},
	"expert_gating_func":                {"integer", dense},
	"expert_weights_norm":               {"bool", dense},
	"expert_weights_scale":              {"float", dense},
	"expert_group_scale":                {"float", dense},

	// Of attention.
	"attention.causal":                 {"bool", func(_ *Hyper, v any) bool { return v == true }},
	"attention.scale":                  {"float", equal(func(h *Hyper) float64 { return float64(h.AttentionScale) })},
	"attention.output_scale":           {"float", one},
	"attention.value_scale":            {"float", one},
	"attention.temperature_scale":      {"float", off},
	"attention.temperature_length":     {"integer", off},
	"attention.max_alibi_bias":         {"float", off},
	"attention.clamp_kqv":              {"float", off},
	"attn_logit_softcapping":           {"float", off},
	"attention.group_norm_groups":      {"integer", off},
	"attention.relative_buckets_count": {"integer", off},
	"attention.shared_kv_layers":       {"integer", off},
	"attention.q_lora_rank":            {"integer", off},
	"attention.kv_lora_rank":           {"integer", off},
	"attention.key_length_mla":         {"integer", off},
	"attention.value_length_mla":       {"integer", off},
	"attention.sliding_window":         {"integer", seesAll},
	"attention.sliding_window_pattern": {"", windows},
	"attention.key_length_swa":         {"integer", windowed(func(h *Hyper) float64 { return float64(h.KeyLength) })},
	"attention.value_length_swa":       {"integer", windowed(func(h *Hyper) float64 { return float64(h.ValueLength) })},
	"attention.recurrent_layers":       {"bool", recurrent},
	"full_attention_interval":          {"integer", one}, // every layer has attention

	// Of rope.
	"rope.dimension_count_swa":         {"integer", windowed(func(h *Hyper) float64 { return float64(h.Rope.Dim) })},
	"rope.freq_base_swa":               {"float", windowed(func(h *Hyper) float64 { return h.Rope.Base })},
	"rope.scaling.alpha":               {"float", one},
	"rope.scaling.yarn_attn_factor":    {"float", yarnOff(1)},
	"rope.scaling.yarn_log_multiplier": {"float", yarnOff(0)},
}

// groups are keys of other ways to compute a layer, by their prefix: each must be off.
var groups = []string{"ssm.", "wkv.", "kda.", "time_", "token_shift", "shortconv.", "xielu.", "altup.", "laurel.", "attention.indexer.", "attention.decay_", "attention.iclr_", "attention.value_residual_",
	"attention.gate_lora", "posnet.", "convnext.", "classifier.", "dense_2_", "dense_3_"}

// audit refuses keys of the architecture that no operation reads and that would change the logits, or that are of another
// type than GGUF gives them.
func (k *keys) audit(h *Hyper) error {
	for _, key := range k.md.Keys() {
		name, ours := strings.CutPrefix(key, k.arch+".")
		if !ours || k.read[key] {
			continue
		}
		v, _ := k.md.Get(key)
		r, known := rules[name]
		for _, g := range groups {
			if !known && strings.HasPrefix(name, g) {
				r, known = rule{"", off}, true
			}
		}
		switch {
		case !known:
			h.Notes = append(h.Notes, fmt.Sprintf("key %q is not known, and is not used", key))
		case r.kind != "" && kindOf(v) != r.kind:
			return fmt.Errorf("read hyperparameters: key %q: found %s, wanted values of type %s", key, gguf.TypeName(v), r.kind)
		case !all(v, finite):
			return fmt.Errorf("read hyperparameters: key %q: found %v, wanted finite numbers", key, v)
		case !r.neutral(h, v):
			return &UnsupportedError{What: fmt.Sprintf("key %q of value", key), Have: fmt.Sprintf("%.80v", v), Want: "models of " + k.arch + " that don't use it"}
		}
	}
	return nil
}

// kindOf is what a value is made of, alone or in an array.
func kindOf(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "float"
	case isInteger(v):
		return "integer"
	}
	return gguf.TypeName(v)
}

// all holds every number of a value against a condition; a bool is 0 or 1, an empty string 0, another one NaN.
func all(v any, ok func(x float64) bool) bool {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Slice {
		for i := range r.Len() {
			if !all(r.Index(i).Interface(), ok) {
				return false
			}
		}
		return true
	}
	switch {
	case r.CanInt():
		return ok(float64(r.Int()))
	case r.CanUint():
		return ok(float64(r.Uint()))
	case r.CanFloat():
		return ok(r.Float())
	case r.Kind() == reflect.Bool:
		return r.Bool() == ok(1) || !r.Bool() && ok(0)
	}
	return r.Kind() == reflect.String
}

// Conditions under which a value changes nothing.

func anything(*Hyper, any) bool { return true }

func off(_ *Hyper, v any) bool {
	return v != "" && all(v, func(x float64) bool { return x == 0 })
}

func one(_ *Hyper, v any) bool {
	return all(v, func(x float64) bool { return x == 0 || x == 1 })
}

// dense: what is said of experts is of none.
func dense(h *Hyper, v any) bool { return h.Experts.Count == 0 || off(h, v) }

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b) }

func equal(of func(h *Hyper) float64) func(*Hyper, any) bool {
	return func(h *Hyper, v any) bool {
		return all(v, func(x float64) bool { return x == 0 || near(x, of(h)) })
	}
}

// windowed: a model without windows has no use for what is said of layers with one.
func windowed(of func(h *Hyper) float64) func(*Hyper, any) bool {
	return func(h *Hyper, v any) bool { return h.WindowPeriod == 0 || equal(of)(h, v) }
}

// seesAll: a window that holds all positions that the model was trained for is none.
func seesAll(h *Hyper, v any) bool {
	return all(v, func(x float64) bool { return x == 0 || x >= float64(h.ContextLength) })
}

func yarnOff(factor float64) func(*Hyper, any) bool {
	return func(h *Hyper, v any) bool {
		return h.Rope.ExtFactor == 0 || all(v, func(x float64) bool { return x == factor })
	}
}

// windows: the pattern is the one that the architecture has anyway, as a period or a bool for each layer.
func windows(h *Hyper, v any) bool {
	if h.WindowPeriod == 0 {
		return true // sliding_window itself is judged
	}
	if layers, ok := v.([]bool); ok {
		return pattern(layers, h.BlockCount, h.Windowed)
	}
	return isInteger(v) && all(v, func(x float64) bool { return x == float64(h.WindowPeriod) })
}

func recurrent(h *Hyper, v any) bool {
	layers, ok := v.([]bool)
	return ok && pattern(layers, h.BlockCount, h.Recurrent)
}

func pattern(layers []bool, n int, is func(layer int) bool) bool {
	if len(layers) < n {
		return false
	}
	for l := range n {
		if layers[l] != is(l) {
			return false
		}
	}
	return true
}
