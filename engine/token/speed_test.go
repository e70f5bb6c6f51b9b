package token

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/testdata"
)

// TestLongTexts: no text makes encoding more than about linear. A megabyte takes well
// under a second; a square of this size would take minutes.
func TestLongTexts(t *testing.T) {
	for _, name := range []string{"llama-spm", "llama-bpe", "gpt-2", "default"} {
		tok := longTextTokenizer(t, name)
		for what, text := range longTexts("x") {
			t.Run(name+"/"+what, func(t *testing.T) {
				start := time.Now()
				ids := tok.Encode(text, false, true)
				took := time.Since(start)
				t.Logf("%d tokens, %v", len(ids), took)
				if limit := 20 * time.Second; took > limit {
					t.Errorf("took %v, want at most %v", took, limit)
				}
				if back := tok.Decode(ids); back != text {
					t.Errorf("decoded to another text: %d bytes, want %d", len(back), len(text))
				}
			})
		}
	}
}

// TestLongSplits is the same for every pre-tokenizer, before any merging.
func TestLongSplits(t *testing.T) {
	for i := range preSpecs {
		pre, err := preSpecs[i].compile()
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range longTexts("1") {
			t.Run(preSpecs[i].names[0]+"/"+what, func(t *testing.T) {
				start, got := time.Now(), 0
				pre.split(text, func(w string) {
					if w == "" || text[got:got+len(w)] != w {
						t.Fatalf("word %.20q at %d is not the text's", w, got)
					}
					got += len(w)
				})
				if got != len(text) {
					t.Errorf("words have %d bytes, want %d", got, len(text))
				}
				if took, limit := time.Since(start), 20*time.Second; took > limit {
					t.Errorf("took %v, want at most %v", took, limit)
				}
			})
		}
	}
}

// longTexts are runs of one thing, with an end that may not belong to them.
func longTexts(end string) map[string]string {
	const size = 256 << 10
	texts := map[string]string{}
	for what, unit := range map[string]string{
		"a": "a", "A": "A", "spaces": " ", "newlines": "\n", "emoji": "🦙", "joined emoji": "👩‍👩‍👧‍👦", "digits": "7", "Han": "中", "marks": "\u0301",
		"spaces and newlines": " \n \t", "quotes": "'", "brackets": "<|", "not UTF-8": "\xff", "random letters": lcg(4096), "capitals and marks": "A\u0301",
	} {
		texts[what] = strings.Repeat(unit, size/len(unit)) + end
	}
	return texts
}

// longTextTokenizer: "default" is GPT-2's vocabulary with the default pre-tokenizer.
func longTextTokenizer(t testing.TB, name string) *Tokenizer {
	if name != "default" {
		return mustOpenVocab(t, name)
	}
	tok := mustOpenVocab(t, "gpt-2")
	pre, err := preSpecs[0].compile()
	if err != nil {
		t.Fatal(err)
	}
	tok.model.(*bpe).pre = pre
	return tok
}

// lcg is n letters without a pattern.
func lcg(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; x = x*1664525 + 1013904223 {
		b.WriteByte('a' + byte(x>>24)%26)
	}
	return b.String()
}

func BenchmarkEncode(b *testing.B) {
	text := readFile(b, filepath.Join(testdata.Dir(b), "vendor", "corpora", "tinyshakespeare.txt"))
	for _, name := range []string{"llama-spm", "llama-bpe", "qwen2", "gpt-2", "default"} {
		tok := longTextTokenizer(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text, false, false)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"llama-spm", "llama-bpe"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustOpenVocab(b, name)
			}
		})
	}
}
