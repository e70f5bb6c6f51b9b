package conform

import (
	"flag"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"leat/gguf"
	"leat/internal/selftest"
	"leat/shaders"
	"leat/vk/vktest"
)

// The quick cases pass here. With LEAT_CONFORM_PARTS those of a tenth of the kernels of rare types, by turns.
func TestQuick(t *testing.T) {
	turn, kernel := freshSeed(), ""
	testQuick(t, func(c *selftest.Case) bool {
		if inParts == 1 || !rare(c) {
			return true
		}
		if c.Kernel != kernel {
			turn, kernel = turn+1, c.Kernel
		}
		return turn%10 == 0
	})
}

// TestQuickEnabled runs, with what LEAT_ENABLE names, the quick cases of the kernels that come by it, for some types of weights or
// with -combinations for all, and a case of each other op in each of its variants: for another driver than the one that all
// cases run on, which takes seconds to compile one.
func TestQuickEnabled(t *testing.T) {
	if len(vktest.Enable()) == 0 {
		t.Skip("LEAT_ENABLE names nothing")
	}
	types := []gguf.Type{gguf.Q8_0, gguf.Q4_K, gguf.Q6_K, gguf.F16}
	seen := map[string]bool{}
	testQuick(t, func(c *selftest.Case) bool {
		k, _ := shaders.Lookup(c.Kernel)
		variant := k.Op + " " + k.Variant
		first := !seen[variant]
		seen[variant] = true
		return first || k.Needs&shaders.CoopMatrix != 0 && (*combinations || !k.Typed || slices.Contains(types, k.Type))
	})
}

// testQuick runs those of the quick cases that are asked for.
func testQuick(t *testing.T, takes func(c *selftest.Case) bool, options ...vktest.Option) {
	s := newRunners(t, 1, options...)
	s.print(t)
	cases, order := byKernel(slices.DeleteFunc(selftest.Quick(), func(c selftest.Case) bool { return !s.can(&c) || !takes(&c) }))
	for _, kernel := range order {
		t.Run(kernel, func(t *testing.T) { s.run(t, cases[kernel]) })
	}
}

var combinations = flag.Bool("combinations", false, "TestQuickDisabled: all sets of features; TestQuickEnabled: all types; TestConform: all tiles")

// TestQuickDisabled runs the quick cases without each feature that can be disabled, and without any; with -combinations,
// every set of features, and with LEAT_CONFORM_PARTS some of the cases in each.
func TestQuickDisabled(t *testing.T) {
	all, turn := vktest.Disabled(t), freshSeed()
	t.Logf("-seed %d", turn)
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
		t.Run("without "+strings.Join(names, " "), func(t *testing.T) {
			testQuick(t, func(c *selftest.Case) bool {
				turn++
				every := uint64(inParts)
				if every > 1 && rare(c) {
					every *= 5
				}
				return turn%every == 0
			}, vktest.Disable(names...))
		})
	}
}
