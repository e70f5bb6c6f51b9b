package engine_test

import (
	"testing"

	"leat/engine"
	"leat/tools/synth/synthetic"
	"leat/vk/vktest"
)

// Rows of layers in slots tell what asking the host takes, and what going ahead does, within less VRAM than all the experts of
// these layers take.
func TestRehearseAhead(t *testing.T) {
	alone(t)
	vktest.Instance(t)
	path, classes, _ := small(t, synthetic.Options{Arch: "qwen3moe", Shape: synthetic.Shape{BlockCount: 4, ExpertCount: 32, EmbeddingLength: 64}})
	var all int64
	for i := range classes[0].Experts {
		all += classes[0].Experts[i].Bytes
	}
	o := setup(engine.Options{ContextLength: 64, DeviceBytes: 8 * all, Pace: "off", Tuning: engine.Tuning{Chunk: 8, Discrete: true}})
	r, err := engine.RehearseSetup(t.Context(), path, engine.WithHurry(engine.WithAhead(o)))
	if err != nil {
		t.Fatal(err)
	}
	if !r.Sound() || !(r.HostTrip >= 0) || !(r.ConditionalTrip > 0) || r.ConditionalTrip > max(r.HostTrip, 1e-7) {
		t.Errorf("a layer that asks takes %g s longer, one that goes ahead %g", r.HostTrip, r.ConditionalTrip)
	}
}
