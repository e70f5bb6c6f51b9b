package exec

import (
	"fmt"
	"time"

	"leat/internal/plan"
	"leat/shaders"
	"leat/vk"
)

// replay is the last step recorded, where it can be submitted again as it is: decoding one token with all weights in
// VRAM is the same work for the next token, but for the inputs, which are in memory.
type replay struct {
	key   replayKey // of the step; its zero: there is none
	timed []submission
	cbs   []*vk.CommandBuffer
	took  time.Duration // by the last time it was submitted again, as the host saw it; 0: it was not yet
}

// replayKey is all that the recording of such a step depends on.
type replayKey struct {
	plan            *plan.Plan
	greedy, logits  bool
	slots           bool // experts share them: it is kept in parts
	maxPages, parts int  // of the page table; of attention
}

// replayKey is the zero where the step can't be like another.
func (r *run) replayKey() replayKey {
	e := r.e
	if len(r.rows) != 1 || r.rows[0].Position == 0 || e.Trace != nil || e.timer != nil || e.Routed != nil || e.VRAMRate != nil ||
		e.Pacer != nil && e.Pacer.Active() {
		return replayKey{}
	}
	slots := e.Weights.Experts() != nil
	for i := range e.Plan.Units {
		if u := &e.Plan.Units[i]; !u.Resident() && !isCached(u) {
			return replayKey{}
		}
	}
	r.sequences()
	return replayKey{e.Plan, r.greedy, len(r.asked) > 0, slots, r.maxPages, (r.rows[0].Position + shaders.PartPositions) / shaders.PartPositions}
}

// forwardOrAgain runs the step: by submitting the last one again where the two are alike, else by recording it.
func (r *run) forwardOrAgain() error {
	e, key := r.e, r.replayKey()
	if key.slots {
		return r.byParts(key)
	}
	if key != (replayKey{}) && key == e.replay.key {
		return r.resubmit()
	}
	if err := r.forward(); err != nil {
		return err
	}
	var work float64
	for i := range r.timed {
		if s := &r.timed[i]; s.awaits != nothing {
			return nil // weights had yet to come
		}
		work += base(r.timed[i].bytes, r.timed[i].flops)
	}
	if key == (replayKey{}) || work*e.cost.scale > aheadTime.Seconds() { // it could not be stopped
		return nil
	}
	e.replay.key = key
	e.replay.timed = append(e.replay.timed[:0], r.timed...)
	e.replay.cbs = append(e.replay.cbs[:0], e.cbs[:r.used]...)
	e.replay.took = 0
	return nil
}

// resubmit submits the last step's commands with this one's inputs.
func (r *run) resubmit() error {
	e := r.e
	r.resume()
	defer r.pause()
	e.Weights.Begin(len(r.asked) > 0)
	if _, err := r.inputs(); err != nil {
		return err
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	for i := range e.replay.timed {
		s := e.replay.timed[i]
		s.submitted, s.rested, s.waited = now, 0, 0
		r.timed = append(r.timed, s)
		e.count.weights.Add(s.weights)
	}
	r.signal[0] = vk.Point{Timeline: e.Compute, Value: e.value + 1}
	if err := e.Device.Compute.Submit(vk.Submission{Commands: e.replay.cbs, Signals: r.signal[:]}); err != nil {
		return fmt.Errorf("submit the commands of the step before again: %w", err)
	}
	e.value++
	r.used, r.resubmitted = len(e.replay.cbs), true
	e.count.submissions.Add(1)
	return nil
}
