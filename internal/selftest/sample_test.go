package selftest

import (
	"testing"

	"leat/gguf"
	"leat/shaders"
)

// A sample has each way to compute each op once, of the weights' most common type, and no more.
func TestSample(t *testing.T) {
	seen, cases := map[string]string{}, 0
	for _, c := range Sample() {
		k, ok := shaders.Lookup(c.Kernel)
		if !ok {
			t.Fatalf("no kernel %s", c.Kernel)
		}
		way := k.Op + "/" + k.Variant
		if other := seen[way]; other != "" {
			t.Errorf("%s is tested with %s and %s", way, other, k.Name)
		}
		seen[way], cases = k.Name, cases+1
	}
	all := shaders.Kernels()
	for i := range all {
		k := &all[i]
		if seen[k.Op+"/"+k.Variant] == "" {
			t.Errorf("no kernel of %s is tested as %s", k.Op, k.Variant)
		}
		if k.Type == gguf.Q4_K && seen[k.Op+"/"+k.Variant] != k.Name {
			t.Errorf("%s is left out for %s", k.Name, seen[k.Op+"/"+k.Variant])
		}
	}
	if most := len(Quick()) / 6; cases > most {
		t.Errorf("%d cases, wanted at most %d", cases, most)
	}
}
