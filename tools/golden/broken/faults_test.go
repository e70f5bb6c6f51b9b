package broken_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/tools/testdata"
)

// TestFaults loads files that are broken in ways of their own, and some that only a step, or nothing, refuses.
func TestFaults(t *testing.T) {
	wants := map[string]string{ // part of the error; "": the file loads
		"block_3of4": "blk.3.attn_norm.weight", "cat_joined": "one model in a file", "freq_base_str": "llama.rope.freq_base", "inf_norm": "", "nan_norm": "",
		"llama-extra-qnorm": "blk.0.attn_q_norm.weight", "llama-plain": "", "llama-scale3": "", "notok": "", "qwen3moe-nowscale": "", "qwen3moe-wscale0": "",
		"vocab_more": "tokenizer.ggml.tokens", "x_qnorm": "blk.0.attn_q_norm.weight",
	}
	paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), "faults", "*.gguf"))
	if err != nil || len(paths) < len(wants) {
		t.Fatalf("found %d files, error %v", len(paths), err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, known := wants[strings.TrimSuffix(filepath.Base(path), ".gguf")]
		switch l := load(bytes.NewReader(b)); {
		case !known:
			t.Errorf("%s: not in the table: error %v", path, l.err)
		case want == "" && l.err != nil, want != "" && (l.err == nil || !strings.Contains(l.err.Error(), want)):
			t.Errorf("%s: error %v, wanted one with %q", path, l.err, want)
		}
	}
}
