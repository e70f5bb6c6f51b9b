package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// configDir is the user's folder of this program: system.txt and history are in it.
func configDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "leat"), nil
}

const maxSystem = 1 << 20 // bytes of a system prompt

// readSystem reads a system prompt; the newline at a file's end is not part of it.
func readSystem(path string) (string, error) {
	data, err := readFile(path, maxSystem)
	if err != nil {
		return "", fmt.Errorf("read the system prompt: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// defaultSystem is the system prompt in the user's own file, "" where there is none.
func defaultSystem() (string, error) {
	dir, err := configDir()
	if err != nil {
		return "", nil // no home: no file
	}
	text, err := readSystem(filepath.Join(dir, "system.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return text, err
}
