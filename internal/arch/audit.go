package arch

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"leat/gguf"
)

// rule says what values a key of a GGUF file may have if no operation reads the key.
type rule struct {
	kind    string                     // type of the value: integer, float, bool or string, or an array of one for each layer; "": any
	neutral func(h *Hyper, v any) bool // reports whether the value v leaves the logits unchanged
}

// hadamardPrefix begins the keys of files whose weights are multiplied by a Hadamard matrix. X would have to be multiplied by it, too, which leat does not do.
const hadamardPrefix = "prism.hadamard."

// rules holds rules for the keys of GGUF that can change the logits of a model of some architecture, or that look as if they did, by the key's name without
// the architecture. A rule applies if the architecture's reader has not read the key. A key that is neither read nor in this list gets a note.
var rules = map[string]rule{
	// Keys without effect on the logits.
	"vocab_size":                   {"integer", anything}, // see checkVocabulary
	"tensor_data_layout":           {"string", anything},
	"attention.group_norm_epsilon": {"float", anything},
	"rope.scaling.finetuned":       {"bool", anything},
	"rope.dimension_sections":      {"integer", anything}, // text has the same position in all of them
	"n_deepstack_layers":           {"integer", anything}, // they add features of images, and text has none

	// Keys of the residual stream and the logits.
	"embedding_length_out":             {"integer", equals(func(h *Hyper) float64 { return float64(h.EmbeddingLength) })},
	"embedding_length_per_layer_input": {"integer", isZero},
	"embedding_scale":                  {"float", isOne},
	"residual_scale":                   {"float", isOne},
	"logit_scale":                      {"float", isOne},
	"final_logit_softcapping":          {"float", isZero},
	"use_parallel_residual":            {"bool", isZero},
	"rescale_every_n_layers":           {"integer", isZero},
	"swin_norm":                        {"bool", isZero},
	"features_length":                  {"integer", isZero},
	"decoder_block_count":              {"integer", isZero},
	"decoder_start_token_id":           {"integer", isZero},

	// Keys of FFNs and experts.
	"swiglu_clamp_exp":                  {"float", isZero},
	"swiglu_clamp_shexp":                {"float", isZero},
	"activation_sparsity_scale":         {"float", isZero},
	"router_logit_softcapping":          {"float", isZero},
	"leading_dense_block_count":         {"integer", isZeroIfMixture},
	"interleave_moe_layer_step":         {"integer", isZeroIfMixture},
	"moe_every_n_layers":                {"integer", isZeroIfMixture},
	"moe_latent_size":                   {"integer", isZeroIfMixture},
	"expert_feed_forward_length":        {"integer", isZeroIfMixture},
	"expert_shared_feed_forward_length": {"integer", isZeroIfMixture},
	"expert_chunk_feed_forward_length":  {"integer", isZeroIfMixture},
	"expert_used_count":                 {"integer", isZeroIfMixture},
	"expert_shared_count":               {"integer", isZeroIfMixture},
	"expert_group_count":                {"integer", isZeroIfMixture},
	"expert_group_used_count":           {"integer", isZeroIfMixture},
	"experts_per_group":                 {"integer", isZeroIfMixture},
	"expert_gating_func":                {"integer", isZeroIfMixture},
	"expert_weights_norm":               {"bool", isZeroIfMixture},
	"expert_weights_scale":              {"float", isZeroIfMixture},
	"expert_group_scale":                {"float", isZeroIfMixture},

	// Keys of attention.
	"attention.causal":                 {"bool", func(h *Hyper, v any) bool { return v == !h.Encoder }},
	"attention.scale":                  {"float", equals(func(h *Hyper) float64 { return float64(h.AttentionScale) })},
	"attention.output_scale":           {"float", isOne},
	"attention.value_scale":            {"float", isOne},
	"attention.temperature_scale":      {"float", isZero},
	"attention.temperature_length":     {"integer", isZero},
	"attention.max_alibi_bias":         {"float", isZero},
	"attention.clamp_kqv":              {"float", isZero},
	"attn_logit_softcapping":           {"float", isZero},
	"attention.group_norm_groups":      {"integer", isZero},
	"attention.relative_buckets_count": {"integer", isZero},
	"attention.shared_kv_layers":       {"integer", isZero},
	"attention.q_lora_rank":            {"integer", isZero},
	"attention.kv_lora_rank":           {"integer", isZero},
	"attention.key_length_mla":         {"integer", isZero},
	"attention.value_length_mla":       {"integer", isZero},
	"attention.sliding_window":         {"integer", coversContext},
	"attention.sliding_window_pattern": {"", sameWindows},
	"attention.key_length_swa":         {"integer", equalsIfWindowed(func(_ *Hyper, s *LayerShape) float64 { return float64(s.KeyLength) })},
	"attention.value_length_swa":       {"integer", equalsIfWindowed(func(_ *Hyper, s *LayerShape) float64 { return float64(s.ValueLength) })},
	"attention.indexer.types":          {"bool", hasIndexer}, // in which layers it chooses: the others see the last choice
	"attention.recurrent_layers":       {"bool", sameRecurrence},
	"full_attention_interval":          {"integer", isOne}, // every layer has attention

	// Keys of attention and of FFNs, where no layer has any.
	"attention.head_count":    {"integer", isZero},
	"attention.head_count_kv": {"integer", isZero},
	"feed_forward_length":     {"integer", isZero},

	// Keys of rope, where nothing is rotated.
	"rope.dimension_count":                 {"integer", anything},
	"rope.freq_base":                       {"float", anything},
	"rope.scaling.type":                    {"string", anything},
	"rope.scaling.factor":                  {"float", anything},
	"rope.scaling.original_context_length": {"integer", anything},

	// Keys of rope.
	"rope.dimension_count_swa":         {"integer", equalsIfWindowed(func(h *Hyper, s *LayerShape) float64 { return float64(h.Ropes[max(0, s.Rope)].Dim) })},
	"rope.freq_base_swa":               {"float", equalsIfWindowed(func(h *Hyper, s *LayerShape) float64 { return h.Ropes[max(0, s.Rope)].Base })},
	"rope.scaling.alpha":               {"float", isOne},
	"rope.scaling.yarn_attn_factor":    {"float", anything}, // YaRN is off
	"rope.scaling.yarn_log_multiplier": {"float", isZeroIfYaRN},
}

// foreignPrefixes begin keys of kinds of layers that an architecture does not have, if its reader has not read them. The keys' values must be 0 or false.
var foreignPrefixes = []string{"ssm.", "wkv.", "kda.", "time_", "token_shift", "shortconv.", "xielu.", "altup.", "laurel.", "attention.indexer.", "attention.decay_", "attention.iclr_", "attention.value_residual_",
	"attention.gate_lora", "posnet.", "convnext.", "classifier.", "dense_2_", "dense_3_"}

// audit judges the file's keys of the architecture that k has not read. It refuses a file in which such a key has a value that would change the logits, another
// type than in GGUF's specification, or a number that is not finite. For keys that it does not know it adds a note to h.
func (k *keys) audit(h *Hyper) error {
	for _, key := range k.md.Keys() {
		if strings.HasPrefix(key, hadamardPrefix) {
			return &UnsupportedError{What: fmt.Sprintf("key %q:", key), Have: "a rotated basis of the weights", Want: "files that a converter made without it"}
		}
		name, prefixed := strings.CutPrefix(key, k.arch+".")
		if !prefixed && !strings.HasPrefix(key, "xielu.") || k.read[key] { // the keys of xIELU have no prefix
			continue
		}
		v, _ := k.md.Get(key)
		r, known := rules[name]
		for _, prefix := range foreignPrefixes {
			if !known && strings.HasPrefix(name, prefix) {
				r, known = rule{"", isZero}, true
			}
		}
		switch {
		case !known:
			h.Notes = append(h.Notes, fmt.Sprintf("key %q is not known, and is not used", key))
		case r.kind != "" && kindOf(v) != r.kind:
			return fmt.Errorf("read hyperparameters: key %q: found %s, wanted values of type %s", key, gguf.TypeName(v), r.kind)
		case !allNumbers(v, finite):
			return fmt.Errorf("read hyperparameters: key %q: found %v, wanted finite numbers", key, v)
		case !r.neutral(h, v):
			return &UnsupportedError{What: fmt.Sprintf("key %q of value", key), Have: fmt.Sprintf("%.80v", v), Want: "models of " + k.arch + " that don't use it"}
		}
	}
	return nil
}

// kindOf is the type of a value, or of the elements of an array: integer, float, bool or string; for other types their [gguf.TypeName].
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

// allNumbers reports whether ok holds for every number in a value or an array. A bool counts as 0 or 1; a string holds no number.
func allNumbers(v any, ok func(x float64) bool) bool {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Slice {
		for i := range r.Len() {
			if !allNumbers(r.Index(i).Interface(), ok) {
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
		return r.Bool() && ok(1) || !r.Bool() && ok(0)
	}
	return r.Kind() == reflect.String
}

// The functions below are for rule.neutral, or return functions for it: each reports whether a key's value, a single one or an array, leaves the logits
// unchanged.

// anything is for keys that never change the logits.
func anything(*Hyper, any) bool { return true }

// hasIndexer reports whether the model has an indexer, which has nothing to choose in the contexts that leat runs.
func hasIndexer(h *Hyper, _ any) bool { return h.Indexer.Top > 0 }

// isZero reports whether all numbers of a value are 0 or false. A string is neither. An array of strings, such as classifier.output_labels, has no numbers
// and passes.
func isZero(_ *Hyper, v any) bool {
	_, text := v.(string)
	return !text && allNumbers(v, func(x float64) bool { return x == 0 })
}

// isOne reports whether each number of a value is 1, or 0, which means that the key is not used.
func isOne(_ *Hyper, v any) bool {
	return allNumbers(v, func(x float64) bool { return x == 0 || x == 1 })
}

// isZeroIfMixture reports whether all numbers of a value are 0, or the model has no experts.
func isZeroIfMixture(h *Hyper, v any) bool { return h.Experts.Count == 0 || isZero(h, v) }

// near reports whether a and b are equal, up to rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-5*math.Abs(b) }

// equals returns a function that reports whether each number of a value is the hyperparameter of(h), up to rounding, or 0, which means that the key is not
// used.
func equals(of func(h *Hyper) float64) func(*Hyper, any) bool {
	return func(h *Hyper, v any) bool {
		return allNumbers(v, func(x float64) bool { return x == 0 || near(x, of(h)) })
	}
}

// equalsIfWindowed is equals for keys of layers with a window, each of which must pass it: of gets the layer's shape. The function accepts any value if no layer
// has a window.
func equalsIfWindowed(of func(h *Hyper, s *LayerShape) float64) func(*Hyper, any) bool {
	return func(h *Hyper, v any) bool {
		for l := range h.Layers {
			if h.Windowed(l) && !equals(func(h *Hyper) float64 { return of(h, &h.Layers[l]) })(h, v) {
				return false
			}
		}
		return true
	}
}

// coversContext reports whether a window, in positions, is 0 or at least as long as the trained context: then attention sees all positions anyway.
func coversContext(h *Hyper, v any) bool {
	return allNumbers(v, func(x float64) bool { return x == 0 || x >= float64(h.ContextLength) })
}

// isZeroIfYaRN reports whether all numbers of a value are 0, or the model does not use YaRN.
func isZeroIfYaRN(h *Hyper, v any) bool {
	return !slices.ContainsFunc(h.Ropes, func(r Rope) bool { return r.ExtFactor != 0 }) || isZero(h, v)
}

// sameWindows reports whether a value gives the same layers a window as [Hyper.Windowed], or no layer has one. The value is a bool for each layer, or a number n:
// of each n layers all but the last have a window.
func sameWindows(h *Hyper, v any) bool {
	if len(h.Masks) == 1 {
		return true // the rule of attention.sliding_window decides
	}
	layers, ok := v.([]bool)
	if !ok {
		layers = make([]bool, h.BlockCount)
		for l := range layers {
			layers[l] = isInteger(v) && allNumbers(v, func(n float64) bool { return n >= 1 && allButLast(l, int(n)) })
		}
	}
	return samePattern(layers, h.BlockCount, h.Windowed)
}

// sameRecurrence reports whether a value, a bool for each layer, gives the same layers a state as LayerShape.State.
func sameRecurrence(h *Hyper, v any) bool {
	layers, ok := v.([]bool)
	return ok && samePattern(layers, h.BlockCount, func(l int) bool { return h.Layers[l].State })
}

// samePattern reports whether layers[l] equals is(l) for each of the first n layers.
func samePattern(layers []bool, n int, is func(layer int) bool) bool {
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
