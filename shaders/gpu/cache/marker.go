package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"leat/internal/output"
)

// Marker says on disk what this process is doing that may kill it. It is a file that the process keeps locked: the lock
// ends with the process, however that ends, so a marker that is not locked and not empty was left by a process that died
// at what it says. Nothing is synced: a marker outlives its process, not a power cut.
type Marker struct {
	mu      sync.Mutex
	file    *os.File // nil: closed
	explain bool     // Go's runtime writes into it why the process died
}

// maxLeft bounds what is read of a marker: a line, then the text of a crash.
const maxLeft = 16 << 10

var (
	markersMu sync.Mutex
	markers   = map[*Marker]bool{} // of this process
	explains  bool
	forgiven  bool
)

// ExplainCrashes has Go's runtime write into this process's markers why it dies, where a signal in C code is the reason.
// That takes the one [debug.SetCrashOutput] there is, so programs ask for it, libraries don't.
func ExplainCrashes() {
	markersMu.Lock()
	defer markersMu.Unlock()
	explains = true
}

// Forgive empties this process's markers for good: its user ends it, which says nothing about what it was doing.
func Forgive() {
	markersMu.Lock()
	forgiven = true
	mine := make([]*Marker, 0, len(markers))
	for m := range markers {
		mine = append(mine, m)
	}
	markersMu.Unlock()
	for _, m := range mine {
		m.Clear()
	}
}

// markerPrefix begins the names of a kind's markers under a key; what follows differs by process.
func markerPrefix(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "-" + hex.EncodeToString(sum[:8]) + "-"
}

const markerSuffix = ".mark"

// NewMarker makes a marker, which says nothing yet. The error is that of a folder that can't be written, or locked in.
func (f *Folder) NewMarker(kind, key string) (*Marker, error) {
	if f == nil {
		return nil, errors.New("make marker: there is no folder")
	}
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		return nil, err
	}
	for range 8 { // another process may remove it between the making and the locking
		file, err := os.CreateTemp(f.path, markerPrefix(kind, key)+"*"+markerSuffix)
		if err != nil {
			return nil, err
		}
		locked, err := output.TryLock(file)
		if err != nil {
			file.Close()
			os.Remove(file.Name())
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if locked && output.InPlace(file) {
			return adopt(&Marker{file: file}), nil
		}
		file.Close()
	}
	return nil, errors.New("make marker: other processes remove each one")
}

func adopt(m *Marker) *Marker {
	markersMu.Lock()
	defer markersMu.Unlock()
	markers[m] = true
	m.explain = explains && debug.SetCrashOutput(m.file, debug.CrashOptions{}) == nil
	return m
}

// Set writes what is done next, one line.
func (m *Marker) Set(what string) error {
	markersMu.Lock()
	skip := forgiven
	markersMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || skip {
		return nil
	}
	if err := m.empty(); err != nil {
		return err
	}
	_, err := m.file.WriteString(what + "\n") // where it ends a crash's text begins
	return err
}

// Clear says that it is done.
func (m *Marker) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		m.empty()
	}
}

func (m *Marker) empty() error {
	if err := m.file.Truncate(0); err != nil {
		return err
	}
	_, err := m.file.Seek(0, io.SeekStart)
	return err
}

// Close removes the marker. It may be called twice.
func (m *Marker) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return
	}
	markersMu.Lock()
	delete(markers, m)
	markersMu.Unlock()
	if m.explain {
		debug.SetCrashOutput(nil, debug.CrashOptions{})
	}
	m.empty()
	m.file.Close() // Windows removes no open file
	os.Remove(m.file.Name())
	m.file = nil
}

// Left is a marker of a process that died.
type Left struct {
	What   string // it was doing
	Signal string // of C code, that ended it: "SIGSEGV: segmentation violation"; "": unknown, it may have been killed
}

// TakeLeft hands over every marker of a kind under a key whose process died; those for which take returns no error go.
func (f *Folder) TakeLeft(kind, key string, take func(Left) error) error {
	if f == nil {
		return nil
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	prefix := markerPrefix(kind, key)
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), markerSuffix) && e.Type().IsRegular() {
			errs = append(errs, takeLeft(filepath.Join(f.path, e.Name()), take))
		}
	}
	return errors.Join(errs...)
}

func takeLeft(path string, take func(Left) error) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrPermission) {
		file, err = os.Open(path) // read-only: it can't go, and counts again next time
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil // another process took it
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if locked, err := output.TryLock(file); err != nil || !locked || !output.InPlace(file) {
		return err // its process lives
	}
	text, err := io.ReadAll(io.LimitReader(file, maxLeft))
	if err != nil {
		return err
	}
	if len(text) > 0 {
		what, crash, _ := bytes.Cut(text, []byte("\n"))
		if err := take(Left{string(what), signalIn(string(crash))}); err != nil {
			return err
		}
	}
	file.Truncate(0) // whoever comes between the two finds nothing
	file.Close()
	os.Remove(path)
	return nil
}

// signalIn is the signal that a crash's text says ended C code, "" where it says something else: a panic is no driver's.
func signalIn(crash string) string {
	head, rest, _ := strings.Cut(crash, "\n")
	switch {
	case strings.HasPrefix(head, "Exception 0x") && strings.Contains(rest, "signal arrived during external code execution"):
		return head // Windows
	case !strings.Contains(rest, "signal arrived during cgo execution"):
		return ""
	}
	for _, signal := range []string{"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"} {
		if strings.HasPrefix(head, signal) {
			return head
		}
	}
	return ""
}
