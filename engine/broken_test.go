package engine_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leat/decompose"
	"leat/engine"
	"leat/tools/await"
	"leat/tools/testdata"
)

// TestDiskFails: when a file becomes shorter under a running model, the step says so, later
// steps too, and nothing hangs or is left.
func TestDiskFails(t *testing.T) {
	demo := testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf"
	base, handles := runtime.NumGoroutine(), openHandles()
	for _, c := range []struct {
		file string // of the pack; "": the GGUF
		keep int64
		want string
	}{
		{"layer_003.bin", 4096, "layer 3"},
		{"layer_000.bin", 0, "layer 0"},
		{"lm_head.bin", 1 << 16, "lm_head"},
		{"embed.bin", 100, "token_embd"},
		{"", 1 << 20, "m.gguf"},
	} {
		t.Run(c.want, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			data, err := os.ReadFile(demo)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			cut := path
			if c.file != "" {
				if _, err := decompose.Run(t.Context(), path, path+".pack", decompose.Options{}); err != nil {
					t.Fatal(err)
				}
				path += ".pack"
				if cut = filepath.Join(path, c.file); c.file == "lm_head.bin" {
					if _, err := os.Stat(cut); err != nil {
						t.Skip("the model's head is its embedding")
					}
				}
			}
			testTruncated(t, path, cut, c.keep, c.want)
		})
	}
	await.Goroutines(t, base)
	if n := openHandles(); n > handles {
		t.Errorf("%d files are open, %d were before", n, handles)
	}
}

func testTruncated(t *testing.T, path, cut string, keep int64, want string) {
	o := setup(engine.Options{ContextLength: 64, HostBytes: 1, DeviceBytes: 1})
	_, err := engine.LoadSetup(t.Context(), path, o)
	o.DeviceBytes = budgetNeed(t, err)
	m := load(t, path, o)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids := m.Encode("Once upon a time", true)
	generate(t, s, ids, engine.Params{MaxTokens: 2})
	if err := os.Truncate(cut, keep); err != nil {
		t.Fatal(err)
	}
	var first error
	for range 4 { // the ring runs ahead by a few units
		for _, err := range s.Generate(t.Context(), nil, engine.Params{MaxTokens: 1, IgnoreEOG: true}) {
			first = err
		}
		if first != nil {
			break
		}
	}
	var changed *engine.SourceChangedError // what a read met first: bytes that are still there, or none
	if first == nil || !strings.Contains(first.Error(), want) || !errors.Is(first, io.ErrUnexpectedEOF) && !errors.As(first, &changed) || !hinted(first) {
		t.Fatalf("found error %v, wanted ErrUnexpectedEOF or a SourceChangedError with a hint that names %s", first, want)
	}
	for _, err := range s.Generate(t.Context(), nil, engine.Params{MaxTokens: 1, IgnoreEOG: true}) {
		if err == nil {
			t.Error("a step ran after the ring had failed")
		}
	}
	s.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
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
			m, err := engine.LoadSetup(t.Context(), c.path, setup(engine.Options{}))
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
