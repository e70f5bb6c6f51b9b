package exec

import (
	"fmt"

	"leat/decompose/pack"
	"leat/engine/arch"
	"leat/engine/internal/weights"
	"leat/engine/plan"
	"leat/vk"
)

// waves are what a step needs to run experts that share slots of VRAM. A wave is experts that are there at a time: the
// products skip all others, whose addresses are 0.
type waves struct {
	chosen  *vk.Buffer // host memory: (layers that have experts, rows, Used) uint32, the experts that rows chose
	nth     []int      // layer of the model -> of those
	layers  int
	routed  []uint16          // (rows, layers, Used)
	batches [3]*weights.Batch // those there already; two of those that had to come
	seen    []bool            // by expert of the layer
	ids     []int32           // that it needs
	hits    []int32
	misses  []int32
	table   []byte // (3, E) uint64 addresses
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
	if w.chosen, err = e.Host.Alloc("chosen experts", int64(4*w.layers*e.Plan.Chunk*m.Used), vk.Readback); err != nil || x == nil {
		return err
	}
	for i := range w.batches {
		w.batches[i] = x.NewBatch()
	}
	w.seen, w.table = make([]bool, m.Count), make([]byte, 8*expertTensors*m.Count)
	return nil
}

// chosenOff is where a layer's choice lies in host memory.
func (e *Exec) chosenOff(layer int) int64 {
	return int64(4 * e.waves.nth[layer] * e.Plan.Chunk * e.Hyper.Experts.Used)
}

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
		from := m[4*l*e.Plan.Chunk*used:]
		for i := range rows * used {
			ids[(i/used*w.layers+l)*used+i%used] = uint16(le.Uint32(from[4*i:]))
		}
	}
	return e.Routed(rows, ids)
}

// cached runs the experts of a layer whose router has run: those that are there at once, while the others come; these in
// as few waves as there are slots for. An expert of a step comes once.
func (r *run) cached(o *arch.Op) error {
	e, w, x, layer := r.e, &r.e.waves, r.e.Weights.Experts(), r.e.Plan.Units[r.at].Layer
	if err := r.learn(); err != nil {
		return err
	}
	x.Begin(r.step, layer)
	w.hits, w.misses = x.Split(layer, w.ids, w.hits[:0], w.misses[:0])
	there, coming, next := w.batches[0], w.batches[1], w.batches[2]
	if _, err := r.take(layer, w.hits, there, len(w.hits)); err != nil {
		return err
	}
	rest, err := r.take(layer, w.misses, coming, x.Wave(layer))
	if err != nil {
		return err
	}
	if err := r.wave(o, there); err != nil {
		return err
	}
	for len(rest) > 0 || coming.Len() > 0 {
		if err := r.submitted(there); err != nil { // what is there runs while the others come
			return err
		}
		if coming.Len() == 0 {
			if rest, err = r.take(layer, rest, coming, x.Wave(layer)); err != nil {
				return err
			}
			if coming.Len() == 0 {
				return fmt.Errorf("layer %d: no slot is free for the %d experts that have to come", layer, len(rest))
			}
		}
		if rest, err = r.take(layer, rest, next, x.Wave(layer)); err != nil {
			return err
		}
		if err := r.wave(o, coming); err != nil {
			return err
		}
		there, coming, next = coming, next, there
	}
	return x.Release(there, e.value+1)
}

// learn waits for the router's choice and lists the experts that the step's rows need of the layer.
func (r *run) learn() error {
	e, w, n := r.e, &r.e.waves, int64(len(r.rows)*r.e.Hyper.Experts.Used)
	layer := e.Plan.Units[r.at].Layer
	if e.Routed == nil { // else it is under way
		if err := r.keepChosen(layer); err != nil {
			return err
		}
	}
	r.cb.HostBarrier()
	if err := r.submit(); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.await(e.value); err != nil {
		return err
	}
	clear(w.seen)
	m := w.chosen.Mapped()[e.chosenOff(layer):]
	for i := range n {
		id := le.Uint32(m[4*i:])
		if int(id) >= len(w.seen) {
			return fmt.Errorf("the router chose expert %d of %d", id, len(w.seen))
		}
		w.seen[id] = true
	}
	w.ids = w.ids[:0]
	for id, used := range w.seen {
		if used {
			w.ids = append(w.ids, int32(id))
		}
	}
	return nil
}

// take takes the first of ids, at most so many, into a batch and returns the others.
func (r *run) take(layer int, ids []int32, b *weights.Batch, most int) (rest []int32, err error) {
	if len(ids) == 0 {
		return ids, nil
	}
	n, err := r.e.Weights.Experts().Take(r.ctx, layer, ids[:min(most, len(ids))], b)
	return ids[n:], err
}

// submitted hands the device the wave of a batch, and the batch back.
func (r *run) submitted(b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := r.submit(); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	return r.e.Weights.Experts().Release(b, r.e.value)
}

// wave records a layer's products with the experts of a batch, once their uploads are submitted.
func (r *run) wave(o *arch.Op, b *weights.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if err := r.arrive(b); err != nil {
		return err
	}
	e, w, x := r.e, &r.e.waves, r.e.Weights.Experts()
	clear(w.table)
	for i := range b.Len() {
		address, id, unit, err := x.At(b, i)
		if err != nil {
			return err
		}
		for op := range o.Ops {
			if o.Ops[op].Kind != arch.MulMatID {
				continue
			}
			t, ok := unit.Tensor(o.Ops[op].Weight)
			if !ok {
				return fmt.Errorf("tensor %q is not in %s", o.Ops[op].Weight, unit.Name)
			}
			le.PutUint64(w.table[8*(r.which(o, op)*len(w.seen)+id):], address+uint64(t.UnitOff))
			r.next.weights += t.Bytes
		}
	}
	at := e.Plan.Scratch.Table.Off + int64(8*r.tableOf(e.Plan.Units[r.at].Layer))
	if err := r.rec.Update(e.scratch, at, w.table); err != nil {
		return err
	}
	return r.byExperts(o, 0, len(w.seen))
}

// arrive waits until a batch's uploads are submitted, and has the submission being recorded wait for their bytes.
func (r *run) arrive(b *weights.Batch) error {
	x := r.e.Weights.Experts()
	if !x.Here(b) {
		if err := r.cut(); err != nil {
			return err
		}
		r.pause()
		from := r.since
		err := x.Arrive(r.ctx, b)
		r.resume()
		r.next.waited = r.since.Sub(from)
		r.blocked += r.next.waited
		if err != nil {
			return err
		}
	}
	if r.points = x.Waits(b, r.points[:0]); len(r.points) > 0 {
		if err := r.cut(); err != nil { // what is recorded so far need not wait
			return err
		}
		r.waits = append(r.waits, r.points...)
		r.next.awaits = r.at
	}
	return nil
}

// isCached reports whether the unit stands for experts that share slots.
func isCached(u *plan.Unit) bool { return u.Tier == plan.Cached }
