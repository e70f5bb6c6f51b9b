package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/tools/golden/tiny"
	"leat/tools/testdata"
)

// The goldens in the tree are what the command writes: to the byte but for the logits, which another processor may round
// otherwise.
func TestFresh(t *testing.T) {
	kept := filepath.Join(testdata.Root(t), "engine", "testdata")
	for _, name := range tiny.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var out bytes.Buffer
			if code := run([]string{"-o", dir, name}, &out); code != 0 {
				t.Fatalf("exit code %d: %s", code, out.String())
			}
			for _, ending := range []string{".gguf", ".deq.json"} {
				if !bytes.Equal(read(t, filepath.Join(dir, name+ending)), read(t, filepath.Join(kept, name+ending))) {
					t.Errorf("%s%s is not what go run ./tools/golden writes", name, ending)
				}
			}
			got, want := read(t, filepath.Join(dir, name+".deq.f32")), read(t, filepath.Join(kept, name+".deq.f32"))
			if len(got) != len(want) {
				t.Fatalf("%s.deq.f32 has %d bytes, %d are written", name, len(want), len(got))
			}
			for i := 0; i < len(got); i += 4 {
				g, w := value(got[i:]), value(want[i:])
				if !(math.Abs(g-w) <= 1e-5*max(1, math.Abs(w))) {
					t.Fatalf("%s.deq.f32: value %d is %g, %g is written", name, i/4, w, g)
				}
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func value(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"help", []string{"-h"}, 0, "Example: "},
		{"an unknown flag", []string{"-colour"}, 2, "-colour"},
		{"an unknown model", []string{"-o", t.TempDir(), "mamba"}, 1, `found name "mamba"`},
		{"no such folder", []string{"-o", filepath.Join(t.TempDir(), "none")}, 1, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(c.args, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, output %q; want %d and %q", code, out.String(), c.code, c.want)
			}
		})
	}
}
