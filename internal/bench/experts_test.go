package bench

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"leat/engine"
	"leat/internal/expertcache"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

func TestExpertsOf(t *testing.T) {
	a := engine.Stats{Steps: 5, Rows: 100, Experts: engine.ExpertStats{Hits: 1, Layers: 2, Needed: 8}}
	b := a
	b.Steps, b.Rows = 9, 108
	if x := ExpertsOf(&a, &b); x != nil {
		t.Errorf("nothing was asked for: %+v", x)
	}
	b.Experts = engine.ExpertStats{Hits: 31, HostMisses: 6, DiskMisses: 4, Evictions: 3, Layers: 10, Needed: 48, VRAMBytes: 800, UploadedBytes: 240, DiskBytes: 80, Stalled: 2 * time.Second}
	want := Experts{Steps: 4, Tokens: 8, HitRate: 0.75, Hits: 30, HostMisses: 6, DiskMisses: 4, Evictions: 3, Uploaded: 240, Read: 80, Distinct: 5,
		VRAMPerToken: 100, RAMPerToken: 20, DiskPerToken: 10, Stalled: 2, StalledMS: 500}
	if x := ExpertsOf(&a, &b); x == nil || *x != want {
		t.Errorf("found %+v, wanted %+v", x, want)
	}
}

// A mixture within a budget: rows say what their experts took, and the run which were used.
func TestExperts(t *testing.T) {
	vktest.Instance(t)
	const used, layers, all = 4, 4, 16
	r, err := Run(t.Context(), Options{
		Path: filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf"), Engine: engine.Options{ContextLength: 64, DeviceBytes: 6 << 20, HostBytes: 3 << 20, Tuning: engine.Tuning{Chunk: 8, Discrete: true}},
		Tests: []Test{{Prompt: 16}, {Generate: 3}}, Repetitions: 2, Uses: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Plan.ExpertSlots == 0 {
		t.Fatalf("%d rows, plan %+v", len(r.Rows), r.Plan)
	}
	for i, want := range []struct {
		steps, tokens int64
		least, most   float64 // different experts
	}{{4, 32, used, all}, {6, 6, used, used}} {
		x := r.Rows[i].Experts
		if x == nil {
			t.Fatalf("%s says nothing of its experts", r.Rows[i].Test)
		}
		if x.Steps != want.steps || x.Tokens != want.tokens || x.Distinct < want.least || x.Distinct > want.most {
			t.Errorf("%s: %+v, wanted %+v", r.Rows[i].Test, x, want)
		}
		if asked := x.Hits + x.HostMisses + x.DiskMisses; asked < int64(x.Distinct*(layers-1))*want.steps { // a prompt has few rows left in the last one
			t.Errorf("%s: %d asked for, %.2f different ones in each of %d layers and %d steps", r.Rows[i].Test, asked, x.Distinct, layers, want.steps)
		}
		if (x.Hits > 0) != (x.VRAMPerToken > 0) || x.DiskMisses > 0 && x.DiskPerToken == 0 || x.Stalled > r.Rows[i].Stalled*sum(r.Rows[i].Seconds)+1e-9 {
			t.Errorf("%s: stalled for %g of its time: %+v", r.Rows[i].Test, r.Rows[i].Stalled, x)
		}
	}
	if len(r.Uses) != layers {
		t.Fatalf("uses of %d layers", len(r.Uses))
	}
	var first int64
	for l, uses := range r.Uses {
		var n int64
		for _, u := range uses {
			n += u
		}
		if l == 0 {
			first = n
		}
		if len(uses) != all || n != first || n%used != 0 || n < used*(32+6) {
			t.Errorf("layer %d: %d uses of %d experts, layer 0 has %d", l, n, len(uses), first)
		}
	}
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// What is no trace is the writer's error, and nobody waits.
func TestUsesBroken(t *testing.T) {
	u := countUses()
	if _, err := io.WriteString(u, "no trace\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the reader may have taken the first
		if _, err := u.Write([]byte{1}); err == nil {
			t.Error("more is taken")
		}
	}
	if list, _ := u.close(); list != nil {
		t.Errorf("counted %v", list)
	}
	u = countUses()
	w, err := expertcache.NewWriter(u, expertcache.Header{Layers: 1, Experts: 3, Used: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(expertcache.Step{Rows: 2, IDs: []uint16{0, 2, expertcache.NoExpert, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if list, err := u.close(); err != nil || len(list) != 1 || list[0][0] != 1 || list[0][1] != 0 || list[0][2] != 2 {
		t.Errorf("counted %v, %v", list, err)
	}
}
