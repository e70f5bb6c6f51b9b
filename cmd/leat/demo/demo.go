package demo

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed leat-demo-q4_k_m.gguf
var model []byte

// Path writes the model into dir, unless it stands there whole already, and returns its
// path. An empty dir means the user's cache folder. The name carries the content's hash,
// so two versions of the program don't overwrite each other's; the rename at the end lets
// several processes do this at once.
func Path(dir string) (string, error) {
	if dir == "" {
		dir = cacheDir()
	}
	sum := sha256.Sum256(model)
	path := filepath.Join(dir, "leat-demo-q4_k_m-"+hex.EncodeToString(sum[:4])+".gguf")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, model) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := writeFile(dir, path); err != nil {
		return "", err
	}
	return path, nil
}

func writeFile(dir, path string) (err error) {
	tmp, err := os.CreateTemp(dir, ".leat-demo-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if _, err := tmp.Write(model); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// cacheDir falls back to the temporary folder for accounts without a home.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "leat")
}
