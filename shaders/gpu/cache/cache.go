package cache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds: what is larger is not kept, nor read; and of the files of one kind the newest stay.
const (
	MaxBytes = 64 << 20
	MaxFiles = 8
)

const magic = "leat cache 1\n"

// Folder is a place for files. A nil one keeps nothing.
type Folder struct{ path string }

// Open returns the folder at path, which is made at the first [Folder.Update]; nil for "".
func Open(path string) *Folder {
	if path == "" {
		return nil
	}
	return &Folder{path}
}

// Path is where the folder is; "" for nil.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// file names the file of a kind, letters only, under a key.
func (f *Folder) file(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.path, kind+"-"+hex.EncodeToString(sum[:8])+".bin")
}

// UnreadableError says why a file that is there counts as absent.
type UnreadableError struct{ Path, Why string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read cache file %s: %s, wanted what we wrote", e.Path, e.Why)
}

// Load returns what a kind holds under a key, nil where there is nothing. The error, an [*UnreadableError] for a damaged
// or foreign file, is for a log: it is as if there were none.
func (f *Folder) Load(kind, key string) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	path := f.file(kind, key)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	head := header(key)
	most := int64(len(head)+sha256.Size) + MaxBytes
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, &UnreadableError{path, fmt.Sprintf("%d bytes", info.Size())}
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	rest, ours := bytes.CutPrefix(data, head)
	switch {
	case !ours || len(rest) < sha256.Size:
		return nil, &UnreadableError{path, "its header is another one"}
	}
	payload := rest[sha256.Size:]
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, &UnreadableError{path, "its checksum does not match"}
	}
	return payload, nil
}

func header(key string) []byte { return fmt.Appendf(nil, "%s%q\n", magic, key) }

// Update replaces what a kind holds under a key by what change makes of it, nil where there is nothing. No other process
// updates it meanwhile. Where change returns nil the file goes.
func (f *Folder) Update(kind, key string, change func(old []byte) ([]byte, error)) error {
	if f == nil {
		return nil
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return err
	}
	path := f.file(kind, key)
	unlock := lock(path + ".lock")
	defer unlock()
	old, _ := f.Load(kind, key) // what can't be read is replaced
	data, err := change(old)
	if err != nil {
		return err
	}
	if data == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if len(data) > MaxBytes {
		return fmt.Errorf("write cache file %s: %d bytes, want at most %d", path, len(data), MaxBytes)
	}
	if err := write(path, key, data); err != nil {
		return err
	}
	f.prune(kind)
	return nil
}

// write puts the file in place whole or not at all.
func write(path, key string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	_, err = tmp.Write(slices.Concat(header(key), sum[:], data))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// A lock is held for as long as writing takes. One that is older was left by a process that died.
const (
	lockPause = 5 * time.Millisecond
	lockWait  = 2 * time.Second
)

// lock makes a file that others can't make; where that fails it goes without: the worst is a measurement made again.
func lock(path string) (unlock func()) {
	for begin := time.Now(); time.Since(begin) < lockWait; time.Sleep(lockPause) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			file.Close()
			return func() { os.Remove(path) }
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			break
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > lockWait {
			os.Remove(path)
		}
	}
	return func() {}
}

// File is one of a folder's files.
type File struct {
	Name  string // within the folder
	Kind  string
	Bytes int64
	Used  time.Time // written last
}

// Files lists what is there, the newest first.
func (f *Folder) Files() []File {
	if f == nil {
		return nil
	}
	entries, _ := os.ReadDir(f.path)
	var files []File
	for _, e := range entries {
		kind, _, ok := strings.Cut(e.Name(), "-")
		if !ok || kind == "" || kind[0] == '.' || filepath.Ext(e.Name()) != ".bin" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, File{e.Name(), kind, info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name)) })
	return files
}

// prune drops the oldest files of a kind: of drivers and programs of the past.
func (f *Folder) prune(kind string) {
	n := 0
	for _, file := range f.Files() {
		if file.Kind != kind {
			continue
		}
		if n++; n > MaxFiles {
			os.Remove(filepath.Join(f.path, file.Name))
		}
	}
}
