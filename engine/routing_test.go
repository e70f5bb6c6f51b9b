package engine_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/token"
	"leat/internal/expertcache"
	"leat/tools/synth/synthetic"
	"leat/tools/testdata"
)

// TestRouting: the experts that are recorded do not depend on where they live, nor on how tokens share steps; and a cache that
// replays them hits as often as the slots did.
func TestRouting(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-moe-q8_0.gguf")
	base := exact(setup(engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 12, Discrete: true, ExpertPolicy: "lru"}}))
	least := leastBudget(t, path, base)
	var first *expertcache.Routing
	var some int64 // VRAM for a part of the experts
	for i, change := range []func(o *engine.Setup){
		func(*engine.Setup) {},
		func(o *engine.Setup) { o.DeviceBytes = some },
		func(o *engine.Setup) { o.DeviceBytes, o.Tuning.Chunk = some, 1 },
	} {
		var file bytes.Buffer
		o := base
		change(&o)
		o.Tuning.Routing = &file
		m := load(t, path, o)
		if i == 0 {
			some = (least + engine.DetailsOf(m).Plan.DeviceBytes) / 2
		}
		ids := m.Encode("Once upon a time there was a little girl called Lily who had a dog", true)
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Forward(context.Background(), ids[:12]); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids[12:] {
			if _, err := s.Forward(context.Background(), []token.ID{id}); err != nil {
				t.Fatal(err)
			}
		}
		slots, stats := slotsOf(m), m.Stats().Experts
		s.Close()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := expertcache.ReadRouting(&file)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(flat(got), flat(first)) || len(flat(got)) != len(ids)*got.Layers*got.Used {
			t.Errorf("%d: other experts than before were used", i)
		}
		if slots == 0 {
			continue
		}
		if n := len(engine.DetailsOf(m).Plan.Experts.Classes); n != 1 {
			t.Fatalf("%d classes of experts, wanted one", n)
		}
		p, err := expertcache.ByName("lru")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := expertcache.Replay(got, slots, p); err != nil || o.Tuning.Chunk == 1 && (r.Hits != stats.Hits || r.Misses != stats.HostMisses+stats.DiskMisses) {
			t.Errorf("%d: a replay has %+v, the slots had %+v, %v", i, r.Stats, stats, err)
		}
		if stats.Hits == 0 {
			t.Errorf("%d: nothing was found in VRAM: %+v", i, stats)
		}
	}
}

// flat is the ids of all rows.
func flat(r *expertcache.Routing) (ids []uint16) {
	for _, s := range r.Steps {
		ids = append(ids, s.IDs...)
	}
	return ids
}

// TestSyntheticRouting: tokens of a random model choose experts as freely behind a context as without one. (They once shared
// nearly all: what attention brought was larger than what the token was, and a cache of a third of the experts had 98 of 100.)
func TestSyntheticRouting(t *testing.T) {
	alone(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	o := synthetic.Options{Arch: "qwen3moe", Seed: 5, Shape: synthetic.Shape{BlockCount: 3, EmbeddingLength: 2048, ExpertCount: 32, ExpertUsedCount: 4}}
	if err := synthetic.Write(path, o); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	m := load(t, path, setup(engine.Options{ContextLength: 160, Tuning: engine.Tuning{Routing: &file}}))
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	const context0, tokens = 96, 40
	for i := range context0 + tokens {
		if _, err := s.Next(context.Background(), []token.ID{token.ID(7 + 13*i%200)}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := expertcache.ReadRouting(&file)
	if err != nil {
		t.Fatal(err)
	}
	ids, again, all := flat(got), 0, 0
	row := got.Layers * got.Used
	for i := context0; i < context0+tokens; i++ {
		for j := range row {
			before := ids[(i-1)*row+j/got.Used*got.Used:][:got.Used]
			if all++; slices.Contains(before, ids[i*row+j]) {
				again++
			}
		}
	}
	if part := float64(again) / float64(all); part > 0.35 {
		t.Errorf("a token shares %.0f %% of its experts with the one before; by chance it would be %.0f %%", 100*part, 100*float64(o.Shape.ExpertUsedCount)/float64(o.Shape.ExpertCount))
	}
}
