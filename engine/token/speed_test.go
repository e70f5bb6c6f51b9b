package token

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/tools/await"
	"leat/tools/testdata"
)

// TestLongTexts: no text makes encoding more than about linear.
func TestLongTexts(t *testing.T) {
	for _, name := range []string{"llama-spm", "llama-bpe", "gpt-2", "default", "bert-bge", "gemma4", "ugm"} {
		tok := longTextTokenizer(t, name)
		short := longTexts(shortBytes, "x")
		for what, text := range longTexts(16*shortBytes, "x") {
			t.Run(name+"/"+what, func(t *testing.T) {
				linear(t, func() { tok.Encode(short[what], false, true) }, func() {
					if back := tok.Decode(tok.Encode(text, false, true)); back != text && name != "bert-bge" && name != "ugm" {
						t.Fatalf("decoded to another text: %d bytes, want %d", len(back), len(text))
					}
				})
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
		short := longTexts(shortBytes, "1")
		for what, text := range longTexts(16*shortBytes, "1") {
			t.Run(preSpecs[i].names[0]+"/"+what, func(t *testing.T) {
				linear(t, func() { splitWhole(t, pre, short[what]) }, func() { splitWhole(t, pre, text) })
			})
		}
	}
}

func splitWhole(t *testing.T, pre *preTokenizer, text string) {
	got := 0
	pre.split(text, func(w string) {
		if w == "" || text[got:got+len(w)] != w {
			t.Fatalf("word %.20q at %d is not the text's", w, got)
		}
		got += len(w)
	})
	if got != len(text) {
		t.Fatalf("words have %d bytes, want %d", got, len(text))
	}
}

// linear returns once work on a text of sixteen times the length takes less than 64 times as long: 16 is linear, 256 the square. A
// long text also pays for memory that a short one finds in place. The fastest of each are compared, so that it comes out on a busy
// machine too, after more tries.
func linear(t *testing.T, short, long func()) {
	t.Helper()
	took := func(best time.Duration, work func()) time.Duration {
		begin := time.Now()
		work()
		return min(best, time.Since(begin))
	}
	a, b := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	await.Until(t, "a long text to take about linear time", func() bool {
		a, b = took(a, short), took(b, long)
		return b < 64*a
	})
}

const shortBytes = 4 << 10

// longTexts are runs of one thing, with an end that may not belong to them.
func longTexts(size int, end string) map[string]string {
	texts := map[string]string{}
	for what, unit := range map[string]string{
		"a": "a", "A": "A", "spaces": " ", "newlines": "\n", "emoji": "🦙", "joined emoji": "👩‍👩‍👧‍👦", "digits": "7", "Han": "中", "marks": "\u0301",
		"spaces and newlines": " \n \t", "quotes": "'", "brackets": "<|", "not UTF-8": "\xff", "random letters": lcg(4096), "capitals and marks": "A\u0301",
	} {
		texts[what] = strings.Repeat(unit, size/len(unit)) + end
	}
	return texts
}

// longTextTokenizer: "gemma4" and "ugm" are small vocabularies; "default" is GPT-2's vocabulary with the default pre-tokenizer.
func longTextTokenizer(t testing.TB, name string) *Tokenizer {
	switch name {
	case "default":
	case "gemma4":
		return mustNew(t, charsMetadata(t, name))
	case "ugm":
		return ugmTokenizer(t, true)
	default:
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
