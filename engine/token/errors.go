package token

import (
	"errors"
	"fmt"
	"strings"

	"leat/gguf"
)

// ErrNone says that a file has no tokenizer keys. Its weights run all the same, on token ids.
var ErrNone = errors.New("the file has no tokenizer")

// UnsupportedError names a tokenizer, or a pre-tokenizer, that this package doesn't know.
type UnsupportedError struct {
	Key   string   // "tokenizer.ggml.pre"
	Name  string   // what the file says there
	Known []string // what could stand there
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("read the tokenizer: %s: found %q, which is not supported", e.Key, e.Name)
}

// Hint lists what is supported.
func (e *UnsupportedError) Hint() string {
	return "supported are " + strings.Join(e.Known, ", ")
}

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }

// badKey is a format error about one metadata key.
func badKey(key, found, wanted string, args ...any) error {
	return fmt.Errorf("read the tokenizer: %w",
		&gguf.FormatError{Off: -1, What: key, Found: found, Wanted: fmt.Sprintf(wanted, args...)})
}

// Missing reports whether err, of [New], says that a file has no tokenizer, or one that this package doesn't know. The model runs on
// token ids then. After any other error the file is broken.
func Missing(err error) bool {
	var unsupported *UnsupportedError
	return errors.Is(err, ErrNone) || errors.As(err, &unsupported)
}
