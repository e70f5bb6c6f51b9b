package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// shrinks are those so far; any goroutine may look.
type shrinks struct {
	sync.Mutex
	list []Shrink
}

func (s *shrinks) add(one Shrink) {
	s.Lock()
	defer s.Unlock()
	s.list = append(s.list, one)
}

func (s *shrinks) all() []Shrink {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.list)
}

// adapter watches for programs that take VRAM. The zero one watches nothing.
type adapter struct {
	budget *adapt.Budget // where the driver says what is free
	drift  *adapt.Drift  // where it doesn't
	free   func() int64
	always bool // ask before every step
	start  time.Time
	least  bool // all that can be given was, and that was said
}

// newAdapter finds the signs that this device gives.
func (m *Model) newAdapter() adapter {
	phys := m.dev.Physical
	a := adapter{start: time.Now(), free: m.o.headroom, always: m.o.headroom != nil}
	switch {
	case a.free != nil:
		a.budget = adapt.NewBudget(m.plan.DeviceBytes)
	case phys.Type == vk.CPU: // its memory is the system's, and its times say nothing
	case phys.Features.MemoryBudget:
		a.free, a.budget = phys.Headroom, adapt.NewBudget(m.plan.DeviceBytes)
	case m.dev.Compute.TimestampBits > 0:
		a.drift = adapt.NewDrift()
	}
	return a
}

// ran is what steps tell of the time that resident weights take.
func (a *adapter) ran() func(rows int, cost float64, busy time.Duration) {
	if a.drift == nil {
		return nil
	}
	return a.drift.Ran
}

// adapt looks, between two steps, whether VRAM must be given back, and does so. What could not be done it tries again at the next step.
func (m *Model) adapt(ctx context.Context) error {
	a := &m.adapter
	if m.pending != nil {
		return m.replan(context.WithoutCancel(ctx), m.pending)
	}
	if a.least {
		return nil
	}
	var give int64
	switch {
	case a.budget != nil && (a.always || a.budget.Due(time.Since(a.start))):
		give = a.budget.Give(a.free())
	case a.drift != nil:
		if a.drift.Step(m.slowedClock()) > 0 {
			give = adapt.Share(m.now.Load().DeviceBytes)
		}
	}
	if give <= 0 {
		return nil
	}
	return m.give(context.WithoutCancel(ctx), give)
}

// slowedClock is how much slower than cool the pacer's sensor says the device is, where
// it says that heat slows it; by how much it doesn't.
func (m *Model) slowedClock() float64 {
	const byHeat = 3
	if m.pacer != nil && m.pacer.Report().Reading.Slowed {
		return byHeat
	}
	return 1
}

// give takes bytes from the weights, or all that can be taken.
func (m *Model) give(ctx context.Context, bytes int64) error {
	before := m.now.Load()
	want := before.DeviceBytes - bytes
	for { // once, unless somebody else is faster

		p, err := before.Shrink(want)
		var small *plan.BudgetError
		if errors.As(err, &small) {
			m.adapter.least = true
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
		if m.adapter.least {
			m.o.Logger.Warn("another program takes VRAM, and no more can be given back", "vram", mibi(p.DeviceBytes), "wanted", mibi(max(0, want)))
		}
		if p == before {
			return nil
		}
		err = m.replan(ctx, p)
		if !errors.Is(err, vk.ErrOutOfDeviceMemory) || m.adapter.least {
			return err
		}
		before = p
		want = before.DeviceBytes - adapt.Share(before.DeviceBytes)
	}
}

// replan lets p hold from the next step on.
func (m *Model) replan(ctx context.Context, p *plan.Plan) error {
	m.vram.SetBudget(p.DeviceBudget)
	m.pending = p
	if err := m.weights.Replan(ctx, p); err != nil {
		return fmt.Errorf("give VRAM back: %w", err)
	}
	s := Shrink{BeforeBytes: m.now.Load().DeviceBytes, AfterBytes: p.DeviceBytes, StreamedBytes: p.StreamedBytes}
	m.stepper.Replan(p)
	m.pending = nil
	m.now.Store(p)
	m.shrinks.add(s)
	m.o.Logger.Info("another program takes VRAM: fewer weights stay resident", "before", mibi(s.BeforeBytes), "after", mibi(s.AfterBytes), "streamed", mibi(s.StreamedBytes))
	return nil
}
