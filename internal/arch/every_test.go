package arch_test

import (
	"path/filepath"
	"slices"
	"testing"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/tools/golden/tiny"
	"leat/tools/synth/synthetic"
	"leat/tools/testdata"
)

// everyModel calls do with models of all architectures: those that the project writes by itself, and, where there is
// test data, those in it that load.
func everyModel(t *testing.T, do func(t *testing.T, m *pack.Model)) {
	t.Helper()
	seen := map[string]bool{}
	each := func(name string, m *pack.Model) {
		seen[m.Architecture()] = true
		t.Run(name, func(t *testing.T) { do(t, m) })
	}
	for _, name := range tiny.Names() {
		each(name, nano(t, name))
	}
	for _, name := range synthetic.Arches() {
		each(name, open(t, synthetic.Options{Arch: name, Shape: synthetic.Shape{BlockCount: 2}}))
	}
	if len(seen) < 10 { // all but mistral, which is written as llama
		t.Errorf("found models of %d architectures", len(seen))
	}
	t.Run("test data", func(t *testing.T) {
		found := 0
		for _, pattern := range []string{"hf/*.gguf", "models/*-q4_k_m.gguf", "models/*mxfp4*.gguf"} {
			paths, err := filepath.Glob(filepath.Join(testdata.Dir(t), pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				m, err := pack.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(arch.Supported(), m.Architecture()) {
					found++
					each(filepath.Base(path), m)
				}
				m.Close()
			}
		}
		if found < 50 {
			t.Errorf("found %d models that load, wanted 50 and more", found)
		}
	})
}

// with is the model with other units or keys: edit may change both.
func with(t *testing.T, m *pack.Model, edit func(md *gguf.Metadata, units []pack.Unit) []pack.Unit) *pack.Model {
	t.Helper()
	units := slices.Clone(m.Units)
	for i := range units {
		units[i].Tensors = slices.Clone(units[i].Tensors)
	}
	md := m.Metadata.Clone()
	v, err := m.View(edit(md, units))
	if err != nil {
		t.Fatal(err)
	}
	v.Metadata = md
	return v
}

// withKey is the model with one key more, or another value of it; nil takes it away.
func withKey(t *testing.T, m *pack.Model, key string, value any) *pack.Model {
	t.Helper()
	return with(t, m, func(md *gguf.Metadata, units []pack.Unit) []pack.Unit {
		if value == nil {
			md.Delete(key)
		} else if err := md.Set(key, value); err != nil {
			t.Fatal(err)
		}
		return units
	})
}

// withTensor is the model with one tensor more.
func withTensor(t *testing.T, m *pack.Model, kind pack.Kind, layer int, name string, shape ...int64) *pack.Model {
	t.Helper()
	return with(t, m, func(_ *gguf.Metadata, units []pack.Unit) []pack.Unit {
		extra := pack.Tensor{Name: name, Type: gguf.F32, Shape: shape, Bytes: 4}
		for i := range units {
			if units[i].Kind == kind && units[i].Layer == layer {
				units[i].Tensors = append(units[i].Tensors, extra)
				return units
			}
		}
		return append(units, pack.Unit{Kind: kind, Layer: layer, Expert: -1, Name: "more", Tensors: []pack.Tensor{extra}})
	})
}
