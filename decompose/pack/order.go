package pack

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// layerOrder is the order in which a layer uses its tensors, without "blk.N." and without the
// ".weight" or ".bias" behind. What is not here comes after, by name.
var layerOrder = []string{
	"attn_norm", "attn_norm_2",
	"attn_q_a", "attn_q_a_norm", "attn_q_b", // latent attention
	"attn_q", "attn_k", "attn_v", "attn_qkv",
	"attn_kv_a_mqa", "attn_kv_a_norm", "attn_kv_b", "attn_k_b", "attn_v_b",
	"attn_q_norm", "attn_k_norm", "attn_sinks", "attn_gate", "attn_sub_norm",
	"ssm_f_a", "ssm_f_b", "ssm_g_a", "ssm_g_b", "ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v", // of Kimi delta attention
	"attn_output",
	"ssm_in", "ssm_ba", "ssm_beta", "ssm_alpha", "ssm_conv1d", "ssm_x", "ssm_a", "ssm_dt_norm", "ssm_dt", "ssm_b_norm", "ssm_c_norm", "ssm_d", "ssm_norm", "ssm_out",
	"shortconv.in_proj", "shortconv.conv", "shortconv.out_proj",
	"post_attention_norm", "attn_output_norm", "attn_post_norm",
	"ffn_norm",
	"ffn_gate_inp", "exp_probs_b", "ffn_latent_down",
	"ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps",
	"ffn_gate_inp_shexp", "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp", "ffn_latent_up",
	"ffn_gate", "ffn_up", "ffn_sub_norm", "ffn_down",
	"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2", // of an FFN and experts side by side
	"post_ffw_norm", "ffn_post_norm", "inp_gate", "proj", "post_norm", "layer_output_norm", "layer_output_scale",
}

var layerRank = func() map[string]int {
	rank := make(map[string]int, len(layerOrder))
	for i, name := range layerOrder {
		rank[name] = i
	}
	return rank
}()

// suffixRank puts a weight before its bias and both before anything else.
func suffixRank(suffix string) int {
	switch suffix {
	case "weight":
		return 0
	case "bias":
		return 1
	}
	return 2
}

// sortTensors puts the tensors of one unit into execution order.
func sortTensors(tensors []Tensor) {
	type key struct {
		rank, suffix int
		name         string
	}
	keyOf := func(name string) key {
		_, rest, ok := splitLayer(name)
		if !ok {
			rest = name
		}
		base, suffix, _ := strings.Cut(rest, ".")
		if base == "shortconv" {
			part, behind, _ := strings.Cut(suffix, ".")
			base, suffix = base+"."+part, behind
		}
		rank, known := layerRank[base]
		if !known {
			rank = len(layerOrder)
		}
		k := key{rank: rank, name: name}
		if known {
			k.suffix = suffixRank(suffix)
		}
		return k
	}
	slices.SortFunc(tensors, func(a, b Tensor) int {
		ka, kb := keyOf(a.Name), keyOf(b.Name)
		return cmp.Or(ka.rank-kb.rank, ka.suffix-kb.suffix, cmp.Compare(ka.name, kb.name))
	})
}

// splitLayer takes "blk.17.attn_q.weight" apart into 17 and "attn_q.weight". A number not written the
// plain way (blk.007) is no layer's: two spellings must not meet in one.
func splitLayer(name string) (layer int, rest string, ok bool) {
	s, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, "", false
	}
	num, rest, ok := strings.Cut(s, ".")
	if !ok || rest == "" {
		return 0, "", false
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 || n > maxLayer || strconv.Itoa(n) != num {
		return 0, "", false
	}
	return n, rest, true
}

var expertStacks = []string{"ffn_gate_up_exps.", "ffn_gate_exps.", "ffn_up_exps.", "ffn_down_exps."}

// classify says which unit a tensor belongs to, by its name alone. A stack of experts may still
// end in its layer: see splitExperts.
func classify(name string) (Kind, int) {
	if layer, rest, ok := splitLayer(name); ok {
		for _, p := range expertStacks {
			if strings.HasPrefix(rest, p) {
				return Experts, layer
			}
		}
		return Layer, layer
	}
	switch {
	case name == "token_embd.weight":
		return Embed, -1
	case name == "output.weight":
		return Head, -1
	case strings.HasPrefix(name, "output_norm."):
		return Norm, -1
	}
	return Global, -1
}
