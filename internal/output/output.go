package output

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Stdout is the name of standard output.
const Stdout = "-"

// Options say how to write a file. The zero value has no inputs and makes new files with mode 0666.
type Options struct {
	Inputs []string    // files that the command reads: Create refuses to write over one of them
	Perm   fs.FileMode // mode of a new file, before the umask; 0 means 0666. An existing file keeps its mode
	Stdout io.Writer   // writer for the name "-"; nil means os.Stdout
}

// File is a file that is being written. Commit puts it in place; Close without Commit discards it.
type File struct {
	name   string // as the user gave it
	place  place
	inputs []string
	w      *bufio.Writer
	f      *os.File // the temporary file or the stream; nil for stdout
	done   bool     // committed or closed
}

const bufferBytes = 1 << 20 // of the writer in front of each file

// Create starts a file. The old file stays until Commit. A pipe or a device is opened, and what is written goes straight to it.
func Create(name string, o Options) (*File, error) {
	if name == Stdout {
		if o.Stdout == nil {
			o.Stdout = os.Stdout
		}
		return &File{name: "stdout", w: bufio.NewWriterSize(o.Stdout, bufferBytes)}, nil
	}
	p, err := find(name)
	if err != nil {
		return nil, named(name, err)
	}
	if err := p.refuse(name, o.Inputs); err != nil {
		return nil, err
	}
	f, err := p.open(o.Perm)
	if err != nil {
		return nil, named(name, err)
	}
	if !p.stream {
		unfinished.add(f.Name())
	}
	return &File{name: name, place: p, inputs: o.Inputs, f: f, w: bufio.NewWriterSize(f, bufferBytes)}, nil
}

// open opens a stream, or makes the temporary file of a regular one in the same folder.
func (p *place) open(perm fs.FileMode) (*os.File, error) {
	if p.stream {
		return os.OpenFile(p.path, os.O_WRONLY, 0)
	}
	if err := p.writable(); err != nil {
		return nil, err
	}
	if perm == 0 {
		perm = 0o666
	}
	if p.info != nil {
		perm = 0o600 // until it has the other's mode
	}
	f, err := temporary(filepath.Dir(p.path), perm)
	if err != nil && p.info != nil && errors.Is(err, fs.ErrPermission) {
		return temporary(os.TempDir(), perm) // the file may be changed, its folder may not
	}
	return f, err
}

const partialSuffix = ".partial" // of temporary files' names

// temporary makes a new file in dir, under a name that no other process uses.
func temporary(dir string, perm fs.FileMode) (*os.File, error) {
	for {
		name := filepath.Join(dir, fmt.Sprintf(".leat-%016x%s", rand.Uint64(), partialSuffix))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// Write adds b to the file.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	return n, f.named(err)
}

func (f *File) named(err error) error {
	if f.f == nil {
		return err // stdout's own
	}
	return named(f.name, err)
}

// Commit writes the rest of the buffer. It syncs a regular file and renames it to its final name; it closes a stream.
func (f *File) Commit() error { return f.commit(true) }

// commit is Commit, which syncs only state that can't be made again.
func (f *File) commit(sync bool) error {
	if f.done {
		return nil
	}
	defer f.Close()
	if err := f.w.Flush(); err != nil || f.f == nil {
		return f.named(err)
	}
	if f.place.stream {
		f.done = true
		return f.named(f.f.Close())
	}
	if f.place.info != nil {
		keepOwner(f.f, f.place.info)
		if err := f.f.Chmod(f.place.info.Mode().Perm()); err != nil {
			return f.named(err)
		}
	}
	if sync {
		if err := f.f.Sync(); err != nil {
			return f.named(err)
		}
	}
	if err := f.f.Close(); err != nil { // first: Windows renames no open file
		return f.named(err)
	}
	return f.named(f.rename())
}

// rename gives the temporary file its final name. It fails if one of the inputs stands there by now.
func (f *File) rename() error {
	now, err := find(f.place.path)
	if err != nil {
		return err
	}
	if err := now.refuse(f.name, f.inputs); err != nil {
		return err
	}
	if now.stream || filepath.Dir(f.f.Name()) != filepath.Dir(f.place.path) {
		return f.overwrite()
	}
	err = os.Rename(f.f.Name(), f.place.path)
	switch {
	case err == nil:
		f.done = true
		unfinished.drop(f.f.Name())
	case now.info != nil: // such as a file mounted into a container
		err = f.overwrite()
	}
	return err
}

// overwrite copies the temporary file into the existing one, where rename is not possible. Close removes the temporary file.
func (f *File) overwrite() error {
	from, err := os.Open(f.f.Name())
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(f.place.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Close discards a file that is not committed. After Commit, or a second time, it does nothing.
func (f *File) Close() error {
	if f.done || f.f == nil {
		return nil
	}
	f.done = true
	err := f.f.Close()
	if f.place.stream {
		return err
	}
	unfinished.drop(f.f.Name())
	return os.Remove(f.f.Name())
}

// Write writes data to a file, as Create and Commit do.
func Write(name string, data []byte, o Options) error {
	return Fill(name, o, func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(data)); return err })
}

// Fill creates a file, calls fill to write it, and commits it. If a step fails the old file stays.
func Fill(name string, o Options, fill func(io.Writer) error) error {
	f, err := Create(name, o)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := fill(f); err != nil {
		return err
	}
	return f.Commit()
}

// Append adds data to a state file in a single write, so that several processes can append to one file. A new file gets the mode perm.
func Append(name string, data []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
