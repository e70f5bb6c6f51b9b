package exec

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/kernels"
	"leat/internal/plan"
	"leat/shaders"
)

// A layer whose experts are all in VRAM need not ask the host where they are: the device has a table of all that are there. So
// where they mostly are, a step of one row goes ahead, layer after layer, each behind a look whether its experts are all in
// the table. Where one is not, all that follows is left out (the dispatches are conditional), the host has it brought, and the
// step goes on from that layer as it would have without going ahead. The host learns of the layers that went well by and by.

// ahead is what an Exec needs for that.
type ahead struct {
	able   bool
	steady bool       // the step before waited for nothing but experts
	misses float64    // how likely a layer misses one, by those before
	names  [][]string // by layer of the model: its experts' matrices, in the order of the operations
	table  []uint64   // (L, head + 3*E) as the device's is to be: each layer's with where to say that its experts are there
	stale  []bool     // by layer: the device's is not
}

// leap is a layer that went ahead, or was to.
type leap struct {
	unit, layer int
	timed       int    // its part's entry of timed
	value       uint64 // of the submission; 0: it is pending
	brought     kernels.Brought
}

const (
	missMemory = 1.0 / 32 // the weight of the last layer in how often they miss one
	lastLeap   = 2        // and in the step's last: what they used the host tells the policies while the device stands
)

func (e *Exec) makeAhead() error {
	a, h := &e.ahead, e.Hyper
	a.misses = 1
	if e.Ahead == 0 || !e.Device.Features.ConditionalRendering {
		return nil
	}
	var err error
	if a.able, err = e.leavesOut(); err != nil {
		return err
	}
	if !a.able {
		e.Logger.Warn("conditional dispatches do not do what they are told: every layer asks the host where its experts are")
		return nil
	}
	a.names, a.stale = make([][]string, h.BlockCount), make([]bool, h.BlockCount)
	a.table = make([]uint64, e.thereEntry(h.BlockCount, 0, 0)-shaders.ThereHead)
	for i, ops := range e.ops {
		for _, o := range ops {
			if o.Kind != arch.Experts || e.Plan.Units[i].Kind != pack.Experts {
				continue
			}
			l := e.Plan.Units[i].Layer
			a.names[l], a.stale[l] = nil, true
			e.sayWhere(l)
			for _, p := range o.Ops {
				if p.Kind == arch.MulMatID {
					a.names[l] = append(a.names[l], p.Weight)
				}
			}
		}
	}
	return nil
}

// noted adds what came to pass with a layer to what is expected of the next ones.
func (a *ahead) noted(lacked int) {
	a.misses -= missMemory * a.misses
	if lacked > 0 {
		a.misses += missMemory
	}
}

// GoesAhead reports whether layers can.
func (e *Exec) GoesAhead() bool { return e.ahead.able }

// goesAhead reports whether the layer at hand need not ask.
func (r *run) goesAhead() bool {
	a := &r.e.ahead
	return a.able && r.parts && a.steady && !r.resumes && (len(r.leaps) > 0 || a.misses < r.e.Ahead)
}

// stride is how many layers go in a submission: what is left out costs time as well.
func (a *ahead) stride() int { return plan.Stride(a.misses) }

// leap has the layer at hand go ahead.
func (r *run) leap(o *arch.Op) error {
	e, layer := r.e, r.e.Plan.Units[r.at].Layer
	brought := r.leaves()
	if err := r.before(layer); err != nil {
		return err
	}
	if err := r.queue(); err != nil {
		return err
	}
	if len(r.leaps) == 0 || r.leapt >= e.ahead.stride() || e.waves.layers-e.waves.nth[layer] == lastLeap {
		if err := r.flush(); err != nil {
			return err
		}
		if err := r.settle(false); err != nil || r.back != nothing {
			return err
		}
	}
	if len(r.leaps) == 0 {
		if err := r.prelude(layer); err != nil {
			return err
		}
	}
	n := e.firstLeap() + e.waves.nth[layer]
	if p := &e.parts[n]; p.brought != brought {
		p.kept, p.brought = false, brought
	}
	if err := r.beginPart(n); err != nil {
		return err
	}
	r.leaps = append(r.leaps, leap{unit: r.at, layer: layer, timed: len(r.timed), brought: brought})
	r.leapt++
	r.leaping = true
	for _, t := range e.ahead.names[layer] {
		if t, ok := e.Plan.Units[r.at].Tensor(t); ok {
			r.next.weights += t.Bytes * int64(e.Hyper.Experts.Used)
		}
	}
	if r.again {
		return nil
	}
	r.onlyIfThere()
	return r.byExperts(o, 0, e.Hyper.Experts.Count)
}

// before ends what is open before a layer that goes ahead. The layer before looks whether this one can, if it went itself.
func (r *run) before(layer int) error {
	if !r.leaping {
		return r.chosen(layer)
	}
	if !r.again && r.rec.Copied() {
		r.rec.Barrier()
	}
	return r.landed()
}

// firstLeap is the first part of layers that go ahead, and leaps reports whether a part is of one.
func (e *Exec) firstLeap() int      { return 1 + 2*e.waves.layers }
func (e *Exec) leaps(part int) bool { return part != nothing && part >= e.firstLeap() }

// lookedUp is the table in which a choice is looked up by who makes it: of a layer that goes ahead, if the one before did; 0: none.
func (r *run) lookedUp() uint64 {
	if layer := r.e.Plan.Units[r.at].Layer; r.leaping && r.nextCached() == layer {
		return r.thereAt(layer)
	}
	return 0
}

// look records the look at whether a layer's experts are there.
func (r *run) look(layer int) error {
	return r.rec.ExpertsThere(shaders.ExpertsThereArgs{There: r.thereAt(layer), IDs: r.value(arch.Chosen), Count: uint32(r.e.Hyper.Experts.Used)})
}

// onlyIfThere has what follows in the command buffer left out where an expert of the layer was not there.
func (r *run) onlyIfThere() {
	r.cb.DispatchConditionBarrier()
	r.cb.BeginConditional(r.e.scratch, r.e.goOff(r.leaps[len(r.leaps)-1].layer))
}

// landed ends what is recorded of a layer that goes ahead.
func (r *run) landed() error {
	if !r.leaping {
		return nil
	}
	r.leaping = false
	if r.again {
		return nil
	}
	if err := r.rec.Finish(); err != nil {
		return err
	}
	r.cb.EndConditional()
	return nil
}

// tellHost ends a submission of layers that go ahead: the host is to see what they say.
func (r *run) tellHost() error {
	if n := len(r.leaps); n == 0 || r.leaps[n-1].value != 0 {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	r.cb.HostBarrier()
	r.next.ends = true
	return r.queue()
}

// settle learns how layers went, all of which are submitted: of all, or of those before the last submission. Where one could not go, the
// step is to go back there.
func (r *run) settle(all bool) error {
	e := r.e
	r.leapt = 0
	for len(r.leaps) > 0 && (all || r.leaps[0].value < e.value) {
		value, n := r.leaps[0].value, 0
		if err := r.hear(value); err != nil {
			return err
		}
		for n < len(r.leaps) && r.leaps[n].value == value && e.goes(r.leaps[n].layer) {
			if err := r.went(&r.leaps[n]); err != nil {
				return err
			}
			n++
		}
		if n < len(r.leaps) && !e.goes(r.leaps[n].layer) { // those behind are left out, and soon over
			if err := r.hear(e.value); err != nil {
				return err
			}
			return r.goBack(n)
		}
		r.leaps = append(r.leaps[:0], r.leaps[n:]...)
	}
	return nil
}

// went does for a layer that went ahead what is done for one whose experts are all found.
func (r *run) went(l *leap) error {
	e, w, x := r.e, &r.e.waves, r.e.Weights.Experts()
	if err := r.count(l.layer); err != nil {
		return err
	}
	x.Begin(r.step, l.layer)
	clear(w.taken)
	w.list()
	n, err := x.Take(r.ctx, l.layer, w.ids, w.there)
	if err != nil {
		return err
	}
	if n != len(w.ids) || !x.Here(w.there) {
		return fmt.Errorf("layer %d went ahead without some of its experts", l.layer)
	}
	e.ahead.noted(0)
	x.Ahead()
	_, err = x.Release(w.there, l.value, 0)
	return err
}

// goBack has the step go on from the n'th leap, which was left out with all that follow.
func (r *run) goBack(n int) error {
	e := r.e
	for _, l := range r.leaps[n:] {
		s := &r.timed[l.timed]
		e.count.weights.Add(-s.weights)
		s.bytes, s.flops, s.weights = 0, 0, 0
	}
	r.over, r.behind = r.used, 0
	r.back, r.behindOf = r.leaps[n].unit, r.leaps[n].brought
	r.leaps = r.leaps[:0]
	return nil
}
