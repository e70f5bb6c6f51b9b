package token

import (
	"errors"
	"testing"

	"leat/gguf"
)

// Check refuses what New refuses by the keys' types and the names, without the vocabulary.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name               string
		keys               map[string]any
		fits, missing, own bool // own: New refuses what only the vocabulary tells
	}{
		{"no tokenizer", map[string]any{}, false, true, false},
		{"a model of llama", map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.scores": []float32{0}}, true, false, false},
		{"an unknown model", map[string]any{"tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": []string{"a"}}, false, true, false},
		{"an unknown pre-tokenizer", map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "cuneiform", "tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.merges": []string{"a a"}}, false, true, false},
		{"another type", map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []int32{1}}, false, false, false},
		{"tokens of too few types", map[string]any{"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": []string{"a", "b"}, "tokenizer.ggml.token_type": []int32{1}}, true, false, true},
	} {
		md := gguf.NewMetadata()
		for key, v := range c.keys {
			if err := md.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
		err := Check(md)
		if (err == nil) != c.fits || err != nil && Missing(err) != c.missing {
			t.Errorf("%s: error %v", c.name, err)
		}
		if _, newErr := New(md); c.own != (newErr != nil && err == nil) || err != nil && (newErr == nil || errors.Is(err, ErrNone) != errors.Is(newErr, ErrNone)) {
			t.Errorf("%s: error %v of Check, %v of New", c.name, err, newErr)
		}
	}
}
