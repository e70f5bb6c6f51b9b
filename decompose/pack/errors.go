package pack

import (
	"errors"
	"fmt"
)

// ErrFormat is what errors.Is finds in every error about a pack that is not well formed.
var ErrFormat = errors.New("malformed pack")

// FormatError says which file is not what the format demands, and how.
type FormatError struct {
	Path string // file or folder
	What string // found what, wanted what
	hint string
}

func (e *FormatError) Error() string        { return e.Path + ": " + e.What }
func (e *FormatError) Is(target error) bool { return target == ErrFormat }
func (e *FormatError) Hint() string         { return e.hint }

func formatErrorf(path, format string, args ...any) *FormatError {
	return &FormatError{Path: path, What: fmt.Sprintf(format, args...)}
}

// withHint is an error with a hint beside it.
type withHint struct {
	error
	hint string
}

func (e *withHint) Unwrap() error { return e.error }
func (e *withHint) Hint() string  { return e.hint }
