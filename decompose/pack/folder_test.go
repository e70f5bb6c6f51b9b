package pack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/decompose"
	"leat/decompose/pack"
	"leat/tools/testdata"
)

// makePack decomposes a small real model with experts.
func makePack(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pack")
	in := filepath.Join(testdata.Dir(t), "models", "mixtral-tiny-q4_k_m.gguf")
	if _, err := decompose.Run(context.Background(), in, dir, decompose.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func edit(t testing.TB, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o666); err != nil {
		t.Fatal(err)
	}
}

func replace(t testing.TB, old, new string) func([]byte) []byte {
	return func(b []byte) []byte {
		if !strings.Contains(string(b), old) {
			t.Fatalf("found no %q to change", old)
		}
		return []byte(strings.Replace(string(b), old, new, 1))
	}
}

// damages are what happens to packs; each must be refused by Open, or at least by Verify.
var damages = []struct {
	name   string
	damage func(t *testing.T, dir string)
	opens  bool   // sizes don't tell
	want   string // in Verify's error, and in Open's
}{
	{"shorter file", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "layer_001.bin"), func(b []byte) []byte { return b[:len(b)-1] })
	}, false, "layer_001.bin: found 118783 bytes, wanted 118784"},
	{"longer file", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "experts_002.bin"), func(b []byte) []byte { return append(b, 0) })
	}, false, "experts_002.bin: found 1032193 bytes"},
	{"missing file", func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "embed.bin")); err != nil {
			t.Fatal(err)
		}
	}, false, "embed.bin: found no such file"},
	{"folder for a file", func(t *testing.T, dir string) {
		path := filepath.Join(dir, "embed.bin")
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil {
			t.Fatal(err)
		}
	}, false, "embed.bin: found"},
	{"one bit", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "layer_003.bin"), func(b []byte) []byte { b[5000] ^= 1; return b })
	}, true, "layer_003.bin: found SHA-256"},
	{"one bit of padding", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "layer_003.bin"), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	}, true, "layer_003.bin: found SHA-256"},
	{"metadata cut", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "metadata.gguf"), func(b []byte) []byte { return b[:len(b)/2] })
	}, false, "metadata.gguf: found"},
	{"other architecture", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "manifest.json"), replace(t, `"architecture": "llama"`, `"architecture": "lama"`))
	}, false, `general.architecture: found "llama", wanted "lama"`},
	{"escape", func(t *testing.T, dir string) {
		edit(t, filepath.Join(dir, "manifest.json"), replace(t, `"embed.bin"`, `"../pack/embed.bin"`))
	}, false, `wanted "embed.bin"`},
	{"no manifest", func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "manifest.json")); err != nil {
			t.Fatal(err)
		}
	}, false, "found no manifest.json"},
}

func TestDamagedPack(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			dir := makePack(t)
			if err := pack.Verify(context.Background(), dir, nil); err != nil {
				t.Fatal(err)
			}
			c.damage(t, dir)
			err := pack.Verify(context.Background(), dir, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, pack.ErrFormat) {
				t.Errorf("verify: found %v, wanted an ErrFormat that says %q", err, c.want)
			}
			m, err := pack.Open(dir)
			if err == nil {
				m.Close()
			}
			if (err == nil) != c.opens {
				t.Errorf("open: found %v", err)
			}
			if err != nil && !errors.Is(err, pack.ErrFormat) {
				t.Errorf("open: found %v, wanted an ErrFormat", err)
			}
		})
	}
}

// Verify names every damaged file, not the first alone.
func TestVerifyNamesAll(t *testing.T) {
	dir := makePack(t)
	damages[0].damage(t, dir)
	damages[2].damage(t, dir)
	damages[4].damage(t, dir)
	var last, total int64
	err := pack.Verify(context.Background(), dir, func(done, all int64) {
		if done < last {
			t.Errorf("progress went back from %d to %d", last, done)
		}
		last, total = done, all
	})
	var damage *pack.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("found %v, wanted a DamageError", err)
	}
	var names []string
	for _, d := range damage.Files {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "embed.bin layer_001.bin layer_003.bin" || damage.Total != 12 {
		t.Errorf("found %s of %d", got, damage.Total)
	}
	if last != total || total == 0 {
		t.Errorf("progress ended at %d of %d", last, total)
	}
}

func TestVerifyOfNoPack(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(file, []byte("GGUF"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"a file", file, "model.gguf: found a file, wanted the folder of a pack"},
		{"a folder", dir, "found no manifest.json"},
		{"nothing", filepath.Join(dir, "nowhere"), "nowhere: no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := pack.Verify(context.Background(), c.path, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, wanted it to say %q", err, c.want)
			}
		})
	}
}

func TestVerifyCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := pack.Verify(ctx, makePack(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, wanted a cancel", err)
	}
}

// A pack that was moved, reached by a link or a relative path, with someone's notes in it.
func TestPackMoves(t *testing.T) {
	dir := makePack(t)
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(moved, "manifest.json"), func(b []byte) []byte { return b })
	if err := os.WriteFile(filepath.Join(moved, "notes.txt"), []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(moved))
	m, err := pack.Open("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Units) != 23 || m.Architecture() != "llama" {
		t.Errorf("found %d units of %q", len(m.Units), m.Architecture())
	}
}
