package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A RefusedError says why nothing is written to a path.
type RefusedError struct {
	Path, Why string
	hint      string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("write %s: %s", e.Path, e.Why) }

// Hint says what to do instead.
func (e *RefusedError) Hint() string { return e.hint }

// place is where a name leads.
type place struct {
	path   string      // with links followed
	info   fs.FileInfo // nil: nothing is there yet
	stream bool        // a pipe, a device, or a file with no name of its own: written through
}

// find follows links, also to what does not exist yet. It opens nothing.
func find(name string) (place, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return place{}, &RefusedError{name, "it is a folder", "name a file in it"}
	case err == nil && !info.Mode().IsRegular():
		return place{name, info, true}, nil
	case err == nil:
		return findRegular(name, info), nil
	case !errors.Is(err, fs.ErrNotExist):
		return place{}, err
	}
	path, err := follow(name)
	if err != nil {
		return place{}, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return place{}, err
	}
	return place{path: path}, nil
}

// findRegular finds a file's own name. A deleted file that /proc/self/fd still shows has none.
func findRegular(name string, info fs.FileInfo) place {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return place{name, info, true}
	}
	if real, err := os.Stat(path); err != nil || !os.SameFile(real, info) {
		return place{name, info, true}
	}
	return place{path, info, false}
}

// maxLinks is as many as Linux follows.
const maxLinks = 40

// follow returns where a chain of links ends, though nothing is there.
func follow(name string) (string, error) {
	for range maxLinks {
		target, err := os.Readlink(name)
		if err != nil {
			return name, nil // no link: the end
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	return "", &RefusedError{name, "its links lead in a circle", "name another file"}
}

// refuse fails where p is one of the files that a command reads.
func (p *place) refuse(name string, inputs []string) error {
	if p.info == nil || p.stream {
		return nil
	}
	for _, in := range inputs {
		if info, err := os.Stat(in); err == nil && os.SameFile(info, p.info) {
			what := "this command reads it"
			if in != name {
				what = fmt.Sprintf("this command reads it, as %s", in)
			}
			return &RefusedError{name, what, "name another file"}
		}
	}
	return nil
}

// Check fails where [Create] would, but opens and changes nothing. It is for the time before long work.
func Check(name string, o Options) error {
	if name == Stdout {
		return nil
	}
	p, err := find(name)
	if err != nil {
		return named(name, err)
	}
	if err := p.refuse(name, o.Inputs); err != nil {
		return err
	}
	return named(name, p.writable())
}

// writable opens a regular file for writing, and leaves it as it is: a rename would replace one that its owner protects.
func (p *place) writable() error {
	if p.info == nil || p.stream {
		return nil
	}
	f, err := os.OpenFile(p.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// Same reports whether two names lead to one file, or would once it is written. Streams may be shared.
func Same(a, b string) bool {
	if a == Stdout || b == Stdout {
		return a == b
	}
	p, errA := find(a)
	q, errB := find(b)
	switch {
	case errA != nil || errB != nil || p.stream || q.stream:
		return false
	case p.info != nil && q.info != nil:
		return os.SameFile(p.info, q.info)
	case p.info != nil || q.info != nil:
		return false
	}
	return samePath(p.path, q.path)
}

// samePath compares the names of files that don't exist yet, in folders that do.
func samePath(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, errX := os.Stat(filepath.Dir(a))
	y, errY := os.Stat(filepath.Dir(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// IsStdout reports whether a name means the process's stdout: "-", or a path that leads to the same file, as /dev/stdout.
func IsStdout(name string) bool {
	if name == Stdout {
		return true
	}
	info, err := os.Stat(name)
	if err != nil || info.IsDir() {
		return false
	}
	out, err := os.Stdout.Stat()
	return err == nil && os.SameFile(out, info) && !isNull(info)
}

// IsStream reports whether a pipe or a device is under a name: what is written to it replaces nothing, and reading from it
// may wait for ever.
func IsStream(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// isNull tells /dev/null, which is the same file for all who write to it.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// named gives an error the name that the user knows, in place of a temporary one.
func named(name string, err error) error {
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) {
		return err
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}
