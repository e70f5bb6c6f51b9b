package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
)

const (
	longestTrip = 500e-6          // seconds; more is other programs
	fillSteps   = 16              // one after another that found all experts they asked for
	fillTime    = 5 * time.Second // of a disk that is too slow for this
	leastAhead  = 1e-7            // seconds; 0 says that nothing is known
)

// errCold is a rehearsal in slots that does not find its experts in them.
var errCold = errors.New("the slots are not filled in time")

// trip times one row in layers whose experts share slots, all of them there. What that takes more than where they stay for good is
// the way of each layer's choice to the host, and of the answer. Where it can't be had, nothing is known of it.
func (r *rehearsal) trip(ctx context.Context, classes []predict.LayerClass) error {
	if r.p.plan.InPlace && !r.onCPU() {
		return nil // whole units stream there
	}
	at := slices.IndexFunc(classes, func(c predict.LayerClass) bool { return len(c.Experts) > 0 })
	if at < 0 {
		return nil
	}
	var err error
	if r.onCPU() && !r.p.hooks.always {
		err = r.asksCPU(ctx, &classes[at])
	} else {
		err = r.asks(ctx, &classes[at])
	}
	if err != nil && !errors.Is(err, errCold) {
		return fmt.Errorf("in slots: %w", err)
	}
	return nil
}

// asksCPU times it beside layers that stay for good, in turn: a CPU's speed changes meanwhile.
func (r *rehearsal) asksCPU(ctx context.Context, c *predict.LayerClass) error {
	if !r.fits([]predict.LayerClass{*c}, true) {
		return nil
	}
	all, err := r.each(ctx, r.result.Steps[:1], view{other: c, slots: true}, view{slots: true}, view{other: c}, view{})
	if err == nil {
		r.result.HostTrip = tripOf((all[0][0] - all[1][0] - all[2][0] + all[3][0]) / float64(r.more))
	}
	return err
}

func tripOf(seconds float64) float64 { return max(0, min(seconds, longestTrip)) }

// Layers in rows: those that go ahead do so many at a time, and the first and the last ones not; the difference tells of those between.
const (
	shortRow = 4
	longRow  = 16
)

// asks times rows of layers, which ask the host each, or go ahead where the device can.
func (r *rehearsal) asks(ctx context.Context, c *predict.LayerClass) error {
	long, short := view{other: c, slots: true, row: longRow}, view{other: c, slots: true, row: shortRow}
	if _, _, _, err := r.planFor(long); err != nil {
		return nil // there is no room
	}
	askLong, aheadLong, err := r.inSlots(ctx, long)
	if err != nil {
		return err
	}
	askShort, aheadShort, err := r.inSlots(ctx, short)
	if err != nil {
		return err
	}
	layer := r.result.Layers[c.Class][0]
	r.result.HostTrip = tripOf((askLong-askShort)/(longRow-shortRow) - layer)
	if aheadLong > 0 && aheadShort > 0 {
		r.result.ConditionalTrip = max(leastAhead, min(r.result.HostTrip, (aheadLong-aheadShort)/(longRow-shortRow)-layer))
	}
	return nil
}

// inSlots times a step of a view whose layers ask the host, and one whose layers go ahead; 0: the device can't.
func (r *rehearsal) inSlots(ctx context.Context, v view) (asks, ahead float64, err error) {
	o := &opened{}
	defer func() { err = errors.Join(err, r.close(o)) }()
	if err = r.open(ctx, v, o); err != nil {
		return 0, 0, err
	}
	e := o.runner.stepper
	mode := func(below float64) stepper {
		return func(ctx context.Context, s predict.StepShape) (time.Duration, error) {
			e.SetConditionalBelow(below)
			return o.dummy.step(ctx, s)
		}
	}
	once := []stepper{mode(0)}
	if e.CanRunConditionally() {
		once = append(once, mode(plan.ConditionalBelow))
	}
	seconds, _, err := r.stopwatch(once).time(ctx, o.runner.p.plan, r.result.Steps[:1])
	if err != nil || len(seconds) < 2 {
		return firstOf(seconds), 0, err
	}
	return firstOf(seconds), seconds[1][0], nil
}

func firstOf(seconds [][]float64) float64 {
	if len(seconds) == 0 || len(seconds[0]) == 0 {
		return 0
	}
	return seconds[0][0]
}

// slotsOf plans layers in so little VRAM that experts share slots, of which there are enough for one token; all else stays.
func slotsOf(h *arch.Hyper, m *pack.Model, b plan.Budget, layers int) (*plan.Plan, error) {
	most := b.DeviceBytes
	p, err := leastVRAM(h, m, b)
	if err != nil {
		return nil, err
	}
	if p.Experts == nil || len(p.Experts.Classes) != 1 {
		return nil, errors.New("the experts share no slots")
	}
	b.DeviceBytes = p.DeviceBytes + p.Experts.Classes[0].BlockBytes((layers+1)*h.Experts.Used)
	for i := range p.Units {
		if p.Units[i].Tier != plan.Cached {
			b.DeviceBytes += p.Units[i].Bytes
		}
	}
	if b.DeviceBytes > most {
		return nil, fmt.Errorf("%d layers take %d bytes of VRAM, found %d", layers, b.DeviceBytes, most)
	}
	if p, err = plan.Make(h, m, b); err == nil && slices.ContainsFunc(p.Units, func(u plan.Unit) bool { return u.Tier == plan.Host || u.Tier == plan.Disk }) {
		err = fmt.Errorf("not all of %d layers stay in VRAM", layers)
	}
	return p, err
}

// fillSlots runs steps until they find all their experts.
func (r *runner) fillSlots(ctx context.Context, d *dummy) error {
	x, begin := r.weights.Experts(), time.Now()
	for hits := 0; hits < fillSteps; hits++ {
		before := x.Stats()
		if _, err := d.step(ctx, predict.StepShape{Rows: 1, Context: 1}); err != nil {
			return err
		}
		if now := x.Stats().Less(before); now.Hits < now.Asked() {
			hits = -1
		}
		if time.Since(begin) > fillTime {
			return errCold
		}
	}
	return nil
}
