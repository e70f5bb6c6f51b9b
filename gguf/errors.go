package gguf

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFormat is what every error about a file's content wraps.
var ErrFormat = errors.New("not a valid GGUF file")

// FormatError says where a file departs from the format, and how.
type FormatError struct {
	Path   string // empty when the bytes came from [Parse]
	Off    int64  // byte offset of what was found; -1 where no single offset is meant
	What   string // the thing looked at: `tensor "output.weight"`
	Found  string
	Wanted string
	hint   string
}

func (e *FormatError) Error() string {
	var b strings.Builder
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	if e.Off >= 0 {
		fmt.Fprintf(&b, "offset %d: ", e.Off)
	}
	fmt.Fprintf(&b, "%s: found %s, want %s", e.What, e.Found, e.Wanted)
	return b.String()
}

// Unwrap makes errors.Is(err, ErrFormat) true.
func (e *FormatError) Unwrap() error { return ErrFormat }

// Hint says what to do about it, where there is something to do.
func (e *FormatError) Hint() string { return e.hint }

func badf(off int64, what, found, wanted string, args ...any) *FormatError {
	return &FormatError{Off: off, What: what, Found: found, Wanted: fmt.Sprintf(wanted, args...)}
}

// inFile names the file in a format error that a deeper call made, and lets the name say what it may
// be of.
func inFile(path string, err error) error {
	var fe *FormatError
	if errors.As(err, &fe) {
		fe.Path = path
		if hint := unfinished(path); hint != "" {
			fe.hint = hint
		}
		return err
	}
	return fmt.Errorf("read %s: %w", path, err)
}
