package cache

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"leat/internal/output"
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
	data, err := output.ReadState(path, mostBytes(key))
	if err != nil {
		return nil, &UnreadableError{path, err.Error()}
	}
	return decode(path, key, data)
}

// mostBytes bounds a file.
func mostBytes(key string) int64 { return int64(len(header(key))+sha256.Size) + MaxBytes }

// decode returns what a file holds under a key; nil, with the reason, where it is not as it was written.
func decode(path, key string, data []byte) ([]byte, error) {
	if data == nil {
		return nil, nil
	}
	rest, ours := bytes.CutPrefix(data, header(key))
	if !ours || len(rest) < sha256.Size {
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
	path := f.file(kind, key)
	err := output.UpdateState(path, mostBytes(key), func(raw []byte) ([]byte, error) {
		old, _ := decode(path, key, raw) // what is damaged is replaced
		data, err := change(old)
		if err != nil || data == nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		return slices.Concat(header(key), sum[:], data), nil
	})
	if err == nil {
		f.prune(kind)
	}
	return err
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
