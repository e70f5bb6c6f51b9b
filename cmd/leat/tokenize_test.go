package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose"
	"leat/gguf"
)

// vocabularyOnly writes a GGUF without tensors: a, b, ab and their control tokens.
func vocabularyOnly(t *testing.T, model string) string {
	t.Helper()
	md := gguf.NewMetadata()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "llama"},
		{"tokenizer.ggml.model", model},
		{"tokenizer.ggml.tokens", []string{"<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "<0xFF>"}},
		{"tokenizer.ggml.scores", []float32{0, 0, 0, -1, -2, -3, -4, 0}},
		{"tokenizer.ggml.token_type", []int32{2, 3, 3, 1, 1, 1, 1, 6}},
		{"tokenizer.ggml.add_eos_token", true},
	} {
		if err := md.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gguf.Write(f, md, nil, gguf.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenize(t *testing.T) {
	vocab := vocabularyOnly(t, "llama")
	for name, tt := range map[string]struct {
		args   []string
		stdout string
	}{
		"a line a token":          {[]string{"-p", "ab\xff"}, "1\t<s>\n6\t\" a\"\n5\t\"b\"\n7\t\"\\xff\"\n2\t</s>\n"},
		"without BOS and EOS":     {[]string{"-p", "ab", "--no-bos"}, "6\t\" a\"\n5\t\"b\"\n"},
		"ids":                     {[]string{"-p", "ab", "--ids"}, "1 6 5 2\n"},
		"an empty text":           {[]string{"-p", "", "--ids"}, "1 2\n"},
		"no token at all":         {[]string{"-p", "", "--ids", "--no-bos"}, "\n"},
		"special, where allowed":  {[]string{"-p", "a</s>", "--ids", "--no-bos", "--special"}, "6 2\n"},
		"special, where it isn't": {[]string{"-p", "a</s>", "--ids", "--no-bos"}, "6 0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := leat(t, append([]string{"tokenize", vocab}, tt.args...)...)
			if code != exitOK || stderr != "" || stdout != tt.stdout {
				t.Errorf("exit %d, stderr %q, stdout %q, want %q", code, stderr, stdout, tt.stdout)
			}
		})
	}
}

func TestTokenizeJSON(t *testing.T) {
	stdout, _, code := leat(t, "tokenize", vocabularyOnly(t, "llama"), "-p", "a", "--json")
	var got []tokenJSON
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v: %s", code, err, stdout)
	}
	want := []tokenJSON{{1, "", "<s>", true}, {6, " a", "▁a", false}, {2, "", "</s>", true}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if stdout, _, _ := leat(t, "tokenize", vocabularyOnly(t, "llama"), "-p", "", "--no-bos", "--json"); stdout != "[]\n" {
		t.Errorf("no tokens: %q", stdout)
	}
}

func TestTokenizeErrors(t *testing.T) {
	vocab := vocabularyOnly(t, "llama")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no text":               {[]string{vocab}, exitUsage, "no text"},
		"two texts":             {[]string{vocab, "-p", "a", "-f", "-"}, exitUsage, "exclude each other"},
		"two forms":             {[]string{vocab, "-p", "a", "--ids", "--json"}, exitUsage, "ids json"},
		"unsupported tokenizer": {[]string{vocabularyOnly(t, "rwkv"), "-p", "a"}, exitFailure, "leat: hint: supported are llama, gpt2, "},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := leat(t, append([]string{"tokenize"}, tt.args...)...)
			if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, stdout %q, stderr %q, want exit %d and %q", code, stdout, stderr, tt.code, tt.want)
			}
		})
	}
}

// TestTokenizePack: a pack gives the ids that its source gives.
func TestTokenizePack(t *testing.T) {
	source := filepath.Join("demo", "leat-demo-q4_k_m.gguf")
	dir := filepath.Join(t.TempDir(), "pack")
	if _, err := decompose.Run(t.Context(), source, dir, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	want, _, _ := leat(t, "tokenize", source, "-p", "Once upon a time", "--ids")
	got, stderr, code := leat(t, "tokenize", dir, "-p", "Once upon a time", "--ids")
	if code != exitOK || got != want || want != "715 538 261 491\n" {
		t.Errorf("exit %d, stderr %q: pack %q, GGUF %q", code, stderr, got, want)
	}
}
