package exec

import (
	"fmt"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/plan"
	"leat/internal/weights"
	"leat/vk"
)

// waves are what a step needs to run experts that share slots of VRAM. A wave is experts that are there at a time: the
// products skip all others, whose addresses are 0.
type waves struct {
	chosen *vk.Buffer // host memory: (layers that have experts) whether the layer went ahead, and (rows, Used) the experts that rows chose, all uint32
	nth    []int      // layer of the model -> of those
	layers int
	routed []uint16          // (rows, layers, Used)
	there  *weights.Batch    // taken of the layer: those in VRAM
	coming *weights.Batch    // and those that come first
	next   *weights.Batch    // and then
	early  [2]*weights.Batch // there and coming, of the layer that follows
	ahead  int               // whose early are; nothing: no layer's
	keep   [2]int            // how many that come may stay: of this layer, of the layer ahead
	pairs  []int32           // by expert of the layer: of a row and this expert, in the step
	taken  []bool            // by expert: before the layer was at hand
	ids    []int32           // that it needs, the most used first
	hits   []int32
	misses []int32
	table  []byte // (3, E) uint64 addresses
}

func (e *Exec) makeWaves() (err error) {
	w, m := &e.waves, &e.Hyper.Experts
	x := e.Weights.Experts()
	if x == nil && e.Routed == nil || m.Count == 0 {
		return nil
	}
	w.nth = make([]int, e.Hyper.BlockCount)
	last := -1
	for i := range e.Plan.Units {
		if u := &e.Plan.Units[i]; u.Kind == pack.Experts && u.Layer != last {
			last = u.Layer
			w.nth[last] = w.layers
			w.layers++
		}
	}
	w.routed = make([]uint16, e.Plan.Chunk*w.layers*m.Used)
	if w.chosen, err = e.Host.Alloc("chosen experts", int64(4*w.layers*e.chosenWords()+leftOutBytes), vk.Readback); err != nil || x == nil {
		return err
	}
	w.there, w.coming, w.next, w.early = x.NewBatch(), x.NewBatch(), x.NewBatch(), [2]*weights.Batch{x.NewBatch(), x.NewBatch()}
	e.parts = make([]part, 1+3*w.layers)
	w.pairs, w.taken, w.table = make([]int32, m.Count), make([]bool, m.Count), make([]byte, 8*expertTensors*m.Count)
	return e.makeAhead()
}

// chosenWords is how many words of host memory a layer has.
func (e *Exec) chosenWords() int { return 1 + e.Plan.Chunk*e.Hyper.Experts.Used }

// wentOff is where host memory has whether a layer went ahead, and chosenOff where its choice lies.
func (e *Exec) wentOff(layer int) int64   { return int64(4 * e.waves.nth[layer] * e.chosenWords()) }
func (e *Exec) chosenOff(layer int) int64 { return e.wentOff(layer) + 4 }

// keepChosen has a layer's choice copied to host memory.
func (r *run) keepChosen(layer int) error {
	e := r.e
	n := int64(4 * len(r.rows) * e.Hyper.Experts.Used)
	return r.rec.Copy(e.waves.chosen, e.chosenOff(layer), e.scratch, e.Plan.Scratch.Values[arch.Chosen].Off, n)
}

// routed tells of all layers' choices.
func (r *run) routed() error {
	e, w, used := r.e, &r.e.waves, r.e.Hyper.Experts.Used
	if e.Routed == nil || w.layers == 0 {
		return nil
	}
	m, rows := w.chosen.Mapped(), len(r.rows)
	ids := w.routed[:rows*w.layers*used]
	for l := range w.layers {
		from := m[4*(l*e.chosenWords()+1):]
		for i := range rows * used {
			ids[(i/used*w.layers+l)*used+i%used] = uint16(le.Uint32(from[4*i:]))
		}
	}
	return e.Routed(rows, ids)
}

// cached runs the experts of a layer whose router has run: those that are there at once, while the others come; these in
// as few waves as there are slots for. An expert of a step comes once.
func (r *run) cached(o *arch.Op) error {
	e, w, layer := r.e, &r.e.waves, r.e.Plan.Units[r.at].Layer
	if r.goesAhead() {
		return r.leap(o)
	}
	if err := r.learn(); err != nil || r.back != nothing {
		return err
	}
	rest, err := r.first(layer)
	if err != nil {
		return err
	}
	if err := r.wave(o, w.there, true, w.coming.Len()+len(rest) == 0); err != nil {
		return err
	}
	for w.coming.Len()+len(rest) > 0 {
		first := w.there.Len() == 0
		if err := r.submitted(w.there); err != nil { // what is there runs while the others come
			return err
		}
		if w.coming.Len() == 0 {
			if rest, err = r.take(layer, rest, w.coming, r.most(layer)); err != nil {
				return err
			}
			if w.coming.Len() == 0 {
				return fmt.Errorf("layer %d: no slot is free for the %d experts that have to come", layer, len(rest))
			}
		}
		if rest, err = r.take(layer, rest, w.next, r.most(layer)); err != nil {
			return err
		}
		if len(rest) == 0 {
			if err := r.early(); err != nil {
				return err
			}
		}
		if err := r.wave(o, w.coming, first, w.next.Len()+len(rest) == 0); err != nil {
			return err
		}
		w.there, w.coming, w.next = w.coming, w.next, w.there
	}
	if err := r.early(); err != nil {
		return err
	}
	return r.release(w.there, e.value+1)
}

// learn waits for the router's choice, and counts who was chosen.
func (r *run) learn() error {
	e, layer := r.e, r.e.Plan.Units[r.at].Layer
	if r.resumes { // it has chosen, and found that one is missing
		r.resumes = false
		r.chose(layer, r.behindOf)
		return r.count(layer)
	}
	brought := r.leaves()
	if err := r.chosen(layer); err != nil {
		return err
	}
	if err := r.submit(); err != nil {
		return err
	}
	r.chose(layer, brought)
	if err := r.hear(e.value); err != nil {
		return err
	}
	if err := r.settle(true); err != nil || r.back != nothing {
		return err
	}
	return r.count(layer)
}

// chosen has a layer's choice brought to host memory by the end of the command buffer.
func (r *run) chosen(layer int) error {
	if err := r.landed(); err != nil || r.again {
		return err
	}
	if r.e.Routed == nil { // else it is under way
		if err := r.keepChosen(layer); err != nil {
			return err
		}
	}
	r.cb.HostBarrier()
	return nil
}

// count counts the pairs of the step's rows and each of a layer's experts.
func (r *run) count(layer int) error {
	e, w, n := r.e, &r.e.waves, int64(len(r.rows)*r.e.Hyper.Experts.Used)
	clear(w.pairs)
	needed := 0
	m := w.chosen.Mapped()[e.chosenOff(layer):]
	for i := range n {
		id := le.Uint32(m[4*i:])
		if int(id) >= len(w.pairs) {
			return fmt.Errorf("the router chose expert %d of %d", id, len(w.pairs))
		}
		if w.pairs[id]++; w.pairs[id] == 1 {
			needed++
		}
	}
	if !r.keeping { // else its few rows say nothing of the step's
		e.Weights.Experts().Needed(needed)
	}
	return nil
}

// submitted hands the device the wave of a batch, and the batch back.
func (r *run) submitted(b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := r.submit(); err != nil {
		return err
	}
	r.followed(r.e.Plan.Units[r.at].Layer)
	return r.release(b, r.e.value)
}

// release gives a batch of the layer at hand back, once the compute timeline has reached value.
func (r *run) release(b *weights.Batch, value uint64) error {
	e, w, x := r.e, &r.e.waves, r.e.Weights.Experts()
	if e.ahead.able {
		e.gone()
		for i := range b.Len() {
			address, id, unit, err := x.At(b, i)
			if err != nil {
				return err
			}
			if err := e.there(unit.Layer, address, id, unit); err != nil {
				return err
			}
		}
	}
	kept, err := x.Release(b, value, w.keep[0])
	w.keep[0] -= kept
	return err
}

// wave records a layer's products with the experts of a batch, its first or last one perhaps, once their uploads are submitted.
func (r *run) wave(o *arch.Op, b *weights.Batch, first, last bool) error {
	if b.Len() == 0 {
		return nil
	}
	if err := r.beginWave(r.e.Plan.Units[r.at].Layer, first, last); err != nil {
		return err
	}
	if err := r.arrive(b); err != nil {
		return err
	}
	e, w, x := r.e, &r.e.waves, r.e.Weights.Experts()
	clear(w.table)
	pairs := int32(0)
	for i := range b.Len() {
		address, id, unit, err := x.At(b, i)
		if err != nil {
			return err
		}
		pairs += w.pairs[id]
		for op := range o.Ops {
			if o.Ops[op].Kind != arch.MulMatID {
				continue
			}
			t, ok := unit.Tensor(o.Ops[op].Weight)
			if !ok {
				return fmt.Errorf("tensor %q is not in %s", o.Ops[op].Weight, unit.Name)
			}
			le.PutUint64(w.table[8*(r.which(o, op)*len(w.pairs)+id):], address+uint64(t.UnitOff))
			r.next.weights += t.Bytes
		}
	}
	absent := 1 - float64(pairs)/float64(len(r.rows)*e.Hyper.Experts.Used)
	if r.part != nothing {
		return r.partWave(o, absent)
	}
	if err := r.rec.Update(e.scratch, e.tableAt(e.Plan.Units[r.at].Layer), w.table); err != nil {
		return err
	}
	r.absent, r.rec.Absent = absent, absent
	err := r.byExperts(o, 0, len(w.pairs))
	r.absent, r.rec.Absent = 0, 0
	return err
}

// arrive waits until a batch's uploads are submitted, and has the submission being recorded wait for their bytes.
func (r *run) arrive(b *weights.Batch) error {
	x := r.e.Weights.Experts()
	if !x.Here(b) {
		r.pause()
		from := r.since
		err := x.Arrive(r.ctx, b)
		r.resume()
		r.next.waited = r.since.Sub(from)
		r.blocked += r.next.waited
		r.missed += r.next.waited
		if err != nil {
			return err
		}
	}
	if r.waits = x.Waits(b, r.waits); len(r.waits) > 0 {
		r.next.awaits = r.at
	}
	return nil
}

// nextCached is the layer whose experts share slots and run next; nothing: none's.
func (r *run) nextCached() int {
	units := r.e.Plan.Units
	for i := r.at + 1; i < len(units); i++ {
		if isCached(&units[i]) {
			return units[i].Layer
		}
	}
	return nothing
}

// isCached reports whether the unit stands for experts that share slots.
func isCached(u *plan.Unit) bool { return u.Tier == plan.Cached }
