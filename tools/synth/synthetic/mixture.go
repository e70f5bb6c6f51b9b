package synthetic

import (
	"fmt"
	"strings"

	"leat/gguf"
	"leat/gguf/quant"
)

// mixture is how a named quantisation spreads types over tensors.
type mixture struct {
	base     gguf.Type
	mixed    bool // with Q6_K where quality needs it
	fileType int  // general.file_type
}

// parseMixture knows q4_k_m and q5_k_m, and every type that quant can make, pure.
func parseMixture(s string) (mixture, error) {
	switch strings.ToLower(s) {
	case "q4_k_m":
		return mixture{gguf.Q4_K, true, 15}, nil
	case "q5_k_m":
		return mixture{gguf.Q5_K, true, 17}, nil
	}
	t, err := gguf.ParseType(s)
	if err != nil || !quant.Supported(t) {
		return mixture{}, fmt.Errorf("quantisation: found %q, want q4_k_m, q5_k_m or one of %v", s, quant.Types())
	}
	return mixture{t, false, t.FileType()}, nil
}

// typeOf is the type of a matrix named by its tensor's middle part ("attn_v") in a layer.
// The choice is the one that published files show.
func (m mixture) typeOf(name string, layer int, s Shape) gguf.Type {
	if !m.mixed {
		return m.base
	}
	switch name {
	case "output":
		return gguf.Q6_K
	case "token_embd":
		if s.TiedEmbeddings { // it is the output too
			return gguf.Q6_K
		}
	case "attn_k", "attn_v":
		if s.ExpertCount == 8 { // small beside eight experts
			return gguf.Q8_0
		}
		if name == "attn_v" && moreBits(layer, s.BlockCount) {
			return gguf.Q6_K
		}
	case "attn_output":
		if s.ExpertCount == 8 {
			return gguf.Q5_K
		}
	case "ffn_down", "ffn_down_exps":
		if moreBits(layer, s.BlockCount) {
			return gguf.Q6_K
		}
	}
	return m.base
}

// moreBits is true for the first and last eighth of the layers and every third between.
func moreBits(layer, layers int) bool {
	eighth := layers / 8
	return layer < eighth || layer >= 7*layers/8 || (layer-eighth)%3 == 2
}

// fitting is t, or where rows of cols values are not whole blocks of it, the nearest
// type of which they are.
func fitting(t gguf.Type, cols int64) gguf.Type {
	smaller := map[gguf.Type]gguf.Type{
		gguf.Q2_K: gguf.Q4_0, gguf.Q3_K: gguf.Q4_0, gguf.Q4_K: gguf.Q5_0, gguf.Q5_K: gguf.Q5_1, gguf.Q6_K: gguf.Q8_0, gguf.IQ4_XS: gguf.IQ4_NL,
		gguf.IQ3_XXS: gguf.IQ4_NL, gguf.IQ3_S: gguf.IQ4_NL, gguf.IQ2_XXS: gguf.Q2_0, gguf.IQ2_XS: gguf.Q2_0, gguf.IQ2_S: gguf.Q2_0,
		gguf.IQ1_S: gguf.Q2_0, gguf.IQ1_M: gguf.Q2_0, gguf.TQ1_0: gguf.Q2_0, gguf.TQ2_0: gguf.Q2_0, gguf.Q1_0: gguf.Q2_0,
	}
	if cols%int64(t.BlockSize()) == 0 {
		return t
	}
	if s, ok := smaller[t]; ok && cols%int64(s.BlockSize()) == 0 {
		return s
	}
	return gguf.F16
}
