package arch_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"leat/internal/arch"
)

// A layer in its order reads nothing that nobody wrote, whether its operations stand alone or are fused; and a fused one touches no
// value but those of its parts.
func TestReadsAfterWrites(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "engine", "testdata", "*-nano.gguf"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d models, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".gguf")
		m := nano(t, name)
		h, err := arch.Read(m)
		if err != nil {
			t.Fatal(err)
		}
		for l := range h.BlockCount {
			plain := h.Layer(l, m.Has)
			for way, ops := range map[string][]arch.Op{"alone": plain, "fused": arch.Fuse(plain)} {
				there := []arch.Value{arch.X, arch.LayerInputs}
				if h.Layers[l].Borrows { // an earlier layer has written them
					there = append(there, arch.Cache)
				}
				for i, o := range ops {
					for _, v := range o.Reads() {
						if !slices.Contains(there, v) && (h.Width(l, v) > 0 || v == arch.Cache) {
							t.Errorf("%s, layer %d, %s: operation %d of kind %d reads value %d, which nothing has written", name, l, way, i, o.Kind, v)
						}
					}
					there = append(there, o.Writes()...)
					if slices.Contains(there, arch.None) || slices.Contains(o.Reads(), arch.None) {
						t.Errorf("%s, layer %d, %s: operation %d of kind %d touches None", name, l, way, i, o.Kind)
					}
					if o.Ops != nil {
						fusedTouches(t, name, &o)
					}
				}
				if !slices.Contains(there, arch.Cache) && way == "alone" && slices.ContainsFunc(ops, func(o arch.Op) bool { return o.Kind == arch.Attention }) {
					t.Errorf("%s, layer %d: nothing writes the cache", name, l)
				}
			}
		}
		if n := h.Width(0, arch.None) + h.Width(0, arch.Cache); n != 0 {
			t.Errorf("%s: None and the cache are %d wide", name, n)
		}
	}
}

// fusedTouches holds what a fused operation says of itself against its parts.
func fusedTouches(t *testing.T, name string, o *arch.Op) {
	t.Helper()
	var reads, writes []arch.Value
	for i := range o.Ops {
		for _, v := range o.Ops[i].Reads() {
			if !slices.Contains(writes, v) {
				reads = append(reads, v)
			}
		}
		writes = append(writes, o.Ops[i].Writes()...)
	}
	for _, v := range o.Reads() {
		if !slices.Contains(reads, v) {
			t.Errorf("%s: an operation of kind %d reads value %d, none of its parts does", name, o.Kind, v)
		}
	}
	for _, v := range reads {
		if !slices.Contains(o.Reads(), v) {
			t.Errorf("%s: a part of an operation of kind %d reads value %d, which it doesn't say", name, o.Kind, v)
		}
	}
	for _, v := range o.Writes() {
		if !slices.Contains(writes, v) {
			t.Errorf("%s: an operation of kind %d writes value %d, none of its parts does", name, o.Kind, v)
		}
	}
}
