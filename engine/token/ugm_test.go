package token

import (
	"strings"
	"testing"

	"leat/gguf"
)

const prefixKey, collapseKey = "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces"

func ugmMetadata(t testing.TB, pieces []piece, more ...any) *gguf.Metadata {
	t.Helper()
	return metadata(t, "t5", pieces, append([]any{"tokenizer.ggml.unknown_token_id", uint32(0), "tokenizer.ggml.eos_token_id", uint32(1)}, more...)...)
}

// ugmTokenizer has pieces of real texts, with or without a token for each byte.
func ugmTokenizer(t testing.TB, bytes bool) *Tokenizer {
	t.Helper()
	pieces := readOracle(t, "ugm.jsonl").pieces
	if !bytes {
		pieces = pieces[:len(pieces)-256]
	}
	return mustNew(t, ugmMetadata(t, pieces, prefixKey, true, collapseKey, true))
}

func TestUGMOracle(t *testing.T) {
	o := readOracle(t, "ugm.jsonl")
	o.check(t, "ugm", ugmTokenizer(t, false))
	o.check(t, "bytes", ugmTokenizer(t, true))
}

func TestUGM(t *testing.T) {
	pieces := []piece{{"<unk>", unknown, 0}, {"</s>", control, 0}, {"▁", normal, -4}, {"▁he", normal, -3}, {"he", normal, -3.5}, {"h", normal, -5}, {"e", normal, -5}, {"ll", normal, -3},
		{"l", normal, -4}, {"o", normal, -4}, {"llo", normal, -9}, {"[x]", userDefined, 0}, {"▁hell", unused, 9}, {"A", normal, -6}, {"ell", normal, -6}, {"<0x41>", byteToken, 0}}
	replacements := charsmapOf(map[string]string{"É": "e", "\t": " ", "\u00ad": "", "Ａ": "A", "［": "["})
	plain := mustNew(t, ugmMetadata(t, pieces))
	prefix := mustNew(t, ugmMetadata(t, pieces, prefixKey, true))
	both := mustNew(t, ugmMetadata(t, pieces, prefixKey, true, collapseKey, true, charsmapKey, replacements))
	for name, tt := range map[string]struct {
		tok           *Tokenizer
		text          string
		special       bool
		want, decoded string
	}{
		"the greatest sum":         {plain, "hello", false, "he|ll|o", "hello"},
		"spaces stay":              {plain, " he  ", false, "▁he|▁|▁", " he  "},
		"a prefix":                 {prefix, "hello  he", false, "▁he|ll|o|▁|▁he", "hello  he"},
		"a space beside a prefix":  {prefix, " he", false, "▁|▁he", " he"},
		"only spaces":              {prefix, "  ", false, "▁|▁", " "},
		"one space before a word":  {both, "  he \t he  ", false, "▁he|▁he", "he he"},
		"only spaces, collapsed":   {both, " \t ", false, "", ""},
		"replaced":                 {both, "hÉl\u00adlＡ", false, "▁he|ll|A", "hellA"},
		"a run of unknown is one":  {both, "日本he日", false, "▁|<unk>|he|<unk>", "he"},
		"not UTF-8":                {both, "h\xff", false, "▁|h|<unk>", "h"},
		"unused is no piece":       {both, "hell", false, "▁he|ll", "hell"},
		"control stays text":       {plain, "</s>", false, "<unk>", ""},
		"control where allowed":    {both, "he</s>he", true, "▁he|</s>|▁he", "he he"},
		"user-defined always":      {both, "he[x]he", false, "▁he|[x]|▁he", "he[x] he"},
		"user-defined, as it ends": {both, "［x]", false, "▁|[x]", "[x]"},
		"empty":                    {both, "", false, "", ""},
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
	if got, want := texts(both, both.Encode("he", true, false)), "▁he|</s>"; got != want {
		t.Errorf("with special tokens %s, want %s", got, want)
	}
}

// TestUGMBrute: no way to cut a text has a greater sum.
func TestUGMBrute(t *testing.T) {
	tok := ugmTokenizer(t, false)
	m := tok.model.(*ugm)
	var best func(text string) float64
	best = func(text string) float64 {
		if text == "" {
			return 0
		}
		top := m.unkScore + best(text[len(string([]rune(text)[0])):])
		for id, piece := range m.texts {
			if k := m.kinds[id]; piece != "" && k == normal && strings.HasPrefix(text, piece) {
				top = max(top, m.score(ID(id))+best(text[len(piece):]))
			}
		}
		return top
	}
	for _, text := range []string{"the sure", "isn't it", "12,3", "XMLHtt"} {
		e := m.encoder().(*ugmEncoder)
		normal := m.normalize(text)
		e.search(normal)
		if got, want := e.cuts[len(normal)].score, best(normal); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%q: sum %g, want %g", text, got, want)
		}
	}
}
