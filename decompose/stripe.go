package decompose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"leat/decompose/pack"
)

// newStripe lays a pack out over its own folder and others, nil for none.
func newStripe(l *layout, outdir string, o *Options) (*pack.Stripe, error) {
	if len(o.Stripe) == 0 {
		return nil, nil
	}
	s := &pack.Stripe{Bytes: o.StripeBytes}
	if s.Bytes == 0 {
		s.Bytes = pack.StripeBytes
	}
	own, err := filepath.Abs(outdir)
	if err != nil {
		return nil, fmt.Errorf("stripe over folders: %w", err)
	}
	seen := map[string]bool{own: true, own + pack.PartialSuffix: true}
	for _, f := range o.Stripe {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, fmt.Errorf("stripe over %s: %w", f, err)
		}
		if f == "" || seen[abs] {
			return nil, &hinted{fmt.Errorf("stripe over %q: found it named twice, or empty", f), "name a folder on another drive, which leat makes"}
		}
		seen[abs] = true
		s.Folders = append(s.Folders, abs)
	}
	// The same source at the same time gives the same bytes, so a resume finds its own again.
	id, err := digestOf(l.hash, l.sources, own)
	s.ID = id[:32]
	return s, err
}

// outParts is a file being written: NAME.tmp in each folder that has a part of it.
type outParts struct {
	files  []*os.File
	stripe int64
	off    int64
}

// create opens NAME.tmp, empty, wherever the file has a part.
func (p *partial) createParts(f *outFile) (*outParts, error) {
	w := &outParts{}
	for _, dir := range p.foldersOf(f.FileEntry) {
		file, err := p.create(dir, f.Name)
		if err != nil {
			w.close()
			return nil, err
		}
		w.files = append(w.files, file)
	}
	if len(w.files) > 1 {
		w.stripe = p.stripe.Bytes
	}
	return w, nil
}

// foldersOf are the folders that hold a part of a file.
func (p *partial) foldersOf(f *pack.FileEntry) []string {
	if p.stripe.Spreads(f) {
		return append([]string{p.dir}, p.stripe.Folders...)
	}
	return []string{p.dir}
}

// write appends to the file, to each part what is its own.
func (w *outParts) write(h *hooks, b []byte) error {
	if w.stripe == 0 {
		return h.write(w.files[0], b)
	}
	for len(b) > 0 {
		n := min(int64(len(b)), w.stripe-w.off%w.stripe)
		if err := h.write(w.files[w.off/w.stripe%int64(len(w.files))], b[:n]); err != nil {
			return err
		}
		w.off += n
		b = b[n:]
	}
	return nil
}

func (w *outParts) close() {
	for _, f := range w.files {
		f.Close()
	}
}

// finishParts gives each part its own name, on disk, and returns their times.
func (p *partial) finishParts(w *outParts, f *pack.FileEntry) (mtimes []int64, err error) {
	for i, dir := range p.foldersOf(f) {
		mtime, err := p.finish(w.files[i], dir, f.Name)
		if err != nil {
			for _, rest := range w.files[i+1:] {
				rest.Close()
			}
			return nil, err
		}
		mtimes = append(mtimes, mtime)
	}
	return mtimes, nil
}

// intact reports whether a file's parts have the sizes and times that the journal says.
func (p *partial) intact(f *pack.FileEntry, line *journalLine) bool {
	dirs := p.foldersOf(f)
	mtimes := append([]int64{line.MTime}, line.Parts...)
	if f.Bytes != line.Bytes || len(mtimes) != len(dirs) {
		return false
	}
	for i, dir := range dirs {
		want := f.Bytes
		if len(dirs) > 1 {
			want = p.stripe.PartBytes(f.Bytes, i, len(dirs))
		}
		info, err := os.Lstat(filepath.Join(dir, f.Name))
		if err != nil || !info.Mode().IsRegular() || info.Size() != want || info.ModTime().UnixNano() != mtimes[i] {
			return false
		}
	}
	return true
}

// openFolders makes the other folders of a striped pack, or finds those of an earlier run,
// and removes from them what the journal does not vouch for.
func (p *partial) openFolders(l *layout) error {
	if p.stripe == nil {
		return nil
	}
	keep := map[string]bool{pack.StripeName: true}
	for _, f := range l.files {
		keep[f.Name] = f.finished && p.stripe.Spreads(f.FileEntry)
	}
	for i, dir := range p.stripe.Folders {
		if err := p.openFolder(dir, pack.StripeMark{ID: p.stripe.ID, Part: i + 1, Of: len(p.stripe.Folders) + 1}); err != nil {
			return err
		}
		p.opened = append(p.opened, dir)
		if err := p.sweep(dir, keep); err != nil {
			return err
		}
	}
	return nil
}

func (p *partial) openFolder(dir string, mark pack.StripeMark) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	switch found, err := pack.ReadStripeMark(dir); {
	case err == nil && found == mark:
		return nil
	case err == nil:
		return &hinted{fmt.Errorf("stripe over %s: found a part of another pack: %w", dir, ErrExists), "remove it first, or name another folder"}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("stripe over %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() != pack.StripeName+tmpSuffix {
			return &hinted{fmt.Errorf("stripe over %s: found %q, wanted no folder or an empty one: %w", dir, e.Name(), ErrExists), "name another folder: leat makes it"}
		}
	}
	data, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	f, err := p.create(dir, pack.StripeName)
	if err != nil {
		return err
	}
	if err := p.hooks.write(f, append(data, '\n')); err != nil {
		f.Close()
		return err
	}
	_, err = p.finish(f, dir, pack.StripeName)
	return err
}

// forget deletes the parts that an earlier run wrote for another pack.
func (p *partial) forget(old *pack.Stripe) error {
	if old == nil {
		return nil
	}
	for _, dir := range old.Folders {
		if mark, err := pack.ReadStripeMark(dir); err != nil || mark.ID != old.ID {
			continue // not made yet, or not ours any more
		}
		if err := p.sweep(dir, nil); err != nil {
			return err
		}
		os.Remove(dir) // if it is empty now
	}
	return nil
}

// removeFolders deletes what is ours in the other folders.
func (p *partial) removeFolders() {
	for _, dir := range p.opened {
		if p.sweep(dir, nil) == nil {
			os.Remove(dir) // if it is empty now
		}
	}
	p.opened = nil
}

// checkSpace holds what is still to write against what is free, drive by drive.
func (j *job) checkSpace() error {
	dirs := []string{j.partial.dir}
	if j.partial.stripe != nil {
		dirs = append(dirs, j.partial.stripe.Folders...)
	}
	need := make([]int64, len(dirs))
	for i := range need {
		need[i] = 1 << 20 // manifest, journal, the file system's own
	}
	for _, f := range j.layout.files {
		if f.finished {
			continue
		}
		if !j.partial.stripe.Spreads(f.FileEntry) {
			need[0] += f.Bytes
			continue
		}
		for i := range dirs {
			need[i] += j.partial.stripe.PartBytes(f.Bytes, i, len(dirs))
		}
	}
	for i, dir := range dirs {
		sum := int64(0)
		for k, other := range dirs {
			if k == i || sameDrive(dir, other) {
				sum += need[k]
			}
		}
		have, err := j.hooks.free(dir)
		if err != nil {
			j.log().Debug("decompose can't tell the free space", "folder", dir, "error", err)
			continue
		}
		if have < sum {
			return &SpaceError{Dir: dir, Need: sum, Have: have}
		}
		if i > 0 && sameDrive(dirs[0], dir) {
			j.log().Warn("striping over one drive brings nothing", "folder", dir)
		}
	}
	return nil
}
