package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// talksKept is how many talks stay in the state folder.
const talksKept = 20

// stateDir is the user's folder for what the program remembers by itself.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leat"), nil
	}
	var dir string
	var err error
	switch runtime.GOOS {
	case "windows":
		dir, err = os.UserCacheDir() // %LocalAppData%
	case "darwin":
		dir, err = os.UserConfigDir() // ~/Library/Application Support
	default:
		dir, err = os.UserHomeDir()
		dir = filepath.Join(dir, ".local", "state")
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "leat"), nil
}

// talksDir is the folder of the talks that are kept.
func talksDir() (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "talks"), nil
}

// keeper writes a talk to the state folder while it goes on: before each answer and
// after it. So the talk outlives a crash, a closed terminal and a killed process.
type keeper struct {
	dir   string // "": nothing is kept
	model string // as a later run finds it
	warn  func(error)

	mu   sync.Mutex                      // flush may come from the goroutine that ends the process
	path string                          // this talk's file; "" until something was said
	from string                          // the file this talk goes on from
	talk *saved                          // as last written
	live struct{ thinking, text []byte } // the part of the next answer that was shown
}

// hold writes the talk as it stands.
func (k *keeper) hold(talk *saved) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.talk = talk
	k.forgetLive()
	k.write(talk)
}

// said adds to the answer in progress. Nothing is written: flush does that where the
// answer doesn't end by itself.
func (k *keeper) said(thinking, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live.thinking = append(k.live.thinking, thinking...)
	k.live.text = append(k.live.text, text...)
}

func (k *keeper) forgetLive() { k.live.thinking, k.live.text = nil, nil }

// flush writes the answer in progress, as far as it came.
func (k *keeper) flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.talk == nil || len(k.live.text)+len(k.live.thinking) == 0 {
		return
	}
	k.talk.Messages = append(k.talk.Messages, message{roleAssistant, string(k.live.text), string(k.live.thinking)})
	k.forgetLive()
	k.write(k.talk)
}

// end ends the talk. It returns the talk's file, "" where there is none. The file that
// the talk went on from goes away if the new one holds all of it.
func (k *keeper) end() (path string) {
	k.flush()
	k.mu.Lock()
	defer k.mu.Unlock()
	path = k.path
	if path != "" && k.from != "" {
		if old, err := readSaved(k.from); err == nil && k.talk.holds(old) {
			os.Remove(k.from)
		}
	}
	k.path, k.from, k.talk = "", "", nil
	return path
}

// forget removes this talk's file and keeps nothing from here on.
func (k *keeper) forget() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	path := k.path
	k.dir, k.path, k.talk = "", "", nil
	k.forgetLive()
	if path == "" {
		return nil
	}
	return os.Remove(path)
}

// write is hold's and flush's. An error is shown once; then nothing more is kept.
func (k *keeper) write(talk *saved) {
	if k.dir == "" || len(talk.Messages) == 0 {
		return
	}
	err := k.make()
	if err == nil {
		talk.Model = k.model
		err = talk.write(k.path)
	}
	if err != nil {
		k.dir = ""
		k.warn(fmt.Errorf("keep the talk: %w", err))
	}
}

// make gives the talk a file that no other process writes to.
func (k *keeper) make() error {
	if k.path != "" {
		return nil
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(k.dir, 0o700); err != nil { // it may have been there
		return err
	}
	f, err := os.CreateTemp(k.dir, time.Now().Format("2006-01-02T150405")+"-*.json")
	if err != nil {
		return err
	}
	k.path = f.Name()
	k.prune()
	return f.Close()
}

// prune removes all talks but the newest. What can't be removed stays.
func (k *keeper) prune() {
	talks, _ := keptTalks(k.dir)
	for _, path := range talks[min(talksKept, len(talks)):] {
		if path != k.path && path != k.from {
			os.Remove(path)
		}
	}
}

// keptTalks lists the talks in a folder by their last change, newest first.
func keptTalks(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	type talk struct {
		path string
		at   time.Time
	}
	var talks []talk
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".json") && e.Name()[0] != '.' {
			talks = append(talks, talk{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(talks, func(a, b talk) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.path, a.path)
	})
	paths := make([]string, len(talks))
	for i := range talks {
		paths[i] = talks[i].path
	}
	return paths, nil
}

// pathOfModel names a model so that a run in another folder finds it.
func pathOfModel(arg string) string {
	if arg == "demo" {
		return arg
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return arg
	}
	return path
}
