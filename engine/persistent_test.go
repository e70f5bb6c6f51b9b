package engine_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"leat/engine"
)

// TestPersistent runs gates by workgroups that go on from output to output, which a CPU does only if asked to.
func TestPersistent(t *testing.T) {
	alone(t)
	for _, g := range goldens(t) {
		if !slices.Contains([]string{"llama-tiny-q4_k_m", "llama-tiny-q5_k_m", "llama-tiny-q6_k"}, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			o := setup(engine.Options{KVType: "f32", ContextLength: 128, Tuning: engine.Tuning{Chunk: 8, Enable: []string{"persistent"}}, CacheDir: t.TempDir()}) // a device of its own, which logs what it builds
			log := logged(&o, slog.LevelDebug)
			b := measureBound(t, g, o, true)
			if !(b.nmse <= b.limit) {
				t.Errorf("NMSE %.2e, wanted at most %.2e", b.nmse, b.limit)
			}
			if !strings.Contains(log.String(), "mul_mat_vec_persistent") {
				t.Errorf("no such kernel was built: %s", log.String()[:min(3000, log.Len())])
			}
		})
	}
}
