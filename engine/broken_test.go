package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose"
	"leat/engine"
	"leat/tools/testdata"
)

// TestDiskFails: when a streamed layer can't be read any more, the step says so, later
// steps too, and nothing hangs.
func TestDiskFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pack")
	if _, err := decompose.Run(t.Context(), testdata.Root(t)+"/cmd/leat/demo/leat-demo-q4_k_m.gguf", dir, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	o := engine.Options{ContextLength: 64, HostBytes: 1, DeviceBytes: 1}
	_, err := engine.Load(t.Context(), dir, o)
	o.DeviceBytes = budgetNeed(t, err)
	m := load(t, dir, o)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := m.Encode("Once upon a time", true)
	generate(t, s, ids, engine.Params{MaxTokens: 2})
	if err := os.Truncate(filepath.Join(dir, "layer_003.bin"), 4096); err != nil {
		t.Fatal(err)
	}
	var first error
	for range 4 { // the ring runs ahead by a few units
		for _, err := range s.Generate(t.Context(), nil, engine.Params{MaxTokens: 1}) {
			first = err
		}
		if first != nil {
			break
		}
	}
	if first == nil || !strings.Contains(first.Error(), "layer 3") {
		t.Fatalf("found error %v, wanted one that names layer 3", first)
	}
	for _, err := range s.Generate(t.Context(), nil, engine.Params{MaxTokens: 1}) {
		if err == nil {
			t.Error("a step ran after the ring had failed")
		}
	}
}

// TestLoadFails: a model that can't be loaded leaves nothing behind and says why.
func TestLoadFails(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.gguf")
	if err := os.WriteFile(text, []byte("this is no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "nowhere.gguf"), "nowhere.gguf"},
		{"no model", text, "GGUF"},
		{"empty folder", dir, "manifest.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := engine.Load(t.Context(), c.path, engine.Options{})
			if err == nil {
				m.Close()
				t.Fatal("it was loaded")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("found error %v, wanted one with %q", err, c.want)
			}
			if errors.Is(err, engine.ErrNoDevice) {
				t.Error("the file was looked at after the device")
			}
		})
	}
}
