package token

import (
	"slices"
	"strings"

	"leat/gguf"
)

// strips are the special tokens that swallow the white space beside them. Tokenizers' own files say so; the keys of GGUF can't, hence
// the field's rules by name.
type strips struct {
	before, after map[ID]bool
}

const whiteSpace = " \t\n\v\f\r"

func readStrips(md *gguf.Metadata, v *vocab) strips {
	model, _ := md.String("tokenizer.ggml.model")
	pre, _ := md.String("tokenizer.ggml.pre")
	name, _ := md.String("general.name")
	has := func(s string, parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
	}
	switch {
	case md.Architecture() == "phi3" && model == "llama":
		return strips{after: v.specials(func(text string) bool { return text != "<unk>" && text != "<s>" && text != "<|endoftext|>" })}
	case has(pre, "jina-v2-de", "jina-v2-es", "jina-v2-code"), has(md.Architecture(), "nomic-bert-moe", "jina-bert-v3"):
		return strips{before: v.specials(func(text string) bool { return text == "<mask>" })}
	case has(strings.ToLower(name), "modern-bert"):
		return strips{before: v.specials(func(text string) bool { return text == "[MASK]" })}
	}
	return strips{}
}

// specials are the tokens found before all else whose spelling is wanted.
func (v *vocab) specials(wanted func(text string) bool) map[ID]bool {
	ids := map[ID]bool{}
	for i, text := range v.texts {
		if k := v.kinds[i]; (k == control || k == userDefined || k == unknown) && wanted(text) {
			ids[ID(i)] = true
		}
	}
	return ids
}
