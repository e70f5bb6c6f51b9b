package pack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"leat/gguf"
)

func openPack(dir string) (*Model, error) {
	man, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: dir, IsPack: true, Manifest: man}
	if err := m.openFiles(man); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Model) openFiles(man *Manifest) error {
	if err := man.checkFolders(m.Path); err != nil {
		return err
	}
	var entries []*FileEntry
	for i := range man.Files {
		f := &man.Files[i]
		if f.Kind == Metadata {
			if err := m.openMetadata(f); err != nil {
				return err
			}
			continue
		}
		entries = append(entries, f)
	}
	if got, want := m.Architecture(), man.Architecture; got != want {
		return formatErrorf(filepath.Join(m.Path, MetadataName), "general.architecture: found %q, wanted %q as in %s", got, want, ManifestName)
	}
	slices.SortStableFunc(entries, func(a, b *FileEntry) int {
		return cmp.Or(cmp.Compare(kindRank(a.Kind), kindRank(b.Kind)), cmp.Compare(a.Layer, b.Layer), cmp.Compare(inLayer(a.Kind), inLayer(b.Kind)))
	})
	for _, f := range entries {
		if err := m.openFile(f); err != nil {
			return err
		}
	}
	return m.buildIndex()
}

func (m *Model) openMetadata(f *FileEntry) error {
	path := filepath.Join(m.Path, f.Name)
	if err := checkSize(path, f.Bytes); err != nil {
		return err
	}
	md, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer md.Close()
	if len(md.Tensors) > 0 || len(md.Paths) > 1 {
		return formatErrorf(path, "found %d tensors in %d files, wanted metadata alone", len(md.Tensors), len(md.Paths))
	}
	m.Metadata = md.Metadata
	return nil
}

// openFile opens one file, checks its size and adds its units.
func (m *Model) openFile(f *FileEntry) error {
	if err := m.Manifest.checkParts(m.Path, f); err != nil {
		return err
	}
	r, err := m.Manifest.OpenFile(m.Path, f)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, r)
	m.readers = append(m.readers, r)
	paths := m.Manifest.paths(m.Path, f)
	infos := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		if infos[i], err = os.Stat(path); err != nil {
			return fmt.Errorf("open pack: %w", err)
		}
	}
	m.Files, m.Parts, m.Infos = append(m.Files, paths[0]), append(m.Parts, paths), append(m.Infos, infos)
	file := len(m.Files) - 1
	if f.Kind != Experts {
		return m.addUnit(f, file, 0, -1)
	}
	for e := range f.Records {
		if err := m.addUnit(f, file, e*f.RecordBytes, int(e)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) addUnit(f *FileEntry, file int, base int64, expert int) error {
	u := Unit{Kind: f.Kind, Layer: f.Layer, Expert: expert, Name: unitName(f.Kind, f.Layer, expert)}
	u.Tensors = make([]Tensor, 0, len(f.Tensors))
	for _, t := range f.Tensors {
		typ, err := gguf.ParseType(t.Type)
		if err != nil {
			return formatErrorf(filepath.Join(m.Path, ManifestName), "tensor %q: %v", t.Name, err)
		}
		u.Tensors = append(u.Tensors, Tensor{Name: t.Name, Type: typ, Shape: t.Shape, Bytes: t.Bytes, File: file, Off: base + t.Offset})
	}
	u.place() // gives the manifest's offsets again: the check demands these very places
	m.Units = append(m.Units, u)
	return nil
}

// kindRank orders the kinds in the model, inLayer those of one layer.
func kindRank(k Kind) int {
	if k == Experts {
		k = Layer
	}
	return slices.Index([]Kind{Embed, Global, Layer, Norm, Head}, k)
}

func inLayer(k Kind) int { return slices.Index([]Kind{Layer, Experts}, k) }

// openRegular opens a file to read. What is no regular file (a pipe would block) is refused.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, formatErrorf(path, "found a %v, wanted a regular file", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	return f, nil
}

// checkSize holds a file of a pack against the manifest.
func checkSize(path string, want int64) error {
	const hint = "the pack is damaged: remove it and decompose the GGUF again"
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		e := formatErrorf(path, "found no such file, wanted one of %d bytes", want)
		e.hint = hint
		return e
	}
	if err != nil {
		return fmt.Errorf("open pack: %w", err)
	}
	if !info.Mode().IsRegular() {
		return formatErrorf(path, "found a %v, wanted a regular file", info.Mode().Type())
	}
	if info.Size() != want {
		e := formatErrorf(path, "found %d bytes, wanted %d", info.Size(), want)
		e.hint = hint
		return e
	}
	return nil
}
