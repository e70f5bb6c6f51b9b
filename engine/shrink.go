package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"leat/internal/adapt"
	"leat/internal/plan"
	"leat/vk"
)

// Shrink is one time that the model gave VRAM back because another program took some.
type Shrink struct {
	BeforeBytes, AfterBytes int64 // of VRAM that the model takes
	StreamedBytes           int64 // per step, since then
}

// String is one line.
func (s Shrink) String() string {
	return fmt.Sprintf("another program takes VRAM: %s are left of %s, %s are streamed per step from now on",
		mibi(s.AfterBytes), mibi(s.BeforeBytes), mibi(s.StreamedBytes))
}

func mibi(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
}

// shrinker gives VRAM back where other programs take it: fewer weights stay resident. It holds the plan that is in force.
type shrinker struct {
	r       *runner
	now     atomic.Pointer[plan.Plan] // in force: fewer units may be resident than in the model's first plan
	pending *plan.Plan                // could not be put in force, and is tried again

	budget *adapt.Budget // compares what the driver says is free, where it does; nil: it doesn't
	drift  *adapt.Drift  // compares how long steps take, where the driver doesn't say what is free; nil: nothing is compared
	free   func() int64
	start  time.Time
	least  bool // all that can be given back was, and the log says so

	mu   sync.Mutex
	list []Shrink // oldest first
}

// init finds the signs that the device gives.
func (s *shrinker) init(r *runner) {
	s.r, s.start, s.free = r, time.Now(), r.p.hooks.headroom
	s.now.Store(r.p.plan)
	dev := r.p.device.vk
	switch {
	case s.free != nil:
		s.budget = adapt.NewBudget(r.p.plan.DeviceBytes)
	case r.p.device.onCPU(): // its memory is the system's, and its times say nothing
	case dev.Physical.Features.MemoryBudget:
		s.free, s.budget = dev.Physical.Headroom, adapt.NewBudget(r.p.plan.DeviceBytes)
	case dev.Compute.TimestampBits > 0:
		s.drift = adapt.NewDrift()
	}
}

// ran is called with the time that a step's resident weights took; nil: nobody wants to know.
func (s *shrinker) ran() func(rows int, cost float64, busy time.Duration) {
	if s.drift == nil {
		return nil
	}
	return s.drift.Ran
}

// look finds out, between two steps, whether VRAM must be given back, and does so. What could not be done it tries again at the next step.
func (s *shrinker) look(ctx context.Context) error {
	if s.pending != nil {
		return s.replan(context.WithoutCancel(ctx), s.pending)
	}
	if s.least {
		return nil
	}
	var give int64
	switch {
	case s.budget != nil && (s.r.p.hooks.headroom != nil || s.budget.Due(time.Since(s.start))):
		give = s.budget.Give(s.free())
	case s.drift != nil:
		if s.drift.Step(s.slowedClock()) > 0 {
			give = adapt.Share(s.now.Load().DeviceBytes)
		}
	}
	if give <= 0 {
		return nil
	}
	return s.give(context.WithoutCancel(ctx), give)
}

// slowedClock is how much slower than cool the device is, by a guess, where the pacer's sensor says that heat slows it.
func (s *shrinker) slowedClock() float64 {
	const byHeat = 3
	if s.r.pacer != nil && s.r.pacer.Report().Reading.Slowed {
		return byHeat
	}
	return 1
}

// give takes bytes of VRAM from the weights, or all that can be taken.
func (s *shrinker) give(ctx context.Context, bytes int64) error {
	before := s.now.Load()
	want := before.DeviceBytes - bytes
	for { // once, unless another program is faster
		p, err := before.Shrink(want)
		var small *plan.BudgetError
		if errors.As(err, &small) {
			s.least = true
			p = before
			if small.Need < before.DeviceBytes {
				p, err = before.Shrink(small.Need)
			} else {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		if s.least {
			s.r.p.o.Logger.Warn("another program takes VRAM, and no more can be given back", "vram", mibi(p.DeviceBytes), "wanted", mibi(max(0, want)))
		}
		if p == before {
			return nil
		}
		err = s.replan(ctx, p)
		if !errors.Is(err, vk.ErrOutOfDeviceMemory) || s.least {
			return err
		}
		before = p
		want = before.DeviceBytes - adapt.Share(before.DeviceBytes)
	}
}

// replan puts p in force from the next step on.
func (s *shrinker) replan(ctx context.Context, p *plan.Plan) error {
	s.r.vram.SetBudget(p.DeviceBudget)
	s.pending = p
	if err := s.r.weights.Replan(ctx, p); err != nil {
		return fmt.Errorf("give VRAM back: %w", err)
	}
	one := Shrink{BeforeBytes: s.now.Load().DeviceBytes, AfterBytes: p.DeviceBytes, StreamedBytes: p.StreamedBytes}
	s.r.stepper.Replan(p)
	s.pending = nil
	s.now.Store(p)
	s.mu.Lock()
	s.list = append(s.list, one)
	s.mu.Unlock()
	s.r.p.o.Logger.Info("another program takes VRAM: fewer weights stay resident", "before", mibi(one.BeforeBytes), "after", mibi(one.AfterBytes), "streamed", mibi(one.StreamedBytes))
	return nil
}

// shrinks lists the times that VRAM was given back, oldest first; any goroutine may look.
func (s *shrinker) shrinks() []Shrink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
