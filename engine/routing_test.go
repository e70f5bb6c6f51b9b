package engine_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"leat/engine"
	"leat/engine/expert"
	"leat/engine/token"
	"leat/tools/testdata"
)

// TestRouting: the experts that are recorded do not depend on where they live, nor on how tokens share steps; and a cache that
// replays them hits as often as the slots did.
func TestRouting(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-moe-q8_0.gguf")
	base := exact(engine.Options{ContextLength: 64, Chunk: 12, Discrete: true, ExpertPolicy: "lru"})
	least := leastBudget(t, path, base)
	var first *expert.Routing
	var some int64 // VRAM for a part of the experts
	for i, change := range []func(o *engine.Options){
		func(*engine.Options) {},
		func(o *engine.Options) { o.DeviceBytes = some },
		func(o *engine.Options) { o.DeviceBytes, o.Chunk = some, 1 },
	} {
		var file bytes.Buffer
		o := base
		change(&o)
		o.Routing = &file
		m := load(t, path, o)
		if i == 0 {
			some = (least + m.Plan().DeviceBytes) / 2
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
		got, err := expert.ReadRouting(&file)
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
		if n := len(m.Plan().Experts.Classes); n != 1 {
			t.Fatalf("%d classes of experts, wanted one", n)
		}
		p, err := expert.ByName("lru")
		if err != nil {
			t.Fatal(err)
		}
		if r, err := expert.Replay(got, slots, p); err != nil || o.Chunk == 1 && (r.Hits != stats.Hits || r.Misses != stats.HostMisses+stats.DiskMisses) {
			t.Errorf("%d: a replay has %+v, the slots had %+v, %v", i, r.Stats, stats, err)
		}
		if stats.Hits == 0 {
			t.Errorf("%d: nothing was found in VRAM: %+v", i, stats)
		}
	}
}

// flat is the ids of all rows.
func flat(r *expert.Routing) (ids []uint16) {
	for _, s := range r.Steps {
		ids = append(ids, s.IDs...)
	}
	return ids
}
