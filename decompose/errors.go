package decompose

import (
	"errors"
	"fmt"
	"strings"
)

// ErrExists says that OUTDIR is there already; it is never written over.
var ErrExists = errors.New("already exists")

// ErrBusy says that another process writes the same OUTDIR.
var ErrBusy = errors.New("another process is writing it")

// ErrSource says that the GGUF changed, or became shorter, while it was read.
var ErrSource = errors.New("the source changed while it was read")

// SpaceError says that the pack does not fit the disk; it comes before the first byte is written.
type SpaceError struct {
	Dir        string
	Need, Have int64 // bytes still to write, bytes free
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: found %s free, wanted %s", e.Dir, gib(e.Have), gib(e.Need))
}

func (e *SpaceError) Hint() string {
	return fmt.Sprintf("free %s more on that disk, or name an OUTDIR on another", gib(e.Need-e.Have))
}

// CompareError lists the files that did not read back as the source has them.
type CompareError struct{ Files []string }

func (e *CompareError) Error() string {
	return fmt.Sprintf("verify: found other bytes than the source's in %s", strings.Join(e.Files, ", "))
}

func (e *CompareError) Hint() string {
	return "the same command writes these files anew; if it happens again, suspect the disk or the memory"
}

// hinted is an error with a hint beside it.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }
func (e *hinted) Hint() string  { return e.hint }

// explain adds what the user can do next. kept says that a partial folder stays for a resume.
func explain(err error, partial string, kept bool) error {
	var own interface{ Hint() string }
	resume := partial + " stays: the same command takes it up again; to give up, remove it"
	switch {
	case errors.Is(err, ErrSource):
		return &hinted{err, "run it again once the source is complete and nothing writes to it"}
	case errors.As(err, &own):
		return err
	case DiskFull(err) && kept:
		return &hinted{err, "free some space on that disk; " + resume}
	case DiskFull(err):
		return &hinted{err, "free some space on that disk, or name an OUTDIR on another"}
	case kept:
		return &hinted{err, resume}
	}
	return err
}

func gib(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
