package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"leat/engine"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/trace"
	"leat/tools/synth/synthetic"
	"leat/tools/testdata"
	"leat/vk/vktest"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   [4]float64 // median, min, max, MAD
	}{
		{"none", nil, [4]float64{}},
		{"one", []float64{3}, [4]float64{3, 3, 3, 0}},
		{"even", []float64{4, 1, 3, 2}, [4]float64{2.5, 1, 4, 1}},
		{"an outlier", []float64{10, 11, 12, 11, 1}, [4]float64{11, 1, 12, 1}},
	} {
		s := NewSpread(c.values)
		if got := [4]float64{s.Median, s.Min, s.Max, s.MAD}; got != c.want || len(s.Values) != len(c.values) {
			t.Errorf("%s: found %v, wanted %v", c.name, got, c.want)
		}
		if len(c.values) > 0 && s.Values[0] != c.values[0] {
			t.Errorf("%s: the order changed", c.name)
		}
	}
}

func TestName(t *testing.T) {
	for want, c := range map[string]Test{"pp512": {Prompt: 512}, "tg128": {Generate: 128}, "tg128@d8192": {Generate: 128, Depth: 8192}, "pp1@d2": {Prompt: 1, Depth: 2}} {
		if got := c.Name(); got != want {
			t.Errorf("%+v: found %q, wanted %q", c, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	tests := []Test{{Prompt: 100}, {Generate: 50, Depth: 60}, {Prompt: 10, Depth: 60}}
	if n := Tokens(tests); n != 60+50+warmTokens+1 {
		t.Errorf("found %d", n)
	}
}

// Nothing is timed before the device has worked for a while and stopped getting faster; work that takes long by itself is not
// repeated for that, and none goes on for ever.
func TestWarming(t *testing.T) {
	for _, c := range []struct {
		name  string
		about float64
		took  func(n int) float64 // seconds of the n-th repetition
		want  [2]int              // repetitions
	}{
		{"a clock that rises at once", 0.1, func(n int) float64 { return 0.05 }, [2]int{10, 11}},
		{"a clock that rises slowly", 0.1, func(n int) float64 { return 0.05 + 0.2*math.Pow(0.8, float64(n)) }, [2]int{10, 18}},
		{"a disk", 40, nil, [2]int{0, 0}},
		{"longer than was thought", 0.1, func(n int) float64 { return 20 }, [2]int{1, 1}},
		{"shorter than was thought, and too short to tell", 0.4, func(n int) float64 { return 1e-3 }, [2]int{500, 502}},
		{"ever faster", 0.3, func(n int) float64 { return 0.3 * math.Pow(0.96, float64(n)) }, [2]int{9, 20}},
	} {
		w, n := warming{most: warmMost, untilNext: c.about}, 0
		for ; !w.enough() && n < 1000; n++ {
			w.took(512, c.took(n))
		}
		if n < c.want[0] || n > c.want[1] {
			t.Errorf("%s: %d repetitions in %.2f s, wanted %v", c.name, n, w.sum, c.want)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		name string
		wall float64
		busy []float64
		want float64 // -1: can't be told
	}{
		{"all hidden", 10, []float64{10, 8, 2}, 1},
		{"one after the other", 20, []float64{10, 8, 2}, 0},
		{"half", 15, []float64{10, 10, 0}, 0.5},
		{"idle beside", 30, []float64{10, 8, 2}, 0},
		{"one lane", 10, []float64{0, 0, 9}, -1},
		{"hardly a second one", 10, []float64{0, 0.5, 9}, -1},
		{"nothing", 10, []float64{0, 0, 0}, -1},
	} {
		got, ok := overlap(c.wall, c.busy...)
		if ok != (c.want >= 0) || ok && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: found %g, %v; wanted %g", c.name, got, ok, c.want)
		}
	}
}

// A row's lanes are what happened between its samples, and no more.
func TestUsage(t *testing.T) {
	at := time.Unix(0, 0)
	a := sample{at: at, cpu: time.Second, stats: engine.Stats{UploadedBytes: 100, DiskBytes: 10, WeightBytes: 50, Link: time.Second, Compute: time.Second}}
	b := sample{at: at.Add(2 * time.Second), cpu: 2 * time.Second, stats: engine.Stats{UploadedBytes: 300, DiskBytes: 20, WeightBytes: 150, Link: 3 * time.Second, Compute: 2 * time.Second, Stalled: time.Second}}
	var u usage
	u.add(a, b)
	u.add(a, b)
	var r Row
	u.fill(&r, Ceilings{Link: 200, VRAM: 400})
	if r.Link != (Lane{Bytes: 400, BytesPerSec: 100, Ceiling: 200, Share: 0.5, Busy: 1}) {
		t.Errorf("link: %+v", r.Link)
	}
	if r.Disk != (Lane{Bytes: 20, BytesPerSec: 5}) {
		t.Errorf("disk: %+v", r.Disk)
	}
	// Kernels read only while they computed: half of the time.
	if r.VRAM != (Lane{Bytes: 200, BytesPerSec: 100, Ceiling: 400, Share: 0.25, Busy: 0.5}) {
		t.Errorf("VRAM: %+v", r.VRAM)
	}
	if r.Bottleneck != predict.LaneLink || r.Overlap == nil || *r.Overlap != 1 || r.CPUOfCore != 0.5 || r.Stalled != 0.5 {
		t.Errorf("%+v", r)
	}
}

// oven is a sensor of the test's choice; it breaks when it is told to.
type oven struct{ broken atomic.Bool }

func (o *oven) Name() string       { return "oven" }
func (o *oven) SlowdownC() float64 { return 0 }
func (o *oven) Close() error       { return nil }
func (o *oven) Read() (pace.Reading, error) {
	if o.broken.Load() {
		return pace.Reading{}, errors.New("broken")
	}
	return pace.Reading{TempC: 70, PowerW: 200}, nil
}

func TestWatch(t *testing.T) {
	o := &oven{}
	w := watch(o)
	w.close() // no further look but the test's
	w.look()
	o.broken.Store(true)
	w.look()
	o.broken.Store(false)
	w.look() // it stays broken
	h := w.take()
	if h.tempC != 70 || h.n != 2 || h.powerW != 400 {
		t.Errorf("%+v", h)
	}
	var r Row
	h.fill(&r, 10, 100)
	if r.PowerW != 200 || r.JoulePer != 20 || r.TempC != 70 {
		t.Errorf("%+v", r)
	}
	if h := w.take(); h != (heat{}) {
		t.Errorf("taken, but still there: %+v", h)
	}
}

func TestTiers(t *testing.T) {
	p := &plan.Plan{}
	for _, u := range []struct {
		name string
		tier plan.Tier
	}{{"layer 0", plan.VRAM}, {"layer 1", plan.Host}, {"layer 2", plan.Disk}, {"lm_head rows 0 to 9", plan.VRAM}, {"lm_head rows 10 to 19", plan.Host}} {
		var unit plan.Unit
		unit.Name, unit.Tier = u.name, u.tier
		p.Units = append(p.Units, unit)
	}
	names := tiersOf(p)
	for name, want := range map[string]plan.Tier{
		"layer 0": plan.VRAM, "layer 2": plan.Disk, "layer 0 to layer 1": plan.Host, "layer 0 to layer 2": plan.Disk, "inputs": NoWeights,
		"lm_head rows 0 to 9": plan.VRAM, "lm_head rows 0 to 9 to lm_head rows 10 to 19": plan.Host, "layer 9 to layer 1": NoWeights,
	} {
		if got := names.of(name); got != want {
			t.Errorf("%s: found %v, wanted %v", name, int(got), int(want))
		}
	}
}

func demo(t *testing.T) string {
	vktest.Instance(t) // skips where there is no device
	return filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
}

// A real run, streamed from RAM: rows as asked for, bytes as planned, a token's timeline.
func TestRun(t *testing.T) {
	var rows []string
	o := Options{
		Path: demo(t), Engine: engine.Options{ContextLength: 64, DeviceBytes: 3500 << 10, HostBytes: 16 << 20},
		Tests:       []Test{{Prompt: 8}, {Generate: 3}, {Prompt: 4, Depth: 5}, {Generate: 2, Depth: 5}},
		Repetitions: 2, Ceilings: Ceilings{Link: 1e9}, Sensor: &oven{}, TraceTokens: 3, Ops: true,
		Done: func(r *Row) { rows = append(rows, r.Test) },
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows, " "); got != "pp8 tg3 pp4@d5 tg2@d5" || len(r.Rows) != 4 || len(r.Notes) > 0 {
		t.Fatalf("rows %s, notes %q", got, r.Notes)
	}
	for _, row := range r.Rows {
		if len(row.Seconds) != 2 || row.PerSec.Median <= 0 || row.PerSec.Min > row.PerSec.Max || row.Asked != 0 || row.TempC != 70 || row.JoulePer <= 0 {
			t.Errorf("%s: %+v", row.Test, row)
		}
		testOps(t, &row)
		if row.VRAM.Bytes == 0 || row.Link.Bytes == 0 || row.Link.Ceiling != 1e9 {
			t.Errorf("%s: link %+v, VRAM %+v", row.Test, row.Link, row.VRAM)
		}
	}
	if p := r.Plan; p.StreamedBytes == 0 || p.HostUnits == 0 || p.ResidentUnits+p.HostUnits+p.DiskUnits != p.Units() {
		t.Errorf("plan %+v", p)
	}
	// Each timed token computes with all weights once: 3 tokens, twice.
	if n, one := r.Rows[1].VRAM.Bytes, r.Rows[3].VRAM.Bytes; 2*n != 3*one {
		t.Errorf("3 tokens read %d bytes of weights, 2 read %d", n, one)
	}
	if r.Load.ColdPrompt != 8 || r.Load.WarmPrompt != 8 || r.Load.ColdTTFTSeconds <= 0 || r.Load.WarmTTFTSeconds != NewSpread(r.Rows[0].Seconds).Median {
		t.Errorf("load %+v", r.Load)
	}
	lanes := map[trace.Lane]bool{}
	tiers := map[plan.Tier]bool{}
	for i, s := range r.Token.Spans {
		lanes[s.Lane] = true
		tiers[r.Token.Tiers[i]] = true
	}
	if !lanes[trace.Link] || !lanes[trace.Compute] || !tiers[plan.VRAM] || !tiers[plan.Host] || r.Token.End <= r.Token.Begin {
		t.Errorf("the token's lanes %v, tiers %v, from %v to %v", lanes, tiers, r.Token.Begin, r.Token.End)
	}
	if r.Memory.VRAMPeak == 0 || r.Memory.VRAMPeak > r.Plan.VRAMBudget || r.Memory.Pinned == 0 {
		t.Errorf("memory %+v", r.Memory)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// What is predicted for a mixture whose experts share slots is for the hit rate that was measured, and says so; a plan alone takes
// all experts to be as likely.
func TestPredictedAtHits(t *testing.T) {
	vktest.Instance(t)
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synthetic.Write(path, synthetic.Options{Arch: "qwen3moe", Type: "q4_0", Shape: synthetic.Shape{BlockCount: 4, ExpertCount: 16}}); err != nil {
		t.Fatal(err)
	}
	// The link is slow, and nothing else takes time: so the speed says how much came over it.
	speeds := predict.Speeds{Link: predict.LinkSpeeds{BytesPerSec: 1e6, Bursts: []predict.Burst{{Bytes: 1, Seconds: 1e-6}, {Bytes: 1e6, Seconds: 1}}}}
	o := Options{
		Path: path, Engine: engine.Options{ContextLength: 64, Tuning: engine.Tuning{Chunk: 16}, DeviceBytes: 6 << 20, HostBytes: 64 << 20},
		Tests: []Test{{Prompt: 32}, {Generate: 8}}, Repetitions: 2, Speeds: &speeds,
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Plan.ExpertSlots == 0 || r.Plan.ExpertSlots >= r.Plan.Experts {
		t.Fatalf("%d rows, %d slots for %d experts", len(r.Rows), r.Plan.ExpertSlots, r.Plan.Experts)
	}
	for _, row := range r.Rows {
		if row.PredictedHit == nil || *row.PredictedHit != row.Experts.HitRate || row.Experts.HitRate <= 0 || row.Predicted <= 0 {
			t.Fatalf("%s: predicted %g tok/s at hit rate %v; experts %+v", row.Test, row.Predicted, row.PredictedHit, row.Experts)
		}
		tokens := float64(max(row.Prompt, row.Generate) * len(row.Seconds))
		came := float64(row.Experts.Uploaded)
		if trips := 90e-6 * float64(4*2); row.Prompt > 0 { // of a prompt's two steps, in four layers each
			came += trips * speeds.Link.BytesPerSec * float64(len(row.Seconds))
		} else {
			came += 90e-6 * 4 * speeds.Link.BytesPerSec * tokens
		}
		if want := tokens / (came / speeds.Link.BytesPerSec); math.Abs(row.Predicted/want-1) > 0.02 {
			t.Errorf("%s: predicted %.2f tok/s, what came says %.2f", row.Test, row.Predicted, want)
		}
	}
}

// testOps: every step of a row chooses one token, and multiplies; all of that takes time.
func testOps(t *testing.T, row *Row) {
	if row.Ops == nil {
		t.Fatalf("%s: no kernels", row.Test)
	}
	calls, products := map[string]int{}, 0
	for i, op := range row.Ops.Of {
		name, _, _ := strings.Cut(op.Name, "_joined")
		calls[name] += op.Calls
		if strings.HasPrefix(op.Name, "mul_mat") {
			products += op.Calls
			if op.Time <= 0 || op.Bytes <= 0 || op.Flops <= 0 {
				t.Errorf("%s: %+v", row.Test, op)
			}
		}
		if i > 0 && op.Time > row.Ops.Of[i-1].Time {
			t.Errorf("%s: %s is not in order", row.Test, op.Name)
		}
	}
	if n := row.Ops.Steps; n == 0 || calls["argmax"] != n || products < 8*n {
		t.Errorf("%s: %d steps, argmax %d times, %d products", row.Test, n, calls["argmax"], products)
	}
}

// With next to no time everything becomes as small as it can be, and the notes say so.
func TestLimit(t *testing.T) {
	speeds := predict.Speeds{Kernels: predict.KernelSpeeds{FlopsPerSec: 1e6, BytesPerSec: 1e6}} // a machine of which nothing can be expected
	r, err := Run(t.Context(), Options{
		Path: demo(t), Engine: engine.Options{ContextLength: 128}, Speeds: &speeds,
		Tests: []Test{{Prompt: 64}, {Generate: 40}, {Generate: 8, Depth: 50}}, Repetitions: 3, Limit: time.Nanosecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 {
		t.Fatalf("%d rows, wanted 2: %+v", len(r.Rows), r.Rows)
	}
	if p := r.Rows[0]; p.Test != "pp1" || p.Asked != 64 || len(p.Seconds) != 1 || p.Predicted == 0 {
		t.Errorf("prompt: %+v", p)
	}
	if g := r.Rows[1]; g.Test != "tg1" || g.Generate != 1 || g.Asked != 40 || len(g.Seconds) != 1 {
		t.Errorf("generation: %+v", g)
	}
	all := strings.Join(r.Notes, "\n")
	for _, want := range []string{"pp64 became pp1", "tg40 became tg1", "depth 50 is left out", "1 of 3 repetitions"} {
		if !strings.Contains(all, want) {
			t.Errorf("no note says %q:\n%s", want, all)
		}
	}
}

// Canceled, a run returns the rows it has.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Run(ctx, Options{
		Path: demo(t), Engine: engine.Options{ContextLength: 64}, Tests: []Test{{Generate: 1}, {Generate: 2}, {Generate: 3}}, Repetitions: 1,
		Done: func(r *Row) {
			if r.Generate == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || len(r.Rows) != 2 {
		t.Errorf("%d rows, %v", len(r.Rows), err)
	}
}

func TestRunFails(t *testing.T) {
	path := demo(t)
	r, err := Run(t.Context(), Options{Path: path, Engine: engine.Options{DeviceBytes: 1000}, Tests: []Test{{Generate: 1}}})
	var small *engine.BudgetError
	if !errors.As(err, &small) || len(r.Rows) != 0 {
		t.Errorf("no VRAM: %v", err)
	}
	// The context is too small for the test: an error, not a hang or a panic.
	if _, err = Run(t.Context(), Options{Path: path, Engine: engine.Options{ContextLength: 8}, Tests: []Test{{Generate: 500}}}); !errors.Is(err, engine.ErrContextFull) {
		t.Errorf("a small context: %v", err)
	}
}
