package token

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oracle is what testdata/vocab_oracle.js wrote: a small vocabulary, and texts with the ids that Hugging Face's tokenizers gives them
// by each kind of tokenizer that has this vocabulary.
type oracle struct {
	pieces []piece
	merges []string
	texts  []string
	ids    map[string][][]ID
}

func readOracle(t testing.TB, name string) *oracle {
	t.Helper()
	o := &oracle{ids: map[string][][]ID{}}
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", name))) {
		if o.pieces == nil {
			o.readVocabulary(t, line)
			continue
		}
		var fields map[string]json.RawMessage
		var text string
		read(t, []byte(line), &fields)
		read(t, fields["text"], &text)
		o.texts = append(o.texts, text)
		delete(fields, "text")
		for kind, field := range fields {
			var ids []ID
			read(t, field, &ids)
			o.ids[kind] = append(o.ids[kind], ids)
		}
	}
	return o
}

func (o *oracle) readVocabulary(t testing.TB, line string) {
	t.Helper()
	var v struct {
		Tokens, Merges []string
		Types          []kind
		Scores         []float32
	}
	read(t, []byte(line), &v)
	o.merges = v.Merges
	for i, text := range v.Tokens {
		p := piece{text: text, kind: v.Types[i]}
		if v.Scores != nil {
			p.score = v.Scores[i]
		}
		o.pieces = append(o.pieces, p)
	}
}

func read(t testing.TB, line []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(line, v); err != nil {
		t.Fatal(err)
	}
}

func (o *oracle) check(t *testing.T, kind string, tok *Tokenizer) {
	t.Helper()
	if len(o.ids[kind]) != len(o.texts) || len(o.texts) < 200 {
		t.Fatalf("%d ids of %s for %d texts", len(o.ids[kind]), kind, len(o.texts))
	}
	for i, text := range o.texts {
		if got, want := tok.Encode(text, false, false), o.ids[kind][i]; !slices.Equal(got, want) {
			t.Errorf("%s, %q:\ngot  %s\nwant %s", kind, text, texts(tok, got), texts(tok, want))
		}
	}
}

func wpmTokenizer(t testing.TB, more ...any) *Tokenizer {
	t.Helper()
	return mustNew(t, metadata(t, "bert", readOracle(t, "wpm.jsonl").pieces, append([]any{"tokenizer.ggml.unknown_token_id", uint32(1)}, more...)...))
}

func TestWPMOracle(t *testing.T) {
	const lower, strip = "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents"
	o := readOracle(t, "wpm.jsonl")
	for kind, keys := range map[string][]any{"uncased": nil, "cased": {lower, false}, "accents": {strip, false}} {
		o.check(t, kind, wpmTokenizer(t, keys...))
	}
}

func TestWPM(t *testing.T) {
	pieces := []piece{{"[UNK]", unknown, 0}, {"[CLS]", control, 0}, {"[SEP]", control, 0}, {"▁he", normal, 0}, {"llo", normal, 0}, {"▁hello", normal, 0}, {"ll", normal, 0},
		{"o", normal, 0}, {"▁.", normal, 0}, {"[x]", userDefined, 0}, {"▁中", normal, 0}, {"中", normal, 0}, {"e", normal, 0}}
	tok := mustNew(t, metadata(t, "bert", pieces, "tokenizer.ggml.cls_token_id", uint32(1), "tokenizer.ggml.seperator_token_id", uint32(2),
		"tokenizer.ggml.unknown_token_id", uint32(0), "tokenizer.ggml.add_bos_token", false))
	for name, tt := range map[string]struct {
		text          string
		special       bool
		want, decoded string
	}{
		"the longest from the left": {"hello helloll", false, "▁hello|▁hello|ll", "hello helloll"},
		"case and accents go":       {"HÈLLO", false, "▁hello", "hello"},
		"unknown as a whole":        {"hellox he", false, "[UNK]|▁he", "he"},
		"inside is not the start":   {"llo", false, "[UNK]", ""},
		"signs are words":           {"he.he", false, "▁he|▁.|▁he", "he . he"},
		"Han is a word each":        {"中中", false, "▁中|▁中", "中 中"},
		"what can't be seen goes":   {"h\u00ade\x00llo \ufffd\xff", false, "▁hello", "hello"},
		"100 runes":                 {"he" + strings.Repeat("é", 98), false, "▁he" + strings.Repeat("|e", 98), "he" + strings.Repeat("e", 98)},
		"101 runes":                 {"he" + strings.Repeat("é", 99), false, "[UNK]", ""},
		"the escape is a character": {"▁he", false, "[UNK]", ""},
		"empty":                     {"", false, "", ""},
		"control stays text":        {"[SEP]", false, "[UNK]|[UNK]|[UNK]", ""},
		"control where allowed":     {"he[SEP]he", true, "▁he|[SEP]|▁he", "he he"},
		"user-defined always":       {"he[x]he", false, "▁he|[x]|▁he", "he[x] he"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := tok.Encode(tt.text, false, tt.special)
			if got := texts(tok, ids); got != tt.want {
				t.Errorf("tokens %s, want %s", got, tt.want)
			}
			if got := tok.Decode(ids); got != tt.decoded {
				t.Errorf("decoded %q, want %q", got, tt.decoded)
			}
		})
	}
	// Whatever add_bos_token says.
	if got, want := texts(tok, tok.Encode("he", true, false)), "[CLS]|▁he|[SEP]"; got != want {
		t.Errorf("with special tokens %s, want %s", got, want)
	}
}
