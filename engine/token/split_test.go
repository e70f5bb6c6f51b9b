package token

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func splitWords(pre *preTokenizer, text string) (words []string) {
	pre.split(text, func(w string) { words = append(words, w) })
	return words
}

// splitCase is a text with the words that Hugging Face's tokenizers makes of it, or, of
// texts drawn by chance, their hash; see testdata/split_oracle.js.
type splitCase struct {
	Text  string
	Split []struct {
		Pre   []string
		Words []string
	}
	Hash map[string]string
}

// TestSplitOracle: every family of patterns against its models' published expressions.
func TestSplitOracle(t *testing.T) {
	pres := map[string]*preTokenizer{} // by every name
	for i := range preSpecs {
		pre, err := preSpecs[i].compile()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range preSpecs[i].names {
			if pres[name] != nil {
				t.Errorf("two pre-tokenizers are named %s", name)
			}
			pres[name] = pre
		}
	}
	seen := map[*preTokenizer]bool{pres["default"]: true} // llama.cpp's own, of no model
	check := func(name, text string, equal func(words []string) bool) {
		pre := pres[name]
		if pre == nil {
			t.Fatalf("no pre-tokenizer %s", name)
		}
		seen[pre] = true
		if got := splitWords(pre, text); !equal(got) {
			t.Errorf("%s, %q: got %q, not what the oracle has", name, text, got)
		}
	}
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", "split.jsonl"))) {
		var c splitCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Split {
			for _, name := range s.Pre {
				check(name, c.Text, func(words []string) bool { return slices.Equal(words, s.Words) })
			}
		}
		for name, want := range c.Hash {
			check(name, c.Text, func(words []string) bool {
				sum := sha256.Sum256([]byte(strings.Join(words, "\x1f")))
				return hex.EncodeToString(sum[:4]) == want
			})
		}
	}
	for name, pre := range pres {
		if !seen[pre] {
			t.Errorf("split.jsonl has nothing for %s", name)
		}
	}
}
