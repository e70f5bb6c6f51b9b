package exec

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/shaders"
	"leat/vk"
)

// leavesOut tries whether the device leaves out what it is told to, and nothing else, and tells the host of it: a wrong one would
// compute garbage unseen.
func (e *Exec) leavesOut() (bool, error) {
	cb, err := e.pool.New()
	if err != nil {
		return false, err
	}
	if err := cb.Begin(); err != nil {
		return false, err
	}
	said := e.waves.chosen.Mapped()[:leftOutBytes]
	for i := range said {
		said[i] = 7
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
	const untouched = 0x0707070707070707
	return le.Uint64(said) == untouched && le.Uint64(said[8:]) == 1<<32|1, nil
}

// leftOutBytes is what the trial says to the host, of either dispatch.
const leftOutBytes = 16

// leaveOut records a dispatch that is to be left out, and one that is not. They look for expert 1 where host memory has layers' choices.
func (e *Exec) leaveOut(cb *vk.CommandBuffer) error {
	rec, at := e.run.rec, e.Plan.Scratch.There.Off
	const word, looked, ids, table = 0, 4, 16, 32 // of There, which has 256 bytes at least
	rec.Reset(cb)
	for i := range int64(2) { // left out, and not
		var first [256]byte
		le.PutUint32(first[word:], uint32(i))
		le.PutUint32(first[ids:], 1)
		to := e.scratch.Address + uint64(at)
		le.PutUint64(first[table:], to+looked)
		le.PutUint64(first[table+8:], e.waves.chosen.Address+uint64(8*i))
		le.PutUint64(first[table+8*(shaders.ThereHead+1):], to)
		rec.Barrier()
		if err := rec.Update(e.scratch, at, first[:]); err != nil {
			return err
		}
		rec.Barrier()
		cb.ConditionBarrier()
		cb.BeginConditional(e.scratch, at+word)
		if err := rec.ExpertsThere(shaders.ExpertsThereArgs{There: to + table, IDs: to + ids, Count: 1}); err != nil {
			return err
		}
		cb.EndConditional()
	}
	cb.HostBarrier()
	return nil
}

// thereEntry is where ahead's table has an expert's matrix, the op'th of the layer's.
func (e *Exec) thereEntry(layer, op, id int) int {
	return e.entry(layer, op, id) + (layer+1)*shaders.ThereHead
}

// thereAt is where the device has a layer's part of that table.
func (r *run) thereAt(layer int) uint64 {
	return r.addr(r.e.Plan.Scratch.There) + uint64(8*(r.e.thereEntry(layer, 0, 0)-shaders.ThereHead))
}

// sayWhere puts in front of a layer's part where the device and the host want to know whether its experts are there.
func (e *Exec) sayWhere(layer int) {
	head := e.ahead.table[e.thereEntry(layer, 0, 0)-shaders.ThereHead:]
	head[0], head[1] = e.scratch.Address+uint64(e.goOff(layer)), e.waves.chosen.Address+uint64(e.wentOff(layer))
}

// goOff is where the scratch has whether a step may go ahead with a layer.
func (e *Exec) goOff(layer int) int64 {
	return e.Plan.Scratch.There.Off + int64(8*len(e.ahead.table)+4*layer)
}

// goes reports whether a layer went ahead, once the host was told.
func (e *Exec) goes(layer int) bool {
	return le.Uint32(e.waves.chosen.Mapped()[e.wentOff(layer):]) != 0
}

// there notes that experts of a batch are in VRAM, which the device's queue has waited for.
func (e *Exec) there(layer int, address uint64, id int, u *pack.Unit) error {
	a := &e.ahead
	for op, name := range a.names[layer] {
		t, ok := u.Tensor(name)
		if !ok {
			return fmt.Errorf("tensor %q is not in %s", name, u.Name)
		}
		at, to := e.thereEntry(layer, op, id), address+uint64(t.UnitOff)
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
			a.table[e.thereEntry(x.Layer, op, x.ID)] = 0
		}
		a.stale[x.Layer] = true
	}
}

// prelude tells the device what has come and gone, and has it look whether the first layer can go ahead; no other may.
func (r *run) prelude(layer int) error {
	e := r.e
	if err := r.begin(); err != nil {
		return err
	}
	e.gone()
	for l, stale := range e.ahead.stale {
		if e.ahead.names[l] == nil {
			continue
		}
		le.PutUint32(e.waves.chosen.Mapped()[e.wentOff(l):], 0)
		if !stale {
			continue
		}
		e.ahead.stale[l] = false
		if err := r.tellLayer(e.ahead.table, l, e.Plan.Scratch.There.Off, e.partTable(2)); err != nil {
			return err
		}
	}
	if err := r.rec.Zero(e.scratch, e.goOff(0), int64(4*e.Hyper.BlockCount)); err != nil {
		return err
	}
	r.rec.Barrier()
	if err := r.look(layer); err != nil {
		return err
	}
	return r.queue()
}
