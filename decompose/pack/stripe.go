package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	StripeBytes = 8 << 20       // what decompose makes of it
	StripeName  = "stripe.json" // in each folder of a pack but its own: which one it is

	maxFolders = 16
	maxStripe  = 1 << 40
)

// Stripe says how the large files of a pack lie on several folders, so that several drives
// read at once: their bytes alternate, Bytes at a time, between the pack's own folder and
// Folders, in this order. A file of no more than Bytes lies in the pack's own folder alone.
type Stripe struct {
	Bytes   int64    `json:"bytes"`   // multiple of FileAlign
	Folders []string `json:"folders"` // absolute, or relative to the pack's own
	ID      string   `json:"id"`      // stands in each folder's StripeName
}

// StripeMark is the content of a folder's StripeName.
type StripeMark struct {
	ID   string `json:"stripe_id"`
	Part int    `json:"part"` // from 1: 0 is the pack's own folder
	Of   int    `json:"of"`   // folders, the pack's own included
}

// PartBytes is how many of a file's bytes lie in folder part of n.
func (s *Stripe) PartBytes(bytes int64, part, n int) int64 {
	whole, rest := bytes/s.Bytes, bytes%s.Bytes
	mine := whole / int64(n) * s.Bytes
	switch last := whole % int64(n); {
	case int64(part) < last:
		mine += s.Bytes
	case int64(part) == last:
		mine += rest
	}
	return mine
}

// Spreads reports whether a file lies in more than one folder.
func (s *Stripe) Spreads(f *FileEntry) bool {
	return s != nil && f.Kind != Metadata && f.Bytes > s.Bytes
}

func (s *Stripe) check() error {
	if s.Bytes < FileAlign || s.Bytes%FileAlign != 0 || s.Bytes > maxStripe {
		return fmt.Errorf("bytes: found %d, wanted a multiple of %d", s.Bytes, FileAlign)
	}
	if len(s.Folders) < 1 || len(s.Folders) >= maxFolders {
		return fmt.Errorf("folders: found %d, wanted 1 to %d", len(s.Folders), maxFolders-1)
	}
	seen := map[string]bool{}
	for _, f := range s.Folders {
		if f == "" || seen[f] {
			return fmt.Errorf("folders: found %q twice or empty", f)
		}
		seen[f] = true
	}
	if s.ID == "" {
		return errors.New("id: found none")
	}
	return nil
}

// folders are the places of the parts of the pack in dir.
func (s *Stripe) folders(dir string) []string {
	list := []string{dir}
	for _, f := range s.Folders {
		if !filepath.IsAbs(f) {
			f = filepath.Join(dir, f)
		}
		list = append(list, f)
	}
	return list
}

// paths are the places of a file's parts: one where it is whole.
func (m *Manifest) paths(dir string, f *FileEntry) []string {
	if !m.Stripe.Spreads(f) {
		return []string{filepath.Join(dir, f.Name)}
	}
	list := m.Stripe.folders(dir)
	for i := range list {
		list[i] = filepath.Join(list[i], f.Name)
	}
	return list
}

// checkFolders demands that each folder of a striped pack is there and is that one.
func (m *Manifest) checkFolders(dir string) error {
	if m.Stripe == nil {
		return nil
	}
	all := m.Stripe.folders(dir)
	for i, folder := range all[1:] {
		hint := fmt.Sprintf("put the folder back to %s, or write where it is now into \"stripe\", \"folders\" of %s", folder, filepath.Join(dir, ManifestName))
		mark, err := ReadStripeMark(folder)
		if errors.Is(err, fs.ErrNotExist) {
			e := formatErrorf(dir, "part %d of %d: found no %s in %s", i+2, len(all), StripeName, folder)
			e.hint = hint
			return e
		}
		if err != nil {
			return &withHint{err, hint}
		}
		if want := (StripeMark{m.Stripe.ID, i + 1, len(all)}); mark != want {
			e := formatErrorf(filepath.Join(folder, StripeName), "found part %d of %d of the pack %q, wanted part %d of %d of %q", mark.Part+1, mark.Of, mark.ID, want.Part+1, want.Of, want.ID)
			e.hint = hint
			return e
		}
	}
	return nil
}

// ReadStripeMark reads a folder's StripeName.
func ReadStripeMark(folder string) (mark StripeMark, err error) {
	path := filepath.Join(folder, StripeName)
	f, err := openRegular(path)
	if err != nil {
		return mark, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err == nil && json.Unmarshal(data, &mark) != nil {
		err = formatErrorf(path, "found no valid JSON")
	}
	return mark, err
}

// Parts reads the parts of a file as the file. It is safe for use by several goroutines.
type Parts struct {
	files []*os.File
	s     *Stripe
}

// openParts opens a file of the pack in dir, striped or not, by the paths of its parts.
func openParts(s *Stripe, paths []string) (*Parts, error) {
	p := &Parts{s: s}
	for _, path := range paths {
		f, err := openRegular(path)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.files = append(p.files, f)
	}
	return p, nil
}

// OpenFile opens one file of a pack whose parts lie in dir and the stripe's folders.
func (m *Manifest) OpenFile(dir string, f *FileEntry) (*Parts, error) {
	return openParts(m.Stripe, m.paths(dir, f))
}

// DropCache asks the kernel to forget what it holds of the file in memory.
func (p *Parts) DropCache() {
	for _, f := range p.files {
		DropCache(f)
	}
}

// ReadAt reads as an io.ReaderAt.
func (p *Parts) ReadAt(b []byte, off int64) (n int, err error) {
	if len(p.files) == 1 {
		return p.files[0].ReadAt(b, off)
	}
	for n < len(b) {
		stripe, within := (off+int64(n))/p.s.Bytes, (off+int64(n))%p.s.Bytes
		k := int64(len(p.files))
		part := b[n:min(int64(len(b)), int64(n)+p.s.Bytes-within)]
		got, err := p.files[stripe%k].ReadAt(part, stripe/k*p.s.Bytes+within)
		if n += got; got < len(part) {
			return n, err
		}
	}
	return n, nil
}

// Close closes the parts.
func (p *Parts) Close() error {
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	p.files = nil
	return errors.Join(errs...)
}

// checkParts holds the sizes of a file's parts against the manifest.
func (m *Manifest) checkParts(dir string, f *FileEntry) error {
	paths := m.paths(dir, f)
	for i, path := range paths {
		want := f.Bytes
		if len(paths) > 1 {
			want = m.Stripe.PartBytes(f.Bytes, i, len(paths))
		}
		if err := checkSize(path, want); err != nil {
			return err
		}
	}
	return nil
}
