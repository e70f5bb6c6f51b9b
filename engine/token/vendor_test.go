package token

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"leat/gguf"
	"leat/tools/testdata"
)

// openVocab reads one of llama.cpp's vocabulary-only files.
func openVocab(t testing.TB, name string) (*Tokenizer, error) {
	t.Helper()
	path := filepath.Join(testdata.Dir(t), "vendor", "vocab", "ggml-vocab-"+name+".gguf")
	return openTokenizer(t, path)
}

func openTokenizer(t testing.TB, path string) (*Tokenizer, error) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return New(f.Metadata)
}

func mustOpenVocab(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := openVocab(t, name)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestVendorVectors holds every text of the vendors' vectors against its ids. The .inp
// ends each text with a line of its own; the newline before that line is not text.
func TestVendorVectors(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join(testdata.Dir(t), "vendor", "vocab", "ggml-vocab-*.gguf.inp"))
	if err != nil || len(inputs) < 10 {
		t.Fatalf("found %d vocabularies, wanted 10 (%v)", len(inputs), err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(input), "ggml-vocab-"), ".gguf.inp")
		t.Run(name, func(t *testing.T) {
			tok := mustOpenVocab(t, name)
			texts := strings.Split(readFile(t, input), "\n__ggml_vocab_test__\n")
			lines := strings.Split(readFile(t, strings.TrimSuffix(input, "inp")+"out"), "\n")
			if len(texts) != len(lines) || len(texts) < 40 {
				t.Fatalf("%d texts, %d lines of ids", len(texts)-1, len(lines)-1)
			}
			for i, text := range texts[:len(texts)-1] {
				got, want := tok.Encode(text, false, false), parseIDs(t, lines[i])
				if !slices.Equal(got, want) {
					t.Errorf("text %d, %q:\ngot  %v\nwant %v", i, text, got, want)
				}
				if back := tok.Decode(got); back != text && name != "bert-bge" { // whose normaliser loses text
					t.Errorf("text %d, %q: decoded %q", i, text, back)
				}
			}
		})
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parseIDs(t testing.TB, line string) []ID {
	t.Helper()
	var ids []ID
	for _, field := range strings.Fields(line) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ID(id))
	}
	return ids
}
