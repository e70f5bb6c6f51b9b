package engine_test

import (
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/internal/kernels"
	"leat/vk/vktest"
)

var combinations = flag.Bool("combinations", false, "TestDisable: all sets of features, on all models; elsewhere: all ways, on all models, faults at more moments")

// TestDisable runs models without each feature that can be disabled, and without any: a long step and steps of few rows.
// By itself, one model of each weight type (of those that are in turn), and one model without what no kernel here makes a difference by; with
// -combinations every set of features and every model.
func TestDisable(t *testing.T) {
	alone(t)
	names := vktest.Disabled(t)
	gs, sets := goldens(t), append(singles(names), names)
	if *combinations {
		sets = subsets(names)
	} else {
		gs = slices.DeleteFunc(gs, func(g golden) bool {
			return !strings.HasPrefix(g.name, "llama-tiny-") && g.name != "leat-demo-q4_k_m" && g.name != "qwen2-tiny-q8_0"
		})
	}
	if os.Getenv("LEAT_VALIDATE") == "1" { // the layers are slow, and see the same kernels in other tests
		sets, gs = sets[len(sets)-1:], slices.DeleteFunc(gs, func(g golden) bool { return strings.HasPrefix(g.name, "llama-tiny-q") })
	}
	ran := map[kernelSet]bool{kernelsWithout(t, nil): true}
	for n, set := range sets {
		gs := gs
		k := kernelsWithout(t, set)
		if ran[k] && !*combinations {
			gs = gs[:1]
		}
		ran[k] = true
		t.Run("without "+strings.Join(set, " "), func(t *testing.T) {
			for i, g := range gs {
				if len(gs) > 1 && !inTurn(n+i) {
					continue
				}
				t.Run(g.name, func(t *testing.T) {
					t.Parallel()
					testDisable(t, g, set)
				})
			}
		})
	}
}

// kernelSet is what the choice of kernels goes by.
type kernelSet struct{ few, bytes, matrices, persistent, int64, subgroups bool }

func kernelsWithout(t *testing.T, set []string) kernelSet {
	t.Helper()
	p, _ := chosen(t, nil)
	f, err := p.Choose(set, vktest.Enable())
	if err != nil {
		t.Fatal(err)
	}
	return kernelSet{kernels.HasFewRowKernels(p, f), kernels.PromptsUseInt8(p, f), kernels.PromptsUseMatrices(p, f), f.Persistent, f.Int64, f.SubgroupArithmetic}
}

func testDisable(t *testing.T, g golden, set []string) {
	k := kernelsWithout(t, set)
	for _, o := range []engine.Setup{{Options: engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 8}}}, {Options: engine.Options{KVType: "f16", ContextLength: 128}}} {
		o.Tuning.Disable = set
		bytes := k.few // all rows' logits are wanted, so the last layer's products are those of decoding
		b := measureBound(t, g, o, bytes)
		if o.Tuning.Chunk > 0 && !bytes {
			b.limit = math.Pow(toleranceF32, 2)
		}
		if !(b.nmse <= b.limit) {
			t.Errorf("chunk %d: NMSE %.2e, wanted at most %.2e", o.Tuning.Chunk, b.nmse, b.limit)
		}
	}
}

func singles(names []string) (sets [][]string) {
	for _, d := range names {
		sets = append(sets, []string{d})
	}
	return sets
}

// subsets lists all subsets of names, the empty one first.
func subsets(names []string) [][]string {
	sets := [][]string{nil}
	for _, n := range names {
		for _, s := range sets {
			sets = append(sets, append(slices.Clone(s), n))
		}
	}
	return sets
}
