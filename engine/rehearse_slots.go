package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leat/engine/plan"
)

const (
	longestTrip = 500e-6          // seconds; more is other programs
	fillSteps   = 16              // one after another that found all experts they asked for
	fillTime    = 5 * time.Second // of a disk that is too slow for this
)

// errCold is a rehearsal in slots that does not find its experts in them.
var errCold = errors.New("the slots are not filled in time")

// trip times one row in layers whose experts share slots, all of them there. What that takes more than where they stay for good is
// the way of each layer's choice to the host, and of the answer. Where it can't be had, nothing is known of it.
func (r *rehearsal) trip(ctx context.Context, classes []plan.Layer) error {
	if r.plan.InPlace && !r.onCPU() {
		return nil // whole units stream there
	}
	for i := range classes {
		c := &classes[i]
		if len(c.Experts) == 0 {
			continue
		}
		if !r.fits([]plan.Layer{*c}, true) {
			return nil
		}
		all, err := r.each(ctx, r.result.Steps[:1], view{other: c, slots: true}, view{slots: true}, view{other: c}, view{})
		if errors.Is(err, errCold) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("in slots: %w", err)
		}
		r.result.Trip = max(0, min((all[0][0]-all[1][0]-all[2][0]+all[3][0])/float64(r.more), longestTrip))
		return nil
	}
	return nil
}

// fillSlots runs steps until they find all their experts.
func (m *Model) fillSlots(ctx context.Context, d *dummy) error {
	x, begin := m.weights.Experts(), time.Now()
	for hits := 0; hits < fillSteps; hits++ {
		before := x.Stats()
		if _, err := d.step(ctx, plan.StepShape{Rows: 1, Context: 1}); err != nil {
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
