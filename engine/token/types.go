package token

import "leat/gguf"

// keyType is what a key holds.
type keyType string

const (
	aString     keyType = "a string"
	aBool       keyType = "a bool"
	anID        keyType = "an integer"
	stringList  keyType = "an array of strings"
	integerList keyType = "an array of integers"
	byteList    keyType = "an array of bytes"
	floatList   keyType = "an array of floats" // int32 will do
)

// keyTypes are the keys of GGUF for tokenizers whose type is known, read here or not.
var keyTypes = map[string]keyType{
	"tokenizer.ggml.model":                    aString,
	"tokenizer.ggml.pre":                      aString,
	"tokenizer.ggml.tokens":                   stringList,
	"tokenizer.ggml.merges":                   stringList,
	"tokenizer.ggml.token_type":               integerList,
	"tokenizer.ggml.scores":                   floatList,
	"tokenizer.ggml.add_bos_token":            aBool,
	"tokenizer.ggml.add_eos_token":            aBool,
	"tokenizer.ggml.add_sep_token":            aBool,
	"tokenizer.ggml.add_space_prefix":         aBool,
	"tokenizer.ggml.precompiled_charsmap":     byteList,
	"tokenizer.ggml.suppress_tokens":          integerList,
	"tokenizer.ggml.normalizer.lowercase":     aBool,
	"tokenizer.ggml.normalizer.strip_accents": aBool,
	"tokenizer.ggml.remove_extra_whitespaces": aBool,
	"tokenizer.ggml.token_type_count":         anID,
	"tokenizer.ggml.bos_token_id":             anID,
	"tokenizer.ggml.eos_token_id":             anID,
	"tokenizer.ggml.eot_token_id":             anID,
	"tokenizer.ggml.eom_token_id":             anID,
	"tokenizer.ggml.unknown_token_id":         anID,
	"tokenizer.ggml.cls_token_id":             anID,
	"tokenizer.ggml.seperator_token_id":       anID, // as the format spells it
	"tokenizer.ggml.padding_token_id":         anID,
	"tokenizer.ggml.mask_token_id":            anID,
	"tokenizer.ggml.fim_pre_token_id":         anID,
	"tokenizer.ggml.fim_suf_token_id":         anID,
	"tokenizer.ggml.fim_mid_token_id":         anID,
	"tokenizer.ggml.fim_pad_token_id":         anID,
	"tokenizer.ggml.fim_rep_token_id":         anID,
	"tokenizer.ggml.fim_sep_token_id":         anID,
	"tokenizer.ggml.prefix_token_id":          anID,
	"tokenizer.ggml.suffix_token_id":          anID,
	"tokenizer.ggml.middle_token_id":          anID,
}

func (k keyType) fits(v any) (ok bool) {
	switch k {
	case aString:
		_, ok = v.(string)
	case aBool:
		_, ok = v.(bool)
	case stringList:
		_, ok = v.([]string)
	case floatList:
		switch v.(type) {
		case []float32, []float64, []int32:
			ok = true
		}
	case byteList:
		switch v.(type) {
		case []uint8, []int8:
			ok = true
		}
	case anID:
		switch v.(type) {
		case uint8, int8, uint16, int16, uint32, int32, uint64, int64:
			ok = true
		}
	case integerList:
		switch v.(type) {
		case []uint8, []int8, []uint16, []int16, []uint32, []int32, []uint64, []int64:
			ok = true
		}
	}
	return ok
}

// checkTypes refuses a key of the wrong type: it must not be as if it weren't there.
func checkTypes(md *gguf.Metadata) error {
	for _, key := range md.Keys() {
		want, known := keyTypes[key]
		if list, array := md.Elements(key); !known || array && list.Type == gguf.String && want == stringList {
			continue // a large one stays as it is in the file
		}
		if v, _ := md.Get(key); !want.fits(v) {
			return badKey(key, gguf.TypeName(v), "%s", string(want))
		}
	}
	return nil
}
