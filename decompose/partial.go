package decompose

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leat/decompose/pack"
	"leat/internal/output"
)

const (
	journalName = "leat.journal"
	tmpSuffix   = ".tmp"
	maxJournal  = 64 << 20 // bytes
)

// partial is the folder OUTDIR.partial while this process owns it. Its journal, JSON lines, is the
// lock too: whoever holds the lock on the open journal owns the folder.
type partial struct {
	dir     string
	journal *os.File
	hooks   *hooks
	stripe  *pack.Stripe // nil: there are no other folders
	opened  []string     // of those, the ones that are ours
}

// The journal's first line says what is being written; each further line, that a file under its own
// name is whole and on disk, or (bad) that it is not after all.
type (
	journalHeader struct {
		Version int          `json:"decompose_journal"`
		Source  []sourceID   `json:"source"`
		Layout  string       `json:"layout"`
		Stripe  *pack.Stripe `json:"stripe,omitempty"`
	}
	journalLine struct {
		File   string  `json:"file,omitempty"`
		Bytes  int64   `json:"bytes,omitempty"`
		MTime  int64   `json:"mtime_ns,omitempty"`
		Parts  []int64 `json:"part_mtimes_ns,omitempty"` // of the parts in other folders
		SHA256 string  `json:"sha256,omitempty"`
		Bad    string  `json:"bad,omitempty"`
	}
)

// openPartial makes or finds the folder and locks it.
func openPartial(outdir string, h *hooks) (*partial, error) {
	dir := outdir + pack.PartialSuffix
	for range 10 {
		if err := checkAbsent(outdir); err != nil {
			return nil, err
		}
		p, retry, err := tryPartial(dir, h)
		if !retry {
			if err != nil {
				return nil, err
			}
			// The previous owner may have finished between our look and our lock.
			if err := checkAbsent(outdir); err != nil {
				p.remove()
				return nil, err
			}
			return p, nil
		}
	}
	return nil, fmt.Errorf("lock %s: %w", dir, ErrBusy)
}

// tryPartial asks for a retry where the folder was renamed under our feet.
func tryPartial(dir string, h *hooks) (p *partial, retry bool, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, false, fmt.Errorf("make folder: %w", err)
	}
	path := filepath.Join(dir, journalName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := checkEmpty(dir); err != nil {
			return nil, false, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("open journal: %w", err)
	}
	locked, err := output.TryLock(f)
	switch {
	case err != nil:
		f.Close()
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	case !locked:
		f.Close()
		return nil, false, &hinted{fmt.Errorf("lock %s: %w", dir, ErrBusy), "wait for it, or name another OUTDIR"}
	case !output.InPlace(f):
		f.Close()
		return nil, true, nil
	}
	return &partial{dir: dir, journal: f, hooks: h}, false, nil
}

// checkAbsent refuses an OUTDIR that is there.
func checkAbsent(outdir string) error {
	_, err := os.Lstat(outdir)
	if err == nil {
		return &hinted{fmt.Errorf("write %s: %w", outdir, ErrExists), "remove it first, or name another OUTDIR; leat verify tells whether it is a whole pack"}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at OUTDIR: %w", err)
	}
	return nil
}

// checkEmpty refuses a folder of someone else's that has our name.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() != journalName {
			return &hinted{fmt.Errorf("write %s: found %q and no journal of ours, wanted no folder or an empty one", dir, e.Name()), "remove it, or name another OUTDIR"}
		}
	}
	return nil
}

// resume marks the files that an earlier run finished, and says why it starts anew if it must.
func (p *partial) resume(l *layout) (anew string, err error) {
	header, lines, valid, err := p.read()
	if err != nil {
		return "", err
	}
	switch {
	case header == nil:
		anew = "" // a first run, or one killed in its first moment
	case header.Version != 1:
		anew = "the unfinished folder is another version's"
	case !slices.Equal(header.Source, l.sources):
		anew = "the source changed since (size or time)"
	case header.Layout != l.hash:
		anew = "the source's tensors or metadata changed since, or the layout did"
	default:
		p.adopt(l, lines)
		return "", p.clean(l, valid)
	}
	if err := p.clean(nil, 0); err != nil {
		return "", err
	}
	if header != nil {
		if err := p.forget(header.Stripe); err != nil {
			return "", err
		}
	}
	return anew, p.append(journalHeader{Version: 1, Source: l.sources, Layout: l.hash, Stripe: p.stripe})
}

// read takes the journal apart; valid is the length of its whole lines. A last line without its end
// is what a kill leaves: it never was.
func (p *partial) read() (header *journalHeader, lines []journalLine, valid int64, err error) {
	data, err := io.ReadAll(io.LimitReader(p.journal, maxJournal))
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read journal: %w", err)
	}
	s := bufio.NewScanner(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1]))
	s.Buffer(nil, maxJournal)
	for s.Scan() {
		if header == nil {
			header = &journalHeader{}
			if json.Unmarshal(s.Bytes(), header) != nil {
				header.Version = -1
			}
		} else {
			var line journalLine
			if json.Unmarshal(s.Bytes(), &line) != nil {
				break
			}
			lines = append(lines, line)
		}
		valid += int64(len(s.Bytes())) + 1
	}
	return header, lines, valid, nil
}

// adopt believes a line if the file has the size and time it had then. It was synced before the line
// was written; --verify and leat verify read it again.
func (p *partial) adopt(l *layout, lines []journalLine) {
	byName := make(map[string]*outFile, len(l.files))
	for _, f := range l.files {
		byName[f.Name] = f
	}
	for _, line := range lines {
		if f := byName[line.Bad]; f != nil {
			f.finished = false
		}
		f := byName[line.File]
		if f == nil || f.Bytes != line.Bytes {
			continue
		}
		f.finished = p.intact(f.FileEntry, &line)
		f.SHA256 = line.SHA256
	}
}

// clean removes what the journal does not vouch for and cuts the journal to its valid part. Only
// names this program writes are touched.
func (p *partial) clean(l *layout, valid int64) error {
	keep := map[string]bool{}
	if l != nil {
		for _, f := range l.files {
			keep[f.Name] = f.finished
		}
	}
	if err := p.sweep(p.dir, keep); err != nil {
		return err
	}
	if err := p.journal.Truncate(valid); err != nil {
		return fmt.Errorf("cut journal: %w", err)
	}
	if _, err := p.journal.Seek(valid, io.SeekStart); err != nil {
		return fmt.Errorf("cut journal: %w", err)
	}
	return nil
}

// sweep removes from a folder what is ours and not to be kept.
func (p *partial) sweep(dir string, keep map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look at folder: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if keep[name] || !ours(name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove stale file: %w", err)
		}
	}
	return nil
}

// ours reports whether this program may have written a file of that name here.
func ours(name string) bool {
	name = strings.TrimSuffix(name, tmpSuffix)
	return name == pack.ManifestName || name == pack.MetadataName || name == pack.StripeName || strings.HasSuffix(name, ".bin")
}

// append adds a line to the journal and syncs it.
func (p *partial) append(line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := p.hooks.write(p.journal, append(b, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return p.hooks.sync(p.journal)
}

// finish gives a written file its own name, on disk, and returns its time.
func (p *partial) finish(f *os.File, dir, name string) (mtime int64, err error) {
	if err := p.hooks.sync(f); err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, fmt.Errorf("close: %w", err)
	}
	path := filepath.Join(dir, name)
	if err := os.Rename(path+tmpSuffix, path); err != nil {
		return 0, fmt.Errorf("finish file: %w", err)
	}
	if err := p.hooks.syncDir(dir); err != nil {
		return 0, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return 0, fmt.Errorf("finish file: %w", err)
	}
	return info.ModTime().UnixNano(), nil
}

// create opens NAME.tmp, empty.
func (p *partial) create(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name)+tmpSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	return f, nil
}

// publish gives the whole folder its own name. The journal goes last: killed before that, the pack
// is whole with a file too many.
func (p *partial) publish(outdir string) error {
	if !renamesOpen {
		p.close() // Windows renames no folder with an open file in it
	}
	if err := checkAbsent(outdir); err != nil {
		return err
	}
	if err := os.Rename(p.dir, outdir); err != nil {
		return fmt.Errorf("finish pack: %w", err)
	}
	p.close()
	if err := os.Remove(filepath.Join(outdir, journalName)); err != nil {
		return fmt.Errorf("finish pack: %w", err)
	}
	if err := p.hooks.syncDir(outdir); err != nil {
		return err
	}
	return p.hooks.syncDir(filepath.Dir(outdir))
}

// remove deletes what is ours in the folder, and the folder if nothing else is in it.
func (p *partial) remove() {
	if p.journal == nil || p.clean(nil, 0) != nil {
		return
	}
	p.removeFolders()
	if !renamesOpen {
		p.close()
	}
	os.Remove(filepath.Join(p.dir, journalName))
	os.Remove(p.dir)
	p.close()
}

// close gives the lock back. It may be called twice.
func (p *partial) close() {
	if p.journal != nil {
		p.journal.Close()
		p.journal = nil
	}
}
