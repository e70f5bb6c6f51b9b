package selftest

import (
	"slices"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
)

// entry is what the program itself runs of one way to compute an op.
type entry struct {
	quick  func(k *shaders.Kernel) []Case  // what shows most of what goes wrong on a device; few, for a driver may take a second to compile a pipeline
	proofs func(v *kernels.Variant) []Case // for a pipeline before its first use; nil: the kernel has no stand-in
}

// table has entries by op and variant, "rms_norm_q8", or by op for those of its variants that have no entry of their own.
type table map[string]entry

// tables have an entry for each kernel, each in the file of its cases.
var tables = []table{weightTests, vecTests, turnedTests, ropeTests, attnTests, fewTests, rowTests, halvesTests, tileTests, moeTests, idHalvesTests, routedTests, teamIDTests, lookupTests, gateTests, stateTests, headTests}

// testsOf finds the entry of a kernel.
func testsOf(k *shaders.Kernel) entry {
	for _, name := range []string{k.Op + "_" + k.Variant, k.Op} {
		for _, t := range tables {
			if e, ok := t[name]; ok {
				return e
			}
		}
	}
	return entry{}
}

// Quick returns a few cases for every kernel: a self-test of seconds.
func Quick() []Case {
	var cases []Case
	all := shaders.Kernels()
	for i := range all {
		if e := testsOf(&all[i]); e.quick != nil {
			cases = append(cases, e.quick(&all[i])...)
		}
	}
	return cases
}

// common are the types that most models have, of the cache and of the weights; the last is taken before the first.
var common = []gguf.Type{gguf.F16, gguf.Q4_K}

// Sample returns one case of Quick for one kernel of each way to compute each op, of a common type where there are several:
// on a device that takes a second to compile a pipeline the others would take minutes.
func Sample() []Case {
	type way struct{ op, variant string }
	chosen := map[way]*shaders.Kernel{}
	all := shaders.Kernels()
	for i := range all {
		k := &all[i]
		w := way{k.Op, k.Variant}
		if old := chosen[w]; old == nil || slices.Index(common, k.Type) > slices.Index(common, old.Type) {
			chosen[w] = k
		}
	}
	return slices.DeleteFunc(Quick(), func(c Case) bool {
		k, ok := shaders.Lookup(c.Kernel)
		if !ok || chosen[way{k.Op, k.Variant}] == nil || chosen[way{k.Op, k.Variant}].Name != k.Name {
			return true
		}
		chosen[way{k.Op, k.Variant}] = nil // its first case is enough
		return false
	})
}
