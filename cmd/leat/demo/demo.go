package demo

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"

	"leat/internal/output"
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
	if have, err := output.ReadState(path, int64(len(model))); err == nil && bytes.Equal(have, model) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := output.Write(path, model, output.Options{Perm: 0o644}); err != nil {
		return "", err
	}
	return path, nil
}

// cacheDir falls back to the temporary folder for accounts without a home.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "leat")
}
