package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A RefusedError says that this package refuses to write to Path, and why.
type RefusedError struct {
	Path, Why string
	hint      string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("write %s: %s", e.Path, e.Why) }

// Hint says what to do instead.
func (e *RefusedError) Hint() string { return e.hint }

// place is the file that a name leads to.
type place struct {
	path   string      // without symbolic links
	info   fs.FileInfo // nil if there is no file yet
	stream bool        // a pipe, a device, or a deleted file that is still open: writes go straight to it
}

// find resolves a name, even if its file does not exist yet. It opens nothing.
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

// findRegular resolves the name of a regular file, also one such as /proc/self/fd/3. A deleted file that is still open has no path:
// its place is a stream.
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

// maxLinks is how many symbolic links follow takes, as Linux does.
const maxLinks = 40

// follow returns where a chain of symbolic links ends, even if no file is there.
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

// refuse returns a RefusedError if p is one of inputs.
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

// Check returns the error that Create would return, and changes no file. Call it before long work.
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

// writable checks that this user may write to a regular file, by opening it. A rename needs no such permission, and would replace a
// read-only file.
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

// Same reports whether two names lead to the same file, even if it does not exist yet. Of streams it says false: two results may go to
// one pipe.
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

// samePath reports whether two paths are the same. The files don't exist yet, their folders do.
func samePath(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, errX := os.Stat(filepath.Dir(a))
	y, errY := os.Stat(filepath.Dir(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// IsStdout reports whether a name means the process's stdout: "-", or a path that leads to the same file, such as /dev/stdout.
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

// IsStream reports whether a name leads to a pipe or a device. A write to it replaces no file, and a read can wait for ever.
func IsStream(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// isNull reports whether info is of /dev/null, which any number of results can share.
func isNull(info fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// named puts the name that the user gave into err, in place of the temporary file's.
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
