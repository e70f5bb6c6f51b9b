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

// Bounds of what is kept.
const (
	MaxBytes = 64 << 20 // of a file's content
	MaxFiles = 8        // of one kind: Update deletes the oldest
)

const magic = "leat cache 1\n" // begins every file

// Folder is a folder of such files. A nil *Folder is valid: Load finds nothing in it and Update stores nothing.
type Folder struct{ path string }

// Open returns the folder at path, or nil if path is "". The first Update or NewMarker makes it.
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

// file returns the path of the file for a kind, which is of letters only, and a key.
func (f *Folder) file(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.path, kind+"-"+hex.EncodeToString(sum[:8])+".bin")
}

// UnreadableError says why Load ignores an existing file.
type UnreadableError struct{ Path, Why string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read cache file %s: %s, wanted what we wrote", e.Path, e.Why)
}

// Load returns the content for a kind and a key, or nil if there is none. Of a damaged or foreign file it returns nil and an
// [*UnreadableError]: log it, and go on as if there were no file.
func (f *Folder) Load(kind, key string) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	path := f.file(kind, key)
	data, err := output.ReadState(path, maxFileBytes(key))
	if err != nil {
		return nil, &UnreadableError{path, err.Error()}
	}
	return decode(path, key, data)
}

// maxFileBytes is the largest size of a file with this key.
func maxFileBytes(key string) int64 { return int64(len(header(key))+sha256.Size) + MaxBytes }

// decode returns the content of a file. It fails if the file is damaged or has another key.
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

// header begins a file; the checksum of the content follows, then the content.
func header(key string) []byte { return fmt.Appendf(nil, "%s%q\n", magic, key) }

// Update calls change with the content for a kind and a key, or nil if there is none, and stores the result, as [output.UpdateState] does.
// If change returns nil, Update deletes the file.
func (f *Folder) Update(kind, key string, change func(old []byte) ([]byte, error)) error {
	if f == nil {
		return nil
	}
	path := f.file(kind, key)
	err := output.UpdateState(path, maxFileBytes(key), func(raw []byte) ([]byte, error) {
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
	Name    string // within the folder
	Kind    string
	Bytes   int64
	Written time.Time
}

// Files lists the files of all kinds, without markers, newest first.
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
	slices.SortFunc(files, func(a, b File) int { return cmp.Or(b.Written.Compare(a.Written), cmp.Compare(a.Name, b.Name)) })
	return files
}

// prune deletes the oldest files of a kind, which are those of earlier drivers and versions, and keeps MaxFiles.
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
