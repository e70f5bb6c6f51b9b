package conform

import (
	"flag"
	"math/bits"
	"strings"
	"testing"

	"leat/shaders"
	"leat/vk"
	"leat/vk/vktest"
)

// Every kernel has all the quick shapes of its op, and they pass here.
func TestQuick(t *testing.T) {
	seen := map[string]int{}
	for _, c := range Quick() {
		seen[c.Kernel]++
	}
	ops := map[string]bool{}
	for _, k := range shaders.Kernels() {
		ops[k.Op], ops[k.Name], ops[k.Op+"_"+k.Variant] = true, true, true
		if want := len(quickShapes(&k)); seen[k.Name] != want || want == 0 {
			t.Errorf("kernel %s has %d quick cases, want %d and at least 1", k.Name, seen[k.Name], want)
		}
	}
	for op := range quick {
		if !ops[op] {
			t.Errorf("%s has quick shapes but there is no such op or kernel", op)
		}
	}
	testQuick(t)
}

func testQuick(t *testing.T, options ...vktest.Option) {
	s := newSuite(t, 1, options...)
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

var combinations = flag.Bool("combinations", false, "TestQuickDisabled: all sets of features")

// TestQuickDisabled runs the quick cases without each feature that can be disabled, and without any; with -combinations,
// every set of features.
func TestQuickDisabled(t *testing.T) {
	all := vk.Disabled()
	for set := 1; set < 1<<len(all); set++ {
		if n := bits.OnesCount(uint(set)); n > 1 && n < len(all) && !*combinations {
			continue
		}
		var names []string
		for i, name := range all {
			if set>>i&1 != 0 {
				names = append(names, name)
			}
		}
		t.Run("without "+strings.Join(names, " "), func(t *testing.T) { testQuick(t, vktest.Disable(names...)) })
	}
}
