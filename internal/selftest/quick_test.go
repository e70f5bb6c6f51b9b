package selftest

import (
	"testing"

	"leat/internal/kernels"
	"leat/shaders"
)

// Every kernel has quick cases, and proofs unless nothing stands in for it; each entry is some kernel's, and in one table.
func TestQuickCovers(t *testing.T) {
	used := map[string]bool{}
	all := shaders.Kernels()
	for i := range all {
		k := &all[i]
		used[k.Op], used[k.Op+"_"+k.Variant] = true, true
		e := testsOf(k)
		if e.quick == nil {
			t.Errorf("kernel %s has no quick cases", k.Name)
			continue
		}
		cases := e.quick(k)
		if len(cases) == 0 {
			t.Errorf("kernel %s has no quick cases", k.Name)
		}
		for _, c := range cases {
			if c.Kernel != k.Name {
				t.Errorf("kernel %s has the quick case %s", k.Name, &c)
			}
		}
		if kernels.HasStandIn(k.Name) && e.proofs == nil {
			t.Errorf("kernel %s has no proofs", k.Name)
		}
	}
	seen := map[string]bool{}
	for _, table := range tables {
		for name := range table {
			if !used[name] || seen[name] {
				t.Errorf("%s has an entry twice, or there is no such op or variant", name)
			}
			seen[name] = true
		}
	}
}
