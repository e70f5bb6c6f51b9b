package token

import (
	"slices"
	"strings"
	"testing"

	"leat/gguf"
)

func charsMetadata(t testing.TB, model string, more ...any) *gguf.Metadata {
	t.Helper()
	o := readOracle(t, "chars.jsonl")
	return metadata(t, model, o.pieces, append([]any{"tokenizer.ggml.merges", o.merges, "tokenizer.ggml.unknown_token_id", uint32(0)}, more...)...)
}

func TestCharsOracle(t *testing.T) {
	o := readOracle(t, "chars.jsonl")
	for name, md := range map[string]*gguf.Metadata{
		"by model": charsMetadata(t, "gemma4"),
		"by pre":   charsMetadata(t, "gpt2", "tokenizer.ggml.pre", "granite-embed-multi-311m"),
		"sarvam":   charsMetadata(t, "gpt2", "tokenizer.ggml.pre", "sarvam-moe"),
	} {
		tok := mustNew(t, md)
		o.check(t, "gemma4", tok)
		for _, text := range o.texts {
			if got, want := tok.Decode(tok.Encode(text, false, false)), strings.ReplaceAll(text, space, " "); got != want {
				t.Errorf("%s, %q: decoded %q", name, text, got)
			}
		}
	}
}

// tinyChars knows he, hello and a word across a space, but no byte but one.
func tinyChars(t testing.TB, model string, more ...any) *Tokenizer {
	t.Helper()
	pieces := []piece{{text: "<unk>", kind: unknown}, {text: "<bos>", kind: control}, {text: "<eos>", kind: control}, {text: "<0xE9>", kind: byteToken}, {text: "[x]", kind: userDefined}}
	for _, text := range []string{"h", "e", "l", "o", "▁", "he", "ll", "o▁", "▁▁", "he", "\n", "\n\n", "中"} {
		pieces = append(pieces, piece{text: text, kind: normal})
	}
	return mustNew(t, metadata(t, model, pieces, append([]any{"tokenizer.ggml.merges", []string{"h e", "l l", "o ▁", "▁ ▁", "\n \n", "中 国"},
		"tokenizer.ggml.unknown_token_id", uint32(0), "tokenizer.ggml.bos_token_id", uint32(1), "tokenizer.ggml.eos_token_id", uint32(2)}, more...)...))
}

func TestChars(t *testing.T) {
	gemma := tinyChars(t, "gemma4", "tokenizer.ggml.add_bos_token", false)
	whitespace := tinyChars(t, "whitespace", "tokenizer.ggml.normalizer.lowercase", true)
	for name, tt := range map[string]struct {
		tok           *Tokenizer
		text          string
		special       bool
		want, decoded string
	}{
		"merges cross words":       {gemma, "hello he", false, "he|ll|o▁|he", "hello he"},
		"no prefix, none dropped":  {gemma, "  he ", false, "▁▁|he|▁", "  he "},
		"newlines are apart":       {gemma, "o \n\n\nhe", false, "o▁|\n\n|\n|he", "o \n\n\nhe"},
		"a missing byte":           {gemma, "éh", false, "<unk>|<unk>|h", "h"},
		"a byte that is there":     {gemma, "\xe9h", false, "<0xE9>|h", "\xe9h"},
		"merged, but no token":     {gemma, "中国", false, "<unk>|<unk>|<unk>|<unk>|<unk>|<unk>", ""},
		"control stays text":       {gemma, "<eos>", false, "<unk>|e|o|<unk>|<unk>", "eo"},
		"control where allowed":    {gemma, "he<eos> he", true, "he|<eos>|▁|he", "he he"},
		"user-defined always":      {gemma, "he[x]he", false, "he|[x]|he", "he[x]he"},
		"white space dropped":      {whitespace, " he\u3000\n LLO he", false, "he|ll|o|he", "hellohe"},
		"of the escape nothing is": {whitespace, "o he", false, "o|he", "ohe"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := tt.tok.Encode(tt.text, false, tt.special)
			if got := texts(tt.tok, ids); got != tt.want {
				t.Errorf("tokens %s, want %s", got, tt.want)
			}
			if got := tt.tok.Decode(ids); got != tt.decoded {
				t.Errorf("decoded %q, want %q", got, tt.decoded)
			}
		})
	}
	for name, tt := range map[string]struct {
		tok  *Tokenizer
		want string
	}{
		"gemma4, whatever its file says": {gemma, "<bos>|he"},
		"sarvam-moe by its file":         {tinyChars(t, "gpt2", "tokenizer.ggml.pre", "sarvam-moe"), "he"},
		"whitespace by its file":         {whitespace, "he"},
	} {
		if got := texts(tt.tok, tt.tok.Encode("he", true, false)); got != tt.want {
			t.Errorf("%s: with special tokens %s, want %s", name, got, tt.want)
		}
	}
}

// TestCharsDouble: of two tokens spelt alike the lower id is meant.
func TestCharsDouble(t *testing.T) {
	tok := tinyChars(t, "gemma4")
	if got, want := tok.Encode("he", false, false), []ID{10}; !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}
