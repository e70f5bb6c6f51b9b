package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/vk/mem"
)

// view is the model with other layers: the base, and more of another class.
type view struct {
	other    *predict.LayerClass // nil: the base alone
	whole    bool                // it has the whole head; else a part of the vocabulary
	slots    bool                // experts share slots, which hold all of them
	row      int                 // so many layers of other in place of all that; experts share as many slots as one token wants
	streamed bool                // all layers are streamed from the host tier
}

// opened is a view that can run.
type opened struct {
	runner *runner
	dummy  *dummy
}

// layers lists a view's.
func (r *rehearsal) layers(v view) (list []*predict.LayerClass) {
	if v.row > 0 {
		return slices.Repeat([]*predict.LayerClass{v.other}, v.row)
	}
	for range r.base {
		list = append(list, r.first)
	}
	for n := 0; v.other != nil && n < r.more; n++ {
		list = append(list, v.other)
	}
	return list
}

// see makes the view's model.
func (r *rehearsal) see(v view) (*pack.Model, *arch.Hyper, error) {
	var as []int
	var layers []pack.Unit
	for n, l := range r.layers(v) {
		as, layers = append(as, l.First.Layer), append(layers, l.AsLayer(n)...)
	}
	h := r.p.hyper.View(as)
	if !v.whole {
		h.VocabSize = min(rehearseVocab, h.VocabSize)
	}
	var before, after []pack.Unit
	for i := range r.p.file.Units {
		switch u := &r.p.file.Units[i]; u.Kind {
		case pack.Embed, pack.Head:
			part := u.Rows(0, int64(h.VocabSize))
			if u.Kind == pack.Embed {
				before = append(before, part)
			} else {
				after = append(after, part)
			}
		case pack.Global:
			before = append(before, *u)
		case pack.Norm:
			after = append(after, *u)
		}
	}
	m, err := r.p.file.View(slices.Concat(before, layers, after))
	return m, h, err
}

// planFor makes the view's model and plans it as the whole one is planned: with its rows to a step, in as long slices of weights, all in VRAM or as
// much as can be streamed.
func (r *rehearsal) planFor(v view) (*pack.Model, *arch.Hyper, *plan.Plan, error) {
	m, h, err := r.see(v)
	if err != nil {
		return nil, nil, nil, err
	}
	b := r.p.budget
	b.DeviceBytes, b.Sessions, b.RingBytes, b.Sweep = r.room, 1, 0, plan.Sweep{Halves: r.p.plan.Scratch.WeightBytes, PartBytes: b.PartBytes}
	b.InPlace, b.Slots = r.p.plan.InPlace, v.slots
	b.Chunk, b.ContextLength = r.p.plan.Chunk, max(r.p.plan.Chunk, min(arch.LongestContext(r.p.hyper), rehearseContext))
	if v.streamed {
		if r.onCPU() { // of whose RAM a part is taken for VRAM, where so much is asked for
			b.InPlace, b.HostBytes = false, b.DeviceBytes
		}
		p, err := leastVRAM(h, m, b)
		return m, h, p, err
	}
	b.HostBytes = 0
	if v.row > 0 {
		p, err := slotsOf(h, m, b, v.row)
		return m, h, p, err
	}
	p, err := plan.Make(h, m, b)
	if err == nil && (p.StreamedBytes > 0 || (p.Experts != nil) != v.slots) {
		err = fmt.Errorf("%d layers do not fit", h.BlockCount)
	}
	return m, h, p, err
}

func (r *rehearsal) fits(classes []predict.LayerClass, slots bool) bool {
	for i := range classes {
		if _, _, _, err := r.planFor(view{other: &classes[i], slots: slots}); err != nil {
			return false
		}
	}
	return true
}

func (r *rehearsal) onCPU() bool { return r.p.device.onCPU() }

// inTurn reports whether views are to be there at once, their steps run in turn: a CPU's speed changes with what other
// programs do, and what is told from a difference would change by much more.
func (r *rehearsal) inTurn(views []view) bool {
	if !r.onCPU() {
		return false
	}
	var bytes int64
	for _, v := range views {
		_, _, p, err := r.planFor(v)
		if err != nil {
			return false
		}
		bytes += p.DeviceBytes + p.HostBytes
	}
	return bytes <= r.room
}

// each times views, in turn or one after the other; steps as in [rehearsal.time].
func (r *rehearsal) each(ctx context.Context, steps []predict.StepShape, views ...view) ([][]float64, error) {
	if r.inTurn(views) {
		return r.time(ctx, steps, views...)
	}
	all := make([][]float64, len(views))
	for i, v := range views {
		if took := r.took[v]; len(took) == 0 || len(took) < len(steps) {
			one, err := r.time(ctx, steps, v)
			if err != nil {
				return nil, err
			}
			r.took[v], steps = one[0], r.result.Steps[:len(one[0])]
		}
		all[i] = r.took[v]
	}
	return all, nil
}

// time builds views and returns how long each of steps takes in each of them; nil: as many as are worth it, which become
// the rehearsal's.
func (r *rehearsal) time(ctx context.Context, steps []predict.StepShape, views ...view) (seconds [][]float64, err error) {
	var all []*opened
	defer func() {
		for _, o := range all {
			err = errors.Join(err, r.close(o))
		}
	}()
	var once []stepper
	for _, v := range views {
		o := &opened{}
		all = append(all, o)
		if err := r.open(ctx, v, o); err != nil {
			return nil, err
		}
		once = append(once, o.dummy.step)
	}
	seconds, chosen, err := r.stopwatch(once).time(ctx, all[0].runner.p.plan, steps)
	if steps == nil {
		r.result.Steps = chosen
	}
	return seconds, err
}

func (r *rehearsal) stopwatch(once []stepper) *stopwatch {
	watch := newStopwatch(r.p.device.vk.Physical.Type, once...)
	if r.p.hooks.hurried {
		watch.enough, watch.warm, watch.long = 0, 0, 0
	}
	return watch
}

// open builds a view. It must be closed also where that fails.
func (r *rehearsal) open(ctx context.Context, v view, o *opened) error {
	file, hyper, p, err := r.planFor(v)
	if err != nil {
		return err
	}
	own := *r.p
	own.hooks.everyRow = true // the last layer stands for those before it
	own.file, own.hyper, own.plan = file, hyper, p
	if !p.InPlace {
		own.shared = mem.NotShared
	}
	o.runner = &runner{p: &own}
	if err := o.runner.build(ctx); err != nil {
		return err
	}
	if err := o.runner.weights.Loaded(ctx); err != nil {
		return err
	}
	d := &dummy{stepper: o.runner.stepper, vocab: int32(hyper.VocabSize), same: v.row > 0}
	if d.seq, err = o.runner.cache.NewSequence(p.ContextLength); err != nil {
		return err
	}
	if o.dummy = d; v.slots {
		return o.runner.fillSlots(ctx, d)
	}
	return nil
}

func (r *rehearsal) close(o *opened) error {
	if o.runner == nil {
		return nil
	}
	if o.dummy != nil {
		o.dummy.seq.Release()
	}
	return o.runner.close() // its file is a view of the model's
}
