package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/engine"
	"leat/internal/pace"
	"leat/internal/predict"
	"leat/internal/trace"
)

// Options say what [Run] measures. Path and Tests are needed.
type Options struct {
	Path        string // of a GGUF file or a pack
	Engine      engine.Options
	Tests       []Test        // in this order; those of one depth together save time
	Repetitions int           // 0: 3
	Limit       time.Duration // about as long as a row may take, longer only for its least; 0: none
	Ceilings    Ceilings
	Speeds      *predict.Speeds   // to predict with; nil: nothing is predicted
	Sensor      pace.Sensor       // nil: no heat
	TraceTokens int               // so many tokens go into Result.Spans, the middle one into Result.Token
	Uses        bool              // Result.Uses counts which experts all tokens used, those that aren't timed as well; that takes some time, too
	Ops         bool              // each row says what the time of its steps went to, kernel by kernel; that takes some
	Doing       func(what string) // is told what goes on; nil: nobody is
	Done        func(*Row)        // is told of each row; nil: nobody is
}

const (
	defaultRepetitions = 3
	warmTokens         = 3  // untimed, after a load: the host tier is read by then, pipelines are built
	probePrompt        = 16 // tokens, to know how long a longer prompt takes
	fillLimits         = 4  // a context may take so many limits to fill
)

// Tokens is how large a context the tests need.
func Tokens(tests []Test) (n int) {
	for _, t := range tests {
		n = max(n, t.Depth+t.Prompt+1, t.Depth+t.Generate+warmTokens+1)
	}
	return n
}

// run is one Run.
type run struct {
	o      Options
	m      *engine.Model
	s      *engine.Session
	expect forecast
	watch  *watcher
	loaded sample // when all was where it stays, and the first token there
	trace  *trace.Recorder
	ops    *trace.Ops // nil: the device's time is not summed up by kernel
	result *Result

	noted map[string]bool
	uses  *uses // nil: nobody asked
}

// Run loads a model, runs the tests and frees it. When ctx is canceled, or a test fails,
// what was measured until then comes back beside the error.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	if o.Repetitions == 0 {
		o.Repetitions = defaultRepetitions
	}
	b := &run{o: o, expect: forecast{speeds: o.Speeds, limit: o.Limit, factor: 1}, result: &Result{Rows: []Row{}}, noted: map[string]bool{}}
	if o.Ops {
		b.ops = &trace.Ops{}
	}
	if o.TraceTokens > 0 {
		b.trace = trace.New(1 << 20)
	}
	b.o.Engine.Tuning.Trace = engine.TraceOf(b.trace, b.ops)
	if o.Uses {
		b.uses = countUses()
		b.o.Engine.Tuning.Routing = b.uses
	}
	b.watch = watch(o.Sensor)
	defer b.watch.close()
	cached := cachedBytes()
	if err := b.load(ctx); err != nil {
		return b.result, errors.Join(err, b.close())
	}
	err = b.tests(ctx)
	if err == nil && b.trace != nil {
		err = b.record(ctx)
	}
	st := b.m.Stats()
	b.result.Memory = Memory{VRAMPeak: st.VRAMPeak, Pinned: st.HostBytes, RSS: b.watch.peakRSS(), CacheGrowth: cachedBytes() - cached}
	b.result.Plan.DirectReads = st.DirectReads
	return b.result, errors.Join(err, b.close())
}

func (b *run) close() (err error) {
	if b.s != nil {
		b.s.Close()
	}
	if b.m != nil {
		err = b.m.Close() // which writes the rest of the routing
	}
	if b.uses != nil {
		var usesErr error
		b.result.Uses, usesErr = b.uses.close()
		err = errors.Join(err, usesErr)
	}
	return err
}

func (b *run) doing(format string, args ...any) {
	if b.o.Doing != nil {
		b.o.Doing(fmt.Sprintf(format, args...))
	}
}

// note says once what is not as it was asked for.
func (b *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !b.noted[text] {
		b.noted[text] = true
		b.result.Notes = append(b.result.Notes, text)
	}
}

// load measures the way from nothing to the first token, with the first test's prompt.
func (b *run) load(ctx context.Context) (err error) {
	begin := time.Now()
	if b.m, err = engine.Load(ctx, b.o.Path, b.o.Engine); err != nil {
		return err
	}
	of := engine.DetailsOf(b.m)
	b.expect.hyper, b.expect.plan = of.Hyper, of.Plan
	b.result.Plan = placementOf(&b.expect.plan)
	loaded := make(chan error, 1)
	go func() {
		err := b.m.Loaded(ctx)
		b.result.Load.Seconds = time.Since(begin).Seconds()
		loaded <- err
	}()
	n := b.coldPrompt()
	b.doing("first prompt, %d tokens, while the model loads", n)
	if b.s, err = b.m.NewSession(); err == nil {
		err = b.first(ctx, 0, n)
	}
	took := time.Since(begin).Seconds()
	if err = errors.Join(err, <-loaded); err != nil {
		return err
	}
	b.result.Load.ColdTTFTSeconds, b.result.Load.ColdPrompt = took, n
	b.loaded = take(b.m)
	return b.probe(ctx)
}

// coldPrompt is the first prompt among the tests, as far as there is time for it.
func (b *run) coldPrompt() int {
	for _, t := range b.o.Tests {
		if t.Prompt == 0 || t.Depth > 0 {
			continue
		}
		if b.expect.speeds == nil && b.o.Limit > 0 {
			return min(t.Prompt, probePrompt)
		}
		return b.expect.fitPrompt(t.Prompt)
	}
	return 1
}

// probe times a short prompt, to know how long a longer one takes: what else runs on the
// machine is in no prediction.
func (b *run) probe(ctx context.Context) error {
	n := min(probePrompt, b.s.Cap()-1)
	predicted := 0.0
	if b.expect.speeds != nil {
		if predicted = b.expect.promptSeconds(n); predicted > b.o.Limit.Seconds()/8 {
			return nil // a probe costs as much as a chunk where the weights stream
		}
	}
	begin := time.Now()
	if err := b.first(ctx, 0, n); err != nil {
		return err
	}
	b.expect.probed = time.Since(begin).Seconds()
	if predicted > 0 {
		b.expect.factor = b.expect.probed / predicted
	}
	return nil
}

// tests runs them, those whose depth can be reached.
func (b *run) tests(ctx context.Context) error {
	for i, t := range b.o.Tests {
		b.doing("%s, %d of %d", t.Name(), i+1, len(b.o.Tests))
		reached, err := b.fill(ctx, t.Depth)
		if err != nil {
			return err
		}
		if !reached {
			continue
		}
		b.watch.take()
		measure := b.generation
		if t.Prompt > 0 {
			measure = b.prompt
		}
		row, err := measure(ctx, t)
		if row != nil && len(row.Seconds) > 0 {
			b.result.Rows = append(b.result.Rows, *row)
			if b.o.Done != nil {
				b.o.Done(row)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill brings the session to a depth, unless that takes too long.
func (b *run) fill(ctx context.Context, depth int) (reached bool, err error) {
	if b.s.Len() > depth {
		return true, b.s.Truncate(depth)
	}
	missing := depth - b.s.Len()
	if missing == 0 {
		return true, nil
	}
	need := b.expect.promptSeconds(depth) * float64(missing) / float64(depth)
	if limit := fillLimits * b.o.Limit.Seconds(); limit > 0 && need > limit {
		b.note("depth %d is left out: filling the context would take about %s", depth, about(need))
		return false, nil
	}
	b.doing("filling the context with %d tokens", depth)
	_, err = b.s.Forward(ctx, b.ids(b.s.Len(), missing))
	return err == nil, err
}

// about is a time to be read, not compared.
func about(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d > time.Minute:
		return d.Round(time.Second).String()
	case d > time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
