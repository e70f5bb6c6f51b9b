package token

import (
	"slices"
	"strings"
	"testing"

	"leat/gguf"
)

// texts are the vocabulary's spellings of ids, joined by a bar.
func texts(t *Tokenizer, ids []ID) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, t.Text(id))
	}
	return strings.Join(parts, "|")
}

func TestSPM(t *testing.T) {
	pieces := append(slices.Clone(hello), piece{"[x]", userDefined, 0}, piece{"lolo", unused, -1.5})
	tests := map[string]struct {
		text          string
		special       bool
		want, decoded string
	}{
		"merges by score, not by place": {"hello", false, "▁he|ll|o", "hello"},
		"empty":                         {"", false, "", ""},
		"one space":                     {" ", false, "▁▁", " "},
		"spaces between":                {"he  he", false, "▁he|▁|▁he", "he  he"},
		"a rune without a piece":        {"日", false, "▁|<0xE6>|<0x97>|<0xA5>", "日"},
		"not UTF-8":                     {"h\xffé\xc3", false, "▁h|<0xFF>|é|<0xC3>", "h\xffé\xc3"},
		"the escape itself is a space":  {"▁he", false, "▁|▁he", " he"},
		"control stays text":            {"<s>", false, "▁|<s|>", "<s>"},
		"control where allowed":         {"he<s>he", true, "▁he|<s>|▁he", "he he"},
		"unknown stays text":            {"<unk>", false, "▁|<|<0x75>|<0x6E>|<0x6B>|>", "<unk>"},
		"bytes' spelling stays text":    {"<0x41>", false, "▁|<|<0x30>|<0x78>|<0x34>|<0x31>|>", "<0x41>"},
		"user-defined always":           {"he[x]he", false, "▁he|[x]|▁he", "he[x] he"},
		"an unused piece falls apart":   {"lolo", false, "▁|lo|lo", "lolo"},
		"equal scores go from the left": {"lll", false, "▁|ll|l", "lll"},
	}
	tok := mustNew(t, metadata(t, "llama", tinySPM(pieces...)))
	for name, tt := range tests {
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
}

func TestSPMWithoutPrefix(t *testing.T) {
	tok := mustNew(t, metadata(t, "llama", tinySPM(hello...), "tokenizer.ggml.add_space_prefix", false))
	for text, want := range map[string]string{"hello": "he|ll|o", " hello": "▁he|ll|o"} {
		ids := tok.Encode(text, false, false)
		if got := texts(tok, ids); got != want {
			t.Errorf("%q: tokens %s, want %s", text, got, want)
		}
		if got := tok.Decode(ids); got != text {
			t.Errorf("%q: decoded %q", text, got)
		}
	}
}

// TestSPMUnknown: without byte tokens a run of unknown runes is one unknown token.
func TestSPMUnknown(t *testing.T) {
	vocab := append([]piece{{"<unk>", unknown, 0}, {"<s>", control, 0}, {"</s>", control, 0}}, hello...)
	tok := mustNew(t, metadata(t, "llama", vocab))
	ids := tok.Encode("日本h日", false, false)
	if got, want := texts(tok, ids), "▁|<unk>|h|<unk>"; got != want {
		t.Errorf("tokens %s, want %s", got, want)
	}
	if got := tok.Decode(ids); got != "h" {
		t.Errorf("decoded %q", got)
	}
}

func TestBPE(t *testing.T) {
	tests := map[string]struct {
		pre, text     string
		special       bool
		want, decoded string
	}{
		"merges by rank":          {"gpt-2", "hello hello", false, "h|e|l|lo|Ġhe|l|lo", "hello hello"},
		"a chain of merges":       {"gpt-2", " helo", false, "Ġhelo", " helo"},
		"empty":                   {"gpt-2", "", false, "", ""},
		"not UTF-8":               {"qwen2", "\xffe\xc3", false, "ÿ|e|Ã", "\xffe\xc3"},
		"control stays text":      {"qwen2", "<|a|>", false, "<|||a|||>", "<|a|>"},
		"control where allowed":   {"qwen2", "<|a|>e", true, "<|a|>|e", "e"},
		"the longest":             {"qwen2", "<|a|>b", true, "<|a|>b", ""},
		"user-defined always":     {"qwen2", "e[x]e", false, "e|[x]|e", "e[x]e"},
		"ignores merges":          {"llama-bpe", "whole", false, "whole", "whole"},
		"merges alone":            {"qwen2", "whole", false, "w|h|o|l|e", "whole"},
		"llama-bpe digits, three": {"llama-bpe", "1234", false, "1|2|3|4", "1234"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tok := newTinyBPE(t, tt.pre)
			ids := tok.Encode(tt.text, false, tt.special)
			if got := texts(tok, ids); got != tt.want {
				t.Errorf("tokens %s, want %s", got, tt.want)
			}
			if got := tok.Decode(ids); got != tt.decoded {
				t.Errorf("decoded %q, want %q", got, tt.decoded)
			}
		})
	}
}

// TestSplit looks at the words before any merging.
func TestSplit(t *testing.T) {
	for _, tt := range []struct{ pre, text, want string }{
		{"gpt-2", "I'm 1234  x\n\ny", "I|'m| 1234| | x|\n|\n|y"},
		{"llama-bpe", "I'M 1234  x\n\ny!\n", "I|'M| |123|4| | x|\n\n|y|!\n"},
		{"qwen2", "I'M 12  x \r\n y", "I|'M| |1|2| | x| \r\n| y"},
		{"default", "I'm 12345 $x!? y", "I|'|m| |123|45| |$|x|!?| y"},
		{"qwen2", "a\xff\xfeb", "a|\xff\xfe|b"},
	} {
		for _, spec := range preSpecs {
			if !slices.Contains(spec.names, tt.pre) {
				continue
			}
			pre, err := spec.compile()
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			pre.split(tt.text, func(w string) { words = append(words, w) })
			if got := strings.Join(words, "|"); got != tt.want {
				t.Errorf("%s %q: words %q, want %q", tt.pre, tt.text, got, tt.want)
			}
		}
	}
}

func TestAddSpecial(t *testing.T) {
	spm := tinySPM(hello...)
	bos, eos := "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token"
	ids := []any{"tokenizer.ggml.bos_token_id", uint32(104), "tokenizer.ggml.eos_token_id", uint32(105)} // h, i
	for name, tt := range map[string]struct {
		tok      *Tokenizer
		want     string
		bos, eos bool
	}{
		"SPM by default":       {mustNew(t, metadata(t, "llama", spm)), "<s>|▁he", true, false},
		"SPM by its file":      {mustNew(t, metadata(t, "llama", spm, bos, false, eos, true)), "▁he|</s>", false, true},
		"gpt-2 by default":     {newTinyBPE(t, "gpt-2", ids...), "h|e", false, false},
		"llama-bpe by default": {newTinyBPE(t, "llama-bpe", ids...), "h|h|e", true, false},
		"gpt-2 by its file":    {newTinyBPE(t, "gpt-2", append(ids, bos, true, eos, true)...), "h|h|e|i", true, true},
		"no such token":        {newTinyBPE(t, "llama-bpe"), "h|e", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := texts(tt.tok, tt.tok.Encode("he", true, false)); got != tt.want {
				t.Errorf("tokens %s, want %s", got, tt.want)
			}
			if tt.tok.AddsBOS() != tt.bos || tt.tok.AddsEOS() != tt.eos {
				t.Errorf("adds BOS %v, EOS %v, want %v, %v", tt.tok.AddsBOS(), tt.tok.AddsEOS(), tt.bos, tt.eos)
			}
			if got := texts(tt.tok, tt.tok.Encode("he", false, false)); got != "▁he" && got != "h|e" {
				t.Errorf("without the switch: tokens %s", got)
			}
		})
	}
}

// TestStrips: some special tokens swallow the white space beside them.
func TestStrips(t *testing.T) {
	pieces, merges := tinyBPE()
	pieces = append(pieces, piece{text: "<mask>", kind: control}, piece{text: "[MASK]", kind: control})
	bpe := func(more ...any) *gguf.Metadata {
		return metadata(t, "gpt2", pieces, append(more, "tokenizer.ggml.merges", merges)...)
	}
	const pre = "tokenizer.ggml.pre"
	for name, tt := range map[string]struct {
		md         *gguf.Metadata
		text, want string
	}{
		"Phi 3, after":         {metadata(t, "llama", tinySPM(append(hello, piece{"<|user|>", control, 0})...), "general.architecture", "phi3"), "<|user|> \nhe<s> he", "<|user|>|▁he|<s>|▁|▁he"},
		"jina-v2-de, before":   {bpe(pre, "jina-v2-de"), " e \t<mask> e<|a|> ", "Ġ|e|<mask>|Ġ|e|<|a|>|Ġ"},
		"nomic, before":        {bpe(pre, "gpt-2", "general.architecture", "nomic-bert-moe"), " <mask>", "<mask>"},
		"ModernBERT, before":   {bpe(pre, "modern-bert", "general.name", "Modern-BERT base"), "e [MASK] <mask>", "e|[MASK]|Ġ|<mask>"},
		"no others":            {bpe(pre, "gpt-2"), "e [MASK] <mask>", "e|Ġ|[MASK]|Ġ|<mask>"},
		"phi3 of another kind": {bpe(pre, "gpt-2", "general.architecture", "phi3"), "<|a|> e", "<|a|>|Ġ|e"},
	} {
		tok := mustNew(t, tt.md)
		if got := texts(tok, tok.Encode(tt.text, false, true)); got != tt.want {
			t.Errorf("%s: tokens %s, want %s", name, got, tt.want)
		}
	}
}

// TestNotes: what a file leaves open, or says and isn't done, is told.
func TestNotes(t *testing.T) {
	pieces, merges := tinyBPE()
	for name, tt := range map[string]struct {
		md   *gguf.Metadata
		want string
	}{
		"no pre":            {metadata(t, "gpt2", pieces, "tokenizer.ggml.merges", merges), "tokenizer.ggml.pre"},
		"no BOS for Gemma":  {charsMetadata(t, "gemma4", "tokenizer.ggml.add_bos_token", false), "tokenizer.ggml.add_bos_token"},
		"suppressed tokens": {metadata(t, "llama", tinySPM(hello...), "tokenizer.ggml.suppress_tokens", []int32{1}), "tokenizer.ggml.suppress_tokens"},
		"pre":               {metadata(t, "gpt2", pieces, "tokenizer.ggml.merges", merges, "tokenizer.ggml.pre", "gpt-2"), ""},
		"llama needs none":  {metadata(t, "llama", tinySPM(hello...)), ""},
		"nor gemma4":        {charsMetadata(t, "gemma4", "tokenizer.ggml.add_bos_token", true), ""},
	} {
		notes := mustNew(t, tt.md).Notes()
		if tt.want == "" && len(notes) != 0 || tt.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], tt.want)) {
			t.Errorf("%s: notes %q, want one about %q", name, notes, tt.want)
		}
	}
}

func TestPiece(t *testing.T) {
	tok := mustNew(t, metadata(t, "llama", tinySPM(hello...)))
	for text, want := range map[string]string{"<s>": "", "<unk>": "", "▁he": " he", "<0x0A>": "\n", "ll": "ll"} {
		id, ok := tok.Find(text)
		if got := tok.Piece(id); !ok || string(got) != want || (want == "") != (got == nil) {
			t.Errorf("Piece of %s = %q, want %q", text, got, want)
		}
	}
	for _, id := range []ID{-1, ID(tok.Size()), 1 << 30} {
		if tok.Piece(id) != nil || tok.Text(id) != "" {
			t.Errorf("id %d outside the vocabulary has a piece", id)
		}
	}
	if got := tok.Decode([]ID{-5, 1 << 30}); got != "" {
		t.Errorf("decoded %q", got)
	}
	first := tok.Piece(3)
	if _ = append(first, 'x'); string(tok.Piece(4)) != "\x01" {
		t.Error("appending to a piece changed its neighbour")
	}
}

func TestStream(t *testing.T) {
	tok := newTinyBPE(t, "gpt-2")
	for name, tt := range map[string]struct {
		bytes string // one id each
		want  []string
		flush string
	}{
		"ASCII":              {"ab", []string{"a", "b"}, ""},
		"a rune of four":     {"🦙!", []string{"", "", "", "🦙", "!"}, ""},
		"cut short":          {"a\xf0\x9f\xa6", []string{"a", "", "", ""}, "\ufffd"},
		"broken off by text": {"\xe6\x97a", []string{"", "", "\ufffd\ufffda"}, ""},
		"never a rune":       {"\xffa", []string{"\ufffd", "a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tok.NewStream()
			var got []string
			for i := range len(tt.bytes) {
				got = append(got, s.Push(ID(tt.bytes[i])))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("pushed %q, want %q", got, tt.want)
			}
			if f, again := s.Flush(), s.Flush(); f != tt.flush || again != "" {
				t.Errorf("flushed %q, then %q, want %q", f, again, tt.flush)
			}
		})
	}
}

// TestConcurrent is for the race detector: a Tokenizer is shared.
func TestConcurrent(t *testing.T) {
	tok := newTinyBPE(t, "default")
	want := tok.Encode("hello [x] 12345", true, true)
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				if got := tok.Encode("hello [x] 12345", true, true); !slices.Equal(got, want) {
					t.Errorf("ids %v, want %v", got, want)
				}
			}
		})
	}
}
