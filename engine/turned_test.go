package engine_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"leat/engine"
	"leat/gguf"
	"leat/internal/kernels"
)

// TestTurned runs products of Q, K and V that turn and write the cache, which a CPU does not by itself: with biases, with values of another type than
// queries and keys, and on each type of cache that they take. On others, and where their test fails, rope is a kernel of its own.
func TestTurned(t *testing.T) {
	alone(t)
	for _, g := range goldens(t) {
		if !slices.Contains([]string{"llama-tiny-q4_k_m", "llama-tiny-q6_k", "qwen2-tiny-q8_0"}, g.name) {
			continue
		}
		for _, kv := range []string{"f32", "f16", "q8_0"} {
			for _, broken := range []bool{false, true} {
				if kv != "f16" && broken {
					continue
				}
				t.Run(fmt.Sprintf("%s %s, broken %v", g.name, kv, broken), func(t *testing.T) {
					testTurned(t, g, kv, broken)
				})
			}
		}
	}
}

func testTurned(t *testing.T, g golden, kv string, broken bool) {
	o := setup(engine.Options{KVType: kv, ContextLength: 128, Tuning: engine.Tuning{Chunk: 8}})
	log := logged(&o, slog.LevelDebug)
	o = engine.WithKernels(o, func(k *kernels.Options) {
		k.FuseRope = true
		if test := k.Test; broken {
			k.Test = func(k *kernels.Kernels, v kernels.Variant) error {
				if v.Rope != (kernels.RopeConstants{}) && v.Row.Type != gguf.Q4_K { // of Q4_K_M values alone, of the others all
					return errors.New("broken for this test")
				}
				return test(k, v)
			}
		}
	})
	b := measureBound(t, g, o, true)
	limit := b.limit
	if kv != "f32" {
		limit = math.Max(limit, nmseBytes)
	}
	if kv == "q8_0" {
		limit = 1e-2
	}
	if !(b.nmse <= limit) {
		t.Errorf("NMSE %.2e, wanted at most %.2e", b.nmse, limit)
	}
	built := func(name string) bool { return strings.Contains(log.String(), `msg="built kernel" name=`+name) }
	within := kv != "q8_0"
	if built("mul_mat_vec_rope_") != within || built("rope_kv_") == (within && !broken) {
		t.Errorf("products that turn were built: %v, rope by itself: %v", built("mul_mat_vec_rope_"), built("rope_kv_"))
	}
}
