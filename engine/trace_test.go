package engine_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leat/decompose/pack"
	"leat/engine"
	"leat/engine/token"
	"leat/internal/plan"
	"leat/internal/trace"
	"leat/tools/await"
	"leat/tools/testdata"
	"leat/vk/mem"
)

// traced is a model that has run some steps, and what was recorded of them.
type traced struct {
	atOnce bool // it began to load
	plan   plan.Plan
	first  engine.Stats // after the prompt
	stats  engine.Stats // after the last one
	wall   time.Duration
	width  time.Duration // of the device's clock
	spans  []trace.Span  // including what was still under way then
}

const (
	tracedPrompt = 12
	tracedChunk  = 8
	promptSteps  = 2
	tracedSteps  = promptSteps + 4
)

// record loads a model, runs a prompt and some tokens, and closes it; with atOnce it does
// not wait for what is to be kept before the first step.
func record(t *testing.T, path string, o engine.Setup, atOnce bool) (r traced) {
	t.Helper()
	spans := trace.New(1 << 16)
	o.Tuning.Trace = engine.TraceOf(spans, nil)
	spans.Start()
	begun := time.Now()
	m := load(t, path, o)
	if r.atOnce = atOnce; !atOnce {
		if err := m.Loaded(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]token.ID, tracedPrompt)
	for i := range ids {
		ids[i] = token.ID(40 + i)
	}
	for i := range 1 + tracedSteps - promptSteps {
		if _, err := s.Forward(context.Background(), ids); err != nil {
			t.Fatal(err)
		}
		if ids = ids[:1]; i == 0 {
			r.first = m.Stats()
		}
	}
	r.stats, r.plan = m.Stats(), engine.DetailsOf(m).Plan
	s.Close()
	r.width = m.ClockWidth()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	spans.Stop()
	r.wall, r.spans = time.Since(begun), spans.Spans()
	if n := spans.Dropped(); n > 0 {
		t.Fatalf("%d spans dropped", n)
	}
	return r
}

func TestTrace(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	base := setup(engine.Options{ContextLength: 128, Tuning: engine.Tuning{Chunk: tracedChunk, Discrete: true}})
	least := leastBudget(t, path, base)
	for _, c := range []struct {
		name       string
		vram, host int64
		lanes      int
		split      bool // by rows, as far as can be
		atOnce     bool
		inPlace    mem.Shared
	}{
		{name: "resident", lanes: 1},
		{name: "from host memory", vram: least, host: 1 << 30, lanes: 1},
		{name: "from host memory, while that fills", vram: least, host: 1 << 30, lanes: 1, atOnce: true},
		{name: "from disk", vram: least, host: 1, lanes: 1},
		{name: "two lanes", vram: least, host: 1, lanes: 2},
		{name: "split by rows", vram: least, host: 1 << 30, lanes: 1, split: true},
		{name: "resident, in place", host: 1, lanes: 1, inPlace: mem.Mapped},
		{name: "from disk, in place", vram: least, lanes: 1, inPlace: mem.Imported},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := base
			o.DeviceBytes, o.HostBytes = c.vram, c.host
			if c.split {
				o.Tuning.MaxSubmit = time.Nanosecond
			}
			if o = engine.WithShared(engine.WithLanes(o, c.lanes), c.inPlace); c.inPlace != mem.NotShared && c.vram > 0 {
				o.DeviceBytes = leastBudget(t, path, o)
			}
			r := record(t, path, o, c.atOnce)
			if r.plan.InPlace != (c.inPlace != mem.NotShared) {
				t.Fatalf("in place: %t", r.plan.InPlace)
			}
			r.checkBytes(t)
			r.checkTimes(t)
			r.checkTracks(t)
			r.checkOrder(t)
			r.checkFile(t)
			if r.plan.StreamedBytes == 0 && r.stalls() > 0 {
				t.Errorf("all is resident, and the device waited for %v", r.stalls())
			}
			t.Logf("%d spans, stalled for %v of %v", len(r.spans), r.stalls(), r.wall)
			if r.plan.StreamedBytes > 0 && !c.atOnce {
				// A ring of two units is no help where units differ, though which comes first is the machine's affair.
				await.Until(t, "a stream that holds up the device", func() bool {
					if r.stats.Stalled > r.first.Stalled {
						return true
					}
					r = record(t, path, o, false)
					return false
				})
			}
		})
	}
}

// Where the device's clock can't be read, or has no timestamps, less is known of when, but
// as much of what.
func TestTraceWithoutClock(t *testing.T) {
	path := filepath.Join(testdata.Demo(t), "leat-demo-q4_k_m.gguf")
	o := setup(engine.Options{ContextLength: 128, HostBytes: 1, Tuning: engine.Tuning{Chunk: tracedChunk, Discrete: true}})
	o.DeviceBytes = leastBudget(t, path, o)
	for name, noStamps := range map[string]bool{"never asked": false, "no timestamps": true} {
		t.Run(name, func(t *testing.T) {
			r := record(t, path, engine.WithoutClock(o, noStamps), false)
			r.checkBytes(t)
			r.checkTracks(t)
			r.checkFile(t)
			steps := 0
			for _, s := range r.spans {
				if s.Lane == trace.Compute {
					steps++
				}
			}
			if noStamps != (steps == tracedSteps) {
				t.Errorf("%d spans of the device in %d steps", steps, tracedSteps)
			}
			if s := r.stats; s.Compute <= 0 || s.Link <= 0 || s.Disk <= 0 || s.Compute > r.wall || s.Link > r.wall || s.Disk > r.wall || s.Stalled > r.wall {
				t.Errorf("in %v: %+v", r.wall, s)
			}
		})
	}
}

// checkBytes: the spans of each lane add up to the counters and to the plan.
func (r *traced) checkBytes(t *testing.T) {
	t.Helper()
	type key struct {
		lane trace.Lane
		step int
	}
	sums := map[key]int64{}
	total := map[trace.Lane]int64{}
	for _, s := range r.spans {
		sums[key{s.Lane, s.Step}] += s.Bytes
		total[s.Lane] += s.Bytes
	}
	var all int64
	moved := map[plan.Tier]int64{} // without what lies between tensors
	for i := range r.plan.Units {
		all += r.plan.Units[i].Bytes
		moved[r.plan.Units[i].Tier] += moves(&r.plan.Units[i])
	}
	streamed := moved[plan.Host] + moved[plan.Disk]
	gap := int64(256)
	if r.plan.InPlace {
		gap = 2 * 4096
	}
	if padding := r.plan.StreamedBytes - streamed; padding < 0 || padding > gap*int64(len(r.plan.Units))*8 {
		t.Errorf("the plan streams %d bytes, of which %d are of no tensor", r.plan.StreamedBytes, padding)
	}
	want := map[key]int64{{trace.Link, 0}: moved[plan.VRAM], {trace.Disk, 0}: moved[plan.VRAM] + moved[plan.Host]}
	for step := 1; step <= tracedSteps; step++ {
		want[key{trace.Link, step}] = streamed
		want[key{trace.Disk, step}] = moved[plan.Disk]
		want[key{trace.Compute, step}] = all
	}
	// The first asks for no logits, as the prompt goes on.
	want[key{trace.Link, 1}] -= r.head(plan.Host) + r.head(plan.Disk)
	want[key{trace.Disk, 1}] -= r.head(plan.Disk)
	want[key{trace.Compute, 1}] -= r.outputBytes()
	if r.atOnce { // what was not yet read of the host tier is read in the first, or, of the head, in the second
		for step := 1; step <= promptSteps; step++ {
			k := key{trace.Disk, step}
			if more := sums[k] - want[k]; more < 0 {
				t.Errorf("step %d: %d bytes were read from disk, wanted at least %d", step, sums[k], want[k])
			}
			sums[key{trace.Disk, 0}] += sums[k] - want[k]
			delete(want, k)
		}
	}
	for k, n := range want {
		if k.lane == trace.Link && r.plan.InPlace {
			n = 0
		}
		if sums[k] != n {
			t.Errorf("%s, step %d: %d bytes in spans, want %d", k.lane, k.step, sums[k], n)
		}
	}
	s := r.stats
	if s.WeightBytes != total[trace.Compute] {
		t.Errorf("%d bytes of weights were read, %d in spans", s.WeightBytes, total[trace.Compute])
	}
	// The next step's bytes were on their way when the counters were read.
	for lane, counted := range map[trace.Lane]int64{trace.Link: s.UploadedBytes, trace.Disk: s.DiskBytes} {
		known := total[lane] - sums[key{lane, tracedSteps + 1}]
		if more := counted - known; more < 0 || more > r.plan.StreamedBytes {
			t.Errorf("%s: %d bytes counted, %d in spans of the steps, and at most %d of the next", lane, counted, known, r.plan.StreamedBytes)
		}
	}
	if s.Steps != tracedSteps || s.Rows != tracedPrompt+tracedSteps-promptSteps {
		t.Errorf("%d steps of %d rows in all", s.Steps, s.Rows)
	}
}

// moves is what is read and uploaded of a unit.
func moves(u *plan.Unit) (sum int64) {
	plan.HostExtents(&u.Unit, func(e pack.Extent, _ int64) { sum += e.Bytes })
	return sum
}

// head is what the head moves of a tier, outputBytes all that only logits need.
func (r *traced) head(tier plan.Tier) (sum int64) {
	for i := range r.plan.Units {
		if u := &r.plan.Units[i]; u.Kind == pack.Head && u.Tier == tier {
			sum += moves(u)
		}
	}
	return sum
}

func (r *traced) outputBytes() (sum int64) {
	for i := range r.plan.Units {
		if u := &r.plan.Units[i]; u.Kind == pack.Head || u.Kind == pack.Norm {
			sum += u.Bytes
		}
	}
	return sum
}

// checkTimes: the counters of time are what the spans make up.
func (r *traced) checkTimes(t *testing.T) {
	t.Helper()
	s := r.stats
	// A span's two ends are rounded, and the mapping may move by what reading both clocks
	// takes, now and then: see vk.Clock.
	slack := 200*time.Microsecond + time.Duration(2*len(r.spans)) + r.width*(1+r.wall/(100*time.Millisecond))
	busy := func(lane trace.Lane) time.Duration { return trace.Busy(r.spans, lane, 0, r.wall) }
	if d := s.Compute - busy(trace.Compute); d.Abs() > slack || s.Compute <= 0 {
		t.Errorf("computed for %v, spans say %v", s.Compute, busy(trace.Compute))
	}
	submissions := int64(0)
	for _, sp := range r.spans {
		if sp.Lane == trace.Compute {
			submissions++
		}
	}
	if s.Submissions != submissions {
		t.Errorf("%d submissions, %d in spans", s.Submissions, submissions)
	}
	if d := s.Record - busy(trace.Host); d.Abs() > slack || s.Record <= 0 {
		t.Errorf("recorded for %v, spans say %v", s.Record, busy(trace.Host))
	}
	var steps []trace.Span // what Stats has seen the end of
	for _, sp := range r.spans {
		if sp.Step <= tracedSteps {
			steps = append(steps, sp)
		}
	}
	for lane, counted := range map[trace.Lane]time.Duration{trace.Link: s.Link, trace.Disk: s.Disk} {
		least := trace.Busy(steps, lane, 0, r.wall)
		if counted < least-slack || counted <= 0 && (lane == trace.Disk || !r.plan.InPlace) || counted > r.wall {
			t.Errorf("%s: busy for %v, spans of the steps say %v, all of it took %v", lane, counted, least, r.wall)
		}
	}
	stalled := s.Stalled - r.first.Stalled
	if d := stalled - r.stalls(); d.Abs() > slack && !r.plan.InPlace {
		t.Errorf("stalled for %v, spans say %v", stalled, r.stalls())
	}
	if most := r.idle(); r.plan.InPlace && stalled > most+slack { // it was the host that waited
		t.Errorf("stalled for %v, spans say %v, idle for %v", stalled, r.stalls(), most)
	}
	if s.VRAMBytes != r.plan.DeviceBytes || s.VRAMPeak < s.VRAMBytes || s.HostBytes <= 0 {
		t.Errorf("VRAM %d, at most %d, planned %d; host %d", s.VRAMBytes, s.VRAMPeak, r.plan.DeviceBytes, s.HostBytes)
	}
}

// stalls is how long, after the prompt, the device had nothing to do before a
// streamed unit, and its bytes were not there.
func (r *traced) stalls() (sum time.Duration) {
	came, before := r.arrivals(), trace.Span{}
	for _, s := range r.spans {
		if s.Lane != trace.Compute {
			continue
		}
		if at, ok := came[use{s.Name, s.Step}]; ok && s.Step > promptSteps && s.Step == before.Step {
			sum += max(0, min(at, s.Begin)-before.End)
		}
		before = s
	}
	return sum
}

// idle is how long, after the prompt, the device had nothing to do within steps.
func (r *traced) idle() (sum time.Duration) {
	before := trace.Span{}
	for _, s := range r.spans {
		if s.Lane != trace.Compute {
			continue
		}
		if s.Step > promptSteps && s.Step == before.Step {
			sum += s.Begin - before.End
		}
		before = s
	}
	return sum
}

// use is a unit in a step; 0 for a resident one.
type use struct {
	unit string
	step int
}

// arrivals is when the last byte of each had come.
func (r *traced) arrivals() map[use]time.Duration {
	came := map[use]time.Duration{}
	lane := trace.Link
	if r.plan.InPlace {
		lane = trace.Disk
	}
	for _, s := range r.spans {
		if k := (use{s.Name, s.Step}); s.Lane == lane {
			came[k] = max(came[k], s.End)
		}
	}
	return came
}

// checkTracks: a track does one thing at a time.
func (r *traced) checkTracks(t *testing.T) {
	t.Helper()
	type track struct {
		lane trace.Lane
		n    int
	}
	last := map[track]trace.Span{}
	for _, s := range r.spans {
		k := track{s.Lane, s.Track}
		if p := last[k]; s.Begin < p.End || s.End < s.Begin {
			t.Errorf("%+v begins before the end of %+v", s, p)
		}
		last[k] = s
	}
}

// checkOrder: weights are read after they came.
func (r *traced) checkOrder(t *testing.T) {
	t.Helper()
	came := r.arrivals()
	tier := map[string]plan.Tier{}
	for i := range r.plan.Units {
		tier[r.plan.Units[i].Name] = r.plan.Units[i].Tier
	}
	// The mapping onto the host's clock may have been corrected between the two: by at most
	// what reading both clocks takes, of the tightest of several readings.
	slack := 100*time.Microsecond + 2*r.width
	read := 0
	for _, s := range r.spans {
		if s.Lane != trace.Compute {
			continue
		}
		if strings.Contains(s.Name, " to ") || s.Name == "inputs" || s.Name == "outputs" {
			continue
		}
		where, known := tier[s.Name]
		if !known {
			t.Fatalf("there is no unit %q", s.Name)
		}
		k := use{s.Name, s.Step}
		if where == plan.VRAM {
			k.step = 0
		}
		if at, ok := came[k]; !ok || s.Begin < at-slack {
			t.Errorf("%s in step %d is read from %v on, but came %v (%t)", s.Name, s.Step, s.Begin, at, ok)
		}
		read++
	}
	if streams := r.plan.StreamedBytes > 0; streams != (read > 0) && streams {
		t.Error("no submission names the streamed unit that it reads")
	}
}

// checkFile: what Perfetto gets names every lane.
func (r *traced) checkFile(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	if err := trace.WritePerfetto(&b, "test", r.spans); err != nil {
		t.Fatal(err)
	}
	for _, lane := range []trace.Lane{trace.Disk, trace.Link, trace.Compute, trace.Host} {
		if has := strings.Contains(b.String(), `{"name":"`+string(lane)+` 0"}`); has != (lane != trace.Link || !r.plan.InPlace) {
			t.Errorf("a thread of lane %s: %t", lane, has)
		}
	}
}
