package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leat/internal/output"
)

const (
	historyLimit = 1000     // entries that are kept
	historyEntry = 64 << 10 // bytes of one at most
	historyBytes = 16 << 20 // of the file
)

// history is what was typed, oldest first: in memory and, where it has a path, in a
// file of one JSON string a line, so that an entry may hold newlines.
type history struct {
	path    string
	entries []string
	added   map[string]bool // by this run, to the file
}

// openHistory reads the file at path; "" keeps the history in memory alone.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	data, err := readFile(path, historyBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, fmt.Errorf("read the history: %w", err)
	}
	lines := 0
	for line := range strings.Lines(string(data)) {
		var entry string
		if lines++; json.Unmarshal([]byte(line), &entry) == nil { // a line cut short by a crash is passed by
			h.push(entry)
		}
	}
	torn := len(data) > 0 && data[len(data)-1] != '\n' // what is added would be torn too
	if lines > 2*historyLimit || torn {
		return h, h.rewrite()
	}
	return h, nil
}

func (h *history) push(entry string) bool {
	if entry == "" || len(entry) > historyEntry || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return false
	}
	h.entries = append(h.entries, entry)
	h.entries = h.entries[max(0, len(h.entries)-historyLimit):]
	return true
}

// add remembers an entry. Several programs may add to one file.
func (h *history) add(entry string) error {
	if !h.push(entry) || h.path == "" {
		return nil
	}
	if h.added == nil {
		h.added = map[string]bool{}
	}
	h.added[entry] = true
	if err := h.append(entry); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// forget removes from the file what this run added, and adds nothing from here on.
func (h *history) forget() error {
	path := h.path
	h.path = ""
	if path == "" || len(h.added) == 0 {
		return nil
	}
	now, err := openHistory(path) // others may have added to it
	if err != nil {
		return err
	}
	now.entries = slices.DeleteFunc(now.entries, func(entry string) bool { return h.added[entry] })
	return now.rewrite()
}

func (h *history) append(entry string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return output.Append(h.path, append(line, '\n'), 0o600)
}

func (h *history) rewrite() error {
	var b strings.Builder
	for _, entry := range h.entries {
		line, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	if err := writeFile(h.path, []byte(b.String())); err != nil {
		return fmt.Errorf("rewrite the history: %w", err)
	}
	return nil
}
