package pack

import (
	"bytes"
	"path/filepath"
	"testing"

	"leat/tools/testdata"
)

// models lists every model of the test data.
func models(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{
		filepath.Join(testdata.Dir(t), "models", "*.gguf"),
		filepath.Join(testdata.Dir(t), "vendor", "models", "*.gguf"),
		filepath.Join(testdata.Demo(t), "*.gguf"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 30 {
		t.Fatalf("found %d models, want the test data's 30 and more", len(all))
	}
	return all
}

func openModel(t testing.TB, path string) *Model {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func readUnit(t testing.TB, m *Model, u *Unit) []byte {
	t.Helper()
	b := bytes.Repeat([]byte{0xa5}, int(u.Bytes))
	if err := m.ReadUnit(u, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGGUFUnits(t *testing.T) {
	for _, path := range models(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := openModel(t, path)
			for i := range m.Units {
				u := &m.Units[i]
				t.Log(u.Name, u.Bytes, len(u.Tensors), len(u.Extents))
				readUnit(t, m, u)
			}
		})
	}
}
