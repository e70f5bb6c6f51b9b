package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"leat/gguf"
)

// Model is a model on disk, opened. Its methods may be called from several goroutines.
type Model struct {
	*gguf.Metadata
	Path     string
	IsPack   bool
	Units    []Unit    // execution order: embed, global, layer 0, experts of layer 0, …, final_norm, lm_head
	Files    []string  // paths, for whoever reads them in a way of its own; a pack's are padded to FileAlign
	Manifest *Manifest // nil for a GGUF

	// Parts are, of a striped pack, the paths that the bytes of each file alternate between,
	// Manifest.Stripe.Bytes at a time; nil for a GGUF.
	Parts [][]string

	// Infos are of each file's parts, as they were when the model was opened: who opens them by path later finds out with these whether
	// they are still the same.
	Infos [][]fs.FileInfo

	index   map[string][2]int // tensor name -> unit, tensor; of experts the first one's
	readers []io.ReaderAt
	closers []io.Closer
}

// Paths are the paths of all files that hold the model's bytes: of a striped pack, of every part.
func (m *Model) Paths() []string {
	if m.Parts == nil {
		return m.Files
	}
	return slices.Concat(m.Parts...)
}

// Open opens a pack (a folder) or a GGUF (a file, any of its shards) and checks every size and every
// place in it against the real files. A vocabulary-only GGUF opens with no units.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, openError(path, err)
	}
	if info.IsDir() {
		return openPack(path)
	}
	return openGGUF(path)
}

// openError says that path can't be opened, and whether an unfinished pack lies beside it.
func openError(path string, err error) error {
	wrapped := fmt.Errorf("open model: %w", err)
	if errors.Is(err, os.ErrNotExist) {
		if info, e := os.Stat(path + PartialSuffix); e == nil && info.IsDir() {
			return &withHint{wrapped, "there is an unfinished " + path + PartialSuffix + ": run the same leat decompose again, it resumes"}
		}
	}
	return wrapped
}

// Unit finds a unit; of experts, the layer's first one. For kinds without layers any layer will do.
func (m *Model) Unit(kind Kind, layer int) (*Unit, bool) {
	for i := range m.Units {
		u := &m.Units[i]
		if u.Kind == kind && (u.Layer == layer || u.Layer < 0) {
			return u, true
		}
	}
	return nil, false
}

// Experts lists a layer's expert units, by expert.
func (m *Model) Experts(layer int) []Unit {
	for i := range m.Units {
		if m.Units[i].Kind == Experts && m.Units[i].Layer == layer {
			end := i
			for end < len(m.Units) && m.Units[end].Kind == Experts && m.Units[end].Layer == layer {
				end++
			}
			return m.Units[i:end:end]
		}
	}
	return nil
}

// Tensor finds a tensor by its GGUF name; of stacked experts, the first expert's slice.
func (m *Model) Tensor(name string) (*Tensor, *Unit, bool) {
	at, ok := m.index[name]
	if !ok {
		return nil, nil, false
	}
	u := &m.Units[at[0]]
	return &u.Tensors[at[1]], u, true
}

// Has reports whether there is a tensor of that GGUF name.
func (m *Model) Has(name string) bool {
	_, ok := m.index[name]
	return ok
}

// ReadAt fills p from a file, or fails.
func (m *Model) ReadAt(file int, p []byte, off int64) error {
	if file < 0 || file >= len(m.readers) {
		return fmt.Errorf("read %s: found file %d, wanted one of %d", m.Path, file, len(m.readers))
	}
	n, err := m.readers[file].ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	err = fmt.Errorf("read %s at %d: found %d bytes, wanted %d: %w", m.Files[file], off, n, len(p), err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = &withHint{err, "the file became shorter while it was in use: is it being written, or moved?"}
	}
	return err
}

// ReadUnit fills dst[:u.Bytes]; the bytes between tensors become zero.
func (m *Model) ReadUnit(u *Unit, dst []byte) error {
	if int64(len(dst)) < u.Bytes {
		return fmt.Errorf("read %s: found room for %d bytes, wanted %d", u.Name, len(dst), u.Bytes)
	}
	for _, e := range u.Extents {
		if err := m.ReadAt(e.File, dst[e.UnitOff:e.UnitOff+e.Bytes], e.Off); err != nil {
			return fmt.Errorf("read %s: %w", u.Name, err)
		}
	}
	end := int64(0)
	for _, t := range u.Tensors {
		clear(dst[end:t.UnitOff])
		end = t.UnitOff + t.Bytes
	}
	clear(dst[end:u.Bytes])
	return nil
}

// Close closes the files. It may be called twice.
func (m *Model) Close() error {
	var errs []error
	for _, c := range m.closers {
		errs = append(errs, c.Close())
	}
	m.closers = nil
	return errors.Join(errs...)
}

// buildIndex makes Tensor quick and refuses a name that stands in two places.
func (m *Model) buildIndex() error {
	m.index = make(map[string][2]int)
	for i := range m.Units {
		u := &m.Units[i]
		for j := range u.Tensors {
			name := u.Tensors[j].Name
			if _, twice := m.index[name]; !twice {
				m.index[name] = [2]int{i, j}
			} else if u.Kind != Experts || u.Expert == 0 {
				return formatErrorf(m.Path, "found tensor %q twice, wanted it once", name)
			}
		}
	}
	return nil
}
