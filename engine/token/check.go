package token

import (
	"fmt"
	"slices"

	"leat/gguf"
)

// Check says why [New] would refuse the file's tokenizer, as far as its keys' types and the names of its kind and pre-tokenizer tell: the vocabulary is not read, so it takes
// no time.
func Check(md *gguf.Metadata) error {
	const key = "tokenizer.ggml.model"
	if err := checkTypes(md); err != nil {
		return err
	}
	name, _ := md.String(key)
	var known []string
	for _, m := range models {
		known = append(known, m.name)
	}
	switch {
	case name == "" || name == "none" || name == "no_vocab":
		return fmt.Errorf("read the tokenizer: %w", ErrNone)
	case !slices.Contains(known, name):
		return &UnsupportedError{Key: key, Name: name, Known: known}
	}
	if name == "gpt2" {
		_, err := specOf(md, "")
		return err
	}
	return nil
}
