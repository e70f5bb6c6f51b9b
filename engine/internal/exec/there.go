package exec

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/shaders"
	"leat/vk"
)

// leavesOut tries whether the device leaves out what it is told to, and nothing else: a wrong one would compute garbage unseen.
func (e *Exec) leavesOut() (bool, error) {
	cb, err := e.pool.New()
	if err != nil {
		return false, err
	}
	if err := cb.Begin(); err != nil {
		return false, err
	}
	if err := e.leaveOut(cb); err != nil {
		return false, err
	}
	if err := cb.End(); err != nil {
		return false, err
	}
	done := vk.Point{Timeline: e.Compute, Value: e.value + 1}
	if err := e.Device.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{cb}, Signals: []vk.Point{done}}); err != nil {
		return false, err
	}
	e.value++
	if err := e.Compute.Wait(context.Background(), e.value); err != nil {
		return false, err
	}
	m := e.waves.chosen.Mapped()
	return le.Uint64(m) == 1 && le.Uint64(m[8:]) == 7<<32, nil
}

// leaveOut records a dispatch that is to be left out, and one that is not; what they leave goes where layers' choices do.
func (e *Exec) leaveOut(cb *vk.CommandBuffer) error {
	rec, at := e.run.rec, e.Plan.Scratch.There.Off
	const word, looked, table, ids = 0, 8, 16, 64 // of There, which has 256 bytes at least
	rec.Reset(cb)
	if err := rec.Zero(e.scratch, at, 256); err != nil {
		return err
	}
	for i := range int64(2) { // left out, and not
		first := [looked + 8]byte{word: byte(i), looked: 1}
		if err := rec.Update(e.scratch, at, first[:]); err != nil {
			return err
		}
		rec.Barrier()
		cb.ConditionBarrier()
		cb.BeginConditional(e.scratch, at+word)
		to := e.scratch.Address + uint64(at)
		if err := rec.ExpertsThere(shaders.ExpertsThereArgs{Table: to + table, IDs: to + ids, Go: to + looked, Count: 1, Layer: 7}); err != nil {
			return err
		}
		cb.EndConditional()
		if err := rec.Copy(e.waves.chosen, 8*i, e.scratch, at+looked, 8); err != nil {
			return err
		}
	}
	cb.HostBarrier()
	return nil
}

// goOff is where the scratch has two words: 1 while a step may go ahead, and the layer where it could not.
func (e *Exec) goOff() int64 { return e.Plan.Scratch.There.Off + int64(8*len(e.ahead.table)) }

// there notes that experts of a batch are in VRAM, which the device's queue has waited for.
func (e *Exec) there(layer int, address uint64, id int, u *pack.Unit) error {
	a := &e.ahead
	for op, name := range a.names[layer] {
		t, ok := u.Tensor(name)
		if !ok {
			return fmt.Errorf("tensor %q is not in %s", name, u.Name)
		}
		at, to := e.entry(layer, op, id), address+uint64(t.UnitOff)
		if a.table[at] == to {
			return nil
		}
		a.table[at], a.stale[layer] = to, true
	}
	return nil
}

// gone notes which experts are in VRAM no more.
func (e *Exec) gone() {
	a := &e.ahead
	for _, x := range e.Weights.Experts().Left() {
		for op := range a.names[x.Layer] {
			a.table[e.entry(x.Layer, op, x.ID)] = 0
		}
		a.stale[x.Layer] = true
	}
}

// prelude tells the device what has come and gone, and to go.
func (r *run) prelude() error {
	e := r.e
	if err := r.begin(); err != nil {
		return err
	}
	e.gone()
	for _, nth := range r.undone { // they write their times again
		if r.stamped(nth) {
			r.cb.ResetQueries(e.stamps, 2*nth, 2)
		}
	}
	r.undone = r.undone[:0]
	for l, stale := range e.ahead.stale {
		if !stale || e.ahead.names[l] == nil {
			continue
		}
		e.ahead.stale[l] = false
		if err := r.tellLayer(l, e.ahead.table, e.Plan.Scratch.There.Off, e.partTable(2)); err != nil {
			return err
		}
	}
	if err := r.rec.Update(e.scratch, e.goOff(), goAhead[:]); err != nil {
		return err
	}
	return r.queue()
}
