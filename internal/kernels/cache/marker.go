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

// Marker records on disk which risky work this process is doing. It is a file that the process keeps locked. The system unlocks it when
// the process ends, so an unlocked marker with content comes from a process that died during the work that it names. Markers are not
// synced: they survive their process, but a power cut can lose them.
type Marker struct {
	mu      sync.Mutex
	file    *os.File // nil once it is closed
	explain bool     // Go's runtime writes the text of a crash into file
}

// maxLeft is how many bytes of a dead process's marker are read: the line that Set wrote, then the text of the crash.
const maxLeft = 16 << 10

var (
	markersMu sync.Mutex
	markers   = map[*Marker]bool{} // that this process has open
	explains  bool                 // ExplainCrashes was called
	cleared   bool                 // ClearMarkers was called
)

// ExplainCrashes has Go's runtime write the text of a crash into the marker that was made last. It uses [debug.SetCrashOutput], of which a
// process has only one, so a program calls it and a library doesn't.
func ExplainCrashes() {
	markersMu.Lock()
	defer markersMu.Unlock()
	explains = true
}

// ClearMarkers empties all markers of this process, and later calls of Set write nothing. Call it when the user stops the process: the
// work that was being done is not the reason.
func ClearMarkers() {
	markersMu.Lock()
	cleared = true
	mine := make([]*Marker, 0, len(markers))
	for m := range markers {
		mine = append(mine, m)
	}
	markersMu.Unlock()
	for _, m := range mine {
		m.Clear()
	}
}

// markerPrefix returns the start of the names of all markers of a kind and a key. The rest differs for each marker.
func markerPrefix(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "-" + hex.EncodeToString(sum[:8]) + "-"
}

const markerSuffix = ".mark"

// NewMarker makes an empty marker. It fails if it can't make a file in the folder, or can't lock it.
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
			return register(&Marker{file: file}), nil
		}
		file.Close()
	}
	return nil, errors.New("make marker: other processes remove each one")
}

// register adds a marker to those of this process.
func register(m *Marker) *Marker {
	markersMu.Lock()
	defer markersMu.Unlock()
	markers[m] = true
	m.explain = explains && debug.SetCrashOutput(m.file, debug.CrashOptions{}) == nil
	return m
}

// Set records the work that begins now, in one line.
func (m *Marker) Set(what string) error {
	markersMu.Lock()
	skip := cleared
	markersMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || skip {
		return nil
	}
	if err := m.truncate(); err != nil {
		return err
	}
	_, err := m.file.WriteString(what + "\n") // the text of a crash follows
	return err
}

// Clear empties the marker: the work is done.
func (m *Marker) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		m.truncate()
	}
}

func (m *Marker) truncate() error {
	if err := m.file.Truncate(0); err != nil {
		return err
	}
	_, err := m.file.Seek(0, io.SeekStart)
	return err
}

// Close deletes the marker's file. A second call does nothing.
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
	m.truncate()
	m.file.Close() // Windows removes no open file
	os.Remove(m.file.Name())
	m.file = nil
}

// LeftMarker is the content of a marker that a dead process left.
type LeftMarker struct {
	Work   string // what the process was doing
	Signal string // the signal that ended it in C code, such as "SIGSEGV: segmentation violation"; "" if there was none, or none is known
}

// TakeLeft calls take for each marker of a kind and a key that a dead process left, and deletes the marker if take returns nil.
func (f *Folder) TakeLeft(kind, key string, take func(LeftMarker) error) error {
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

// takeLeft is TakeLeft for one marker file.
func takeLeft(path string, take func(LeftMarker) error) error {
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
		if err := take(LeftMarker{string(what), signalIn(string(crash))}); err != nil {
			return err
		}
	}
	file.Truncate(0) // a process that opens it before it is removed finds nothing
	file.Close()
	os.Remove(path)
	return nil
}

// signalIn returns the signal that ended the process in C code, as the text of the crash says. It returns "" for all other crashes: no
// driver causes a panic of Go.
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
