package conform

import (
	"testing"

	"leat/shaders"
)

// Every kernel has all the quick shapes of its op, and they pass here.
func TestQuick(t *testing.T) {
	seen := map[string]int{}
	for _, c := range Quick() {
		seen[c.Kernel]++
	}
	ops := map[string]bool{}
	for _, k := range shaders.Kernels() {
		ops[k.Op], ops[k.Name] = true, true
		if want := len(quickShapes(&k)); seen[k.Name] != want || want == 0 {
			t.Errorf("kernel %s has %d quick cases, want %d and at least 1", k.Name, seen[k.Name], want)
		}
	}
	for op := range quick {
		if !ops[op] {
			t.Errorf("%s has quick shapes but there is no such op or kernel", op)
		}
	}
	s := newSuite(t, 1)
	var sum Summary
	for _, c := range Quick() {
		if !s.Can(&c) {
			continue
		}
		r, err := s.Run(t.Context(), &c)
		if err != nil {
			t.Error(err)
			continue
		}
		sum.Add(r)
	}
	sum.Print(t.Output())
}
