package exec

import (
	"leat/internal/arch"
	"leat/internal/kernels"
)

// part is a command buffer of a step of one row whose experts share slots, kept for the next such step: what lies between two
// looks of the host at what a router chose. Which experts are where is in memory, and what they wait for is the submission's.
//
// Part 0 ends with the first layer's choice. Each layer that has experts has two more: a wave that others follow, which is there
// only where some come and some need not, and the last wave, with all behind it up to the next layer's choice. Behind all of these
// come those of layers that go ahead, one for each.
type part struct {
	kept    bool
	all     expected        // its work, were all of the layer's pairs in its wave
	experts expected        // of that, the wave's
	brought kernels.Brought // what there is as bytes when it begins
	left    kernels.Brought // and when it is over
}

// byParts runs a step of which what is kept is submitted again, and the rest recorded and kept.
func (r *run) byParts(key replayKey) error {
	e := r.e
	if key != e.replay.key {
		clear(e.parts)
		e.replay.key = key
	}
	r.parts, r.extra = true, len(e.parts)
	err := r.forward()
	e.ahead.steady = err == nil && r.cuts == 0
	return err
}

// leaves is what there is as bytes when the part that is open is over.
func (r *run) leaves() kernels.Brought {
	if r.again {
		return r.e.parts[r.part].left
	}
	return r.rec.Brought()
}

// beginPart opens a part of the step, or a command buffer for this step alone where it has none.
func (r *run) beginPart(n int) error {
	if !r.parts {
		return r.begin()
	}
	r.part, r.nth, r.again = n, n, r.e.parts[n].kept
	if !r.again {
		return r.record()
	}
	r.cb, r.units, r.next = r.e.cbs[n], 0, submission{rows: len(r.rows), from: r.open, awaits: nothing, nth: n, leaps: r.e.leaps(n)}
	return nil
}

// beginWave opens what a wave of the layer's experts goes into.
func (r *run) beginWave(layer int, first, last bool) error {
	switch n := r.waveOf(layer); {
	case last:
		return r.beginPart(n + 1)
	case first:
		return r.beginPart(n)
	}
	return r.begin()
}

// waveOf is the part of a layer's wave that others follow; the last one's is the next.
func (r *run) waveOf(layer int) int { return 1 + 2*r.e.waves.nth[layer] }

// chose notes what there is as bytes behind a layer's router, for the parts that begin there.
func (r *run) chose(layer int, b kernels.Brought) {
	if !r.parts {
		return
	}
	wave, last := &r.e.parts[r.waveOf(layer)], &r.e.parts[r.waveOf(layer)+1]
	if b != wave.brought {
		wave.kept, wave.brought = false, b
		last.kept, last.brought = false, b
	}
}

// followed notes what a wave that others follow leaves as bytes: the last wave runs behind it, or without it.
func (r *run) followed(layer int) {
	if !r.parts || r.again {
		return
	}
	last := &r.e.parts[r.waveOf(layer)+1]
	if b := last.brought.Both(r.rec.Brought()); b != last.brought {
		last.kept, last.brought = false, b
	}
}

// worked adds the work of what is submitted to what is known of it.
func (r *run) worked() {
	var all expected
	if !r.again {
		all.bytes, all.flops = r.rec.Cost()
	}
	if r.part != nothing {
		p := &r.e.parts[r.part]
		if !r.again {
			p.all = all
		}
		all = p.all
	}
	r.next.bytes += all.bytes
	r.next.flops += all.flops
	r.next.unit = max(r.at, 0)
}

// partWave is the wave of a part: where its experts are the host writes to memory, from where it is copied.
func (r *run) partWave(o *arch.Op, absent float64) error {
	e, w, p := r.e, &r.e.waves, &r.e.parts[r.part]
	from := e.partTable(r.part % 2)
	copy(e.in.Mapped()[from:], w.table)
	if !r.again {
		bytes, flops := r.rec.Cost()
		if err := r.rec.Copy(e.scratch, e.tableAt(e.Plan.Units[r.at].Layer), e.in, from, int64(len(w.table))); err != nil {
			return err
		}
		if err := r.byExperts(o, 0, len(w.pairs)); err != nil || r.part == nothing {
			return err
		}
		p.experts.bytes, p.experts.flops = r.rec.Cost()
		p.experts.bytes -= bytes
		p.experts.flops -= flops
	}
	r.next.bytes -= absent * p.experts.bytes
	r.next.flops -= absent * p.experts.flops
	return nil
}

// partTable is where in the step's inputs the addresses of a wave's experts are, of one that others follow or of a last one: both
// may be under way at a time, but those of the layer before are over.
func (e *Exec) partTable(which int) int64 {
	t := &e.Plan.Scratch.Table
	return t.Off + t.Bytes + int64(8*which*expertTensors*e.Hyper.Experts.Count)
}
