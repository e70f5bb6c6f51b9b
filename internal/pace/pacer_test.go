package pace

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a sensor for tests.
type fake struct {
	temp   atomic.Int64 // °C; negative: fails
	reads  atomic.Int64
	closed atomic.Int64
	slow   float64
}

func (f *fake) Name() string       { return "fake" }
func (f *fake) SlowdownC() float64 { return f.slow }
func (f *fake) Close() error       { f.closed.Add(1); return nil }
func (f *fake) Read() (Reading, error) {
	f.reads.Add(1)
	if t := f.temp.Load(); t >= 0 {
		return Reading{TempC: float64(t), PowerW: 100}, nil
	}
	return Reading{}, errors.New("sensor lost")
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// step runs ten layers of 2 ms, as exec does.
func step(ctx context.Context, p *Pacer) (rested time.Duration, rests int) {
	const busy = 2 * time.Millisecond
	p.Begin()
	defer p.End()
	var since time.Duration
	for l := range 10 {
		if p.Active() && p.Due(0) {
			if d := p.Rest(ctx); d > 0 {
				since, rested, rests = d, rested+d, rests+1
			}
		}
		time.Sleep(busy)
		p.Ran(Key{Unit: l, Rows: 1}, 1, busy, since)
		since = 0
	}
	return rested, rests
}

func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := context.Background(), &fake{slow: 95}
		s.temp.Store(40)
		p := New(Options{Sensor: s, Layers: 10, Logger: quiet})
		if got := p.Report(); got.TargetC != 90 || got.By != BySensor || got.Reading.TempC != 40 {
			t.Errorf("at first: %+v", got)
		}
		run := func(seconds int) (rested time.Duration) {
			for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
				d, _ := step(ctx, p)
				rested += d
			}
			return rested
		}
		if rested := run(10); rested != 0 {
			t.Errorf("cool: rested %s", rested)
		}
		s.temp.Store(95)
		run(5)
		rested := run(10)
		if r := p.Report(); rested < 5*time.Second || r.RestShare < 0.5 || r.RestPerLayer <= 0 || r.RestPerLayer > MaxRest {
			t.Errorf("hot: rested %s of 10 s, %+v", rested, r)
		}
		stopped, stop := context.WithCancel(ctx)
		stop()
		if rested, _ := step(stopped, p); rested != 0 {
			t.Errorf("canceled: rested %s", rested)
		}
		late, stop := context.WithTimeout(ctx, time.Microsecond)
		p.Ran(Key{}, 0, 50*time.Millisecond, 0)
		if rested := p.Rest(late); rested > time.Millisecond {
			t.Errorf("canceled while resting: rested %s", rested)
		}
		stop()
		s.temp.Store(40)
		run(30)
		if rested := run(10); rested != 0 {
			t.Errorf("cool again: rested %s", rested)
		}
		time.Sleep(time.Minute)
		before := s.reads.Load()
		time.Sleep(time.Minute)
		if n := s.reads.Load() - before; n != 0 {
			t.Errorf("%d readings of an idle device", n)
		}
		run(10)
		if n := s.reads.Load() - before; n < 18 || n > 22 {
			t.Errorf("%d readings in 10 s", n)
		}
		s.temp.Store(-1)
		run(10)
		if r := p.Report(); r.By != ByDrift || r.Reading.TempC != 0 {
			t.Errorf("without its sensor: %+v", r)
		}
		s.temp.Store(50)
		run(2)
		if r := p.Report(); r.By != BySensor {
			t.Errorf("with its sensor again: %+v", r)
		}
		for range 2 {
			if err := p.Close(); err != nil || s.closed.Load() != 1 {
				t.Errorf("close: %v, %d times", err, s.closed.Load())
			}
		}
	})
}

func TestPacerWithoutSensor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Layers: 10, Logger: quiet})
		defer p.Close()
		run := func(seconds int, busy time.Duration) {
			for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
				p.Begin()
				for l := range 10 {
					time.Sleep(busy)
					p.Ran(Key{Unit: l, Rows: 1}, 1, busy, 0)
				}
				p.End()
			}
		}
		run(30, 10*time.Millisecond)
		if p.Active() {
			t.Error("active at a steady speed")
		}
		run(20, 13*time.Millisecond)
		if r := p.Report(); !p.Active() || r.By != ByDrift || r.Drift < 1.2 {
			t.Errorf("not active after a drop of the clock: %+v", r)
		}
	})
}

func TestAutoTarget(t *testing.T) {
	for _, tt := range []struct{ slowdown, want float64 }{{0, 83}, {93, 88}, {105, 100}, {1, 83}} {
		if got := AutoTarget(tt.slowdown); got != tt.want {
			t.Errorf("AutoTarget(%g) = %g, wanted %g", tt.slowdown, got, tt.want)
		}
	}
}
