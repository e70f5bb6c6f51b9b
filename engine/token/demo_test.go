package token

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// TestDemoVectors needs nothing outside the project: the demo model's vocabulary against
// ids that llama.cpp (by node-llama-cpp 3.21.1) gave for the same texts.
func TestDemoVectors(t *testing.T) {
	tok := demoTokenizer(t)
	n := 0
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", "demo.jsonl"))) {
		var want struct {
			Text         string
			IDs, Special []ID
		}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		n++
		if got := tok.Encode(want.Text, false, false); !slices.Equal(got, want.IDs) {
			t.Errorf("%q:\ngot  %v\nwant %v", want.Text, got, want.IDs)
		} else if back := tok.Decode(got); back != want.Text {
			t.Errorf("%q: decoded %q", want.Text, back)
		}
		if got := tok.Encode(want.Text, false, true); !slices.Equal(got, want.Special) {
			t.Errorf("%q, special tokens parsed:\ngot  %v\nwant %v", want.Text, got, want.Special)
		}
	}
	if n < 40 {
		t.Errorf("only %d texts", n)
	}
}

func demoTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := openTokenizer(t, filepath.Join(testdata.Root(t), "cmd", "leat", "demo", "leat-demo-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
