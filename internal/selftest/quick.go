package selftest

import (
	"slices"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
)

// entry has the cases of a kernel that the program itself runs.
type entry struct {
	quick  func(k *shaders.Kernel) []Case  // cases that find most faults; only a few, because a driver may take a second to compile a pipeline
	proofs func(v *kernels.Variant) []Case // cases for a pipeline before its first use; nil: the kernel has no stand-in
}

// table has entries by the name of op and variant, such as "rms_norm_q8", or by the op's name for variants without an entry of their own.
type table map[string]entry

// tables have an entry for each kernel. Each table is in the file of its cases.
var tables = []table{weightTests, vecTests, turnedTests, ropeTests, attnTests, fewTests, rowTests, normTests, actTests, valueTests, halvesTests, tileTests, moeTests, idHalvesTests, routedTests, teamIDTests, lookupTests, gateTests, stateTests, scanTests, headTests}

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

// Quick returns a few cases for every kernel. They take some seconds.
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

// common are the types that most models have, for the KV cache and for weights. [Sample] prefers the last one.
var common = []gguf.Type{gguf.F16, gguf.Q4_K}

// Sample returns one case of [Quick] for each variant of each op, with a common type if there are several. It is for devices that take a second to
// compile a pipeline: there all cases would take minutes.
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
