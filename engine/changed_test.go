package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/decompose"
	"leat/engine"
	"leat/tools/testdata"
)

// TestSourceChanges: a model whose file is written to while it streams says so at the next read, and names the file; one that is all in
// VRAM does not care.
func TestSourceChanges(t *testing.T) {
	for _, c := range []struct {
		name, changed string // the file of the pack; "": the GGUF
		resident      bool
	}{{"GGUF", "", false}, {"pack", "layer_003.bin", false}, {"resident", "", true}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.gguf")
			data, err := os.ReadFile(testdata.Root(t) + "/cmd/leat/demo/leat-demo-q4_k_m.gguf")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			changed := path
			if c.changed != "" {
				if _, err := decompose.Run(t.Context(), path, path+".pack", decompose.Options{}); err != nil {
					t.Fatal(err)
				}
				path += ".pack"
				changed = filepath.Join(path, c.changed)
			}
			o := setup(engine.Options{ContextLength: 64})
			if !c.resident {
				o.HostBytes, o.DeviceBytes = 1, 1
				_, err := engine.LoadSetup(t.Context(), path, o)
				o.DeviceBytes = budgetNeed(t, err)
			}
			testChanged(t, load(t, path, o), changed, c.resident)
		})
	}
}

func testChanged(t *testing.T, m *engine.Model, changed string, resident bool) {
	if err := m.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	generate(t, s, m.Encode("Once upon a time", true), engine.Params{MaxTokens: 2})
	rewrite(t, changed)
	var first error
	for range 6 { // what was read ahead stays good: the ring is a few units
		for _, err := range s.Generate(t.Context(), nil, engine.Params{MaxTokens: 1, IgnoreEOG: true}) {
			first = err
		}
		if first != nil {
			break
		}
	}
	if resident {
		if first != nil {
			t.Errorf("a model that reads nothing more ended with %v", first)
		}
		return
	}
	var e *engine.SourceChangedError
	if !errors.As(first, &e) || !strings.Contains(first.Error(), filepath.Base(changed)) || !hinted(first) {
		t.Fatalf("found error %v, wanted a SourceChangedError with a hint that names %s", first, changed)
	}
	if _, err := s.Forward(t.Context(), nil); !errors.As(err, &e) {
		t.Errorf("a later step ended with %v", err)
	}
}

// rewrite writes a file anew, in place.
func rewrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, info.Size()/2), info.Size()/4); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)); err != nil { // the clock of a file system may be coarse
		t.Fatal(err)
	}
}
