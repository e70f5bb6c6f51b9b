package kernels

// span is a run of device addresses, lo up to but not including hi.
type span struct{ lo, hi uint64 }

func (a span) overlaps(b span) bool { return a.lo < b.hi && b.lo < a.hi }

// f32s is n rows of cols float32 values (or uint32: as wide), stride values apart.
func f32s(address uint64, n, cols, stride uint32) span {
	if n == 0 || cols == 0 {
		return span{}
	}
	return span{address, address + 4*(uint64(n-1)*uint64(stride)+uint64(cols))}
}

// cacheSpan stands for one layer of the KV cache: its pages' addresses are known to the
// device alone, and no real address has this bit.
func cacheSpan(layerOff uint32) span {
	lo := uint64(1)<<63 + uint64(layerOff)
	return span{lo, lo + 2}
}

// cachePart is the layer's keys, 0, or its values, 1.
func cachePart(layerOff uint32, part int) span {
	lo := cacheSpan(layerOff).lo + uint64(part)
	return span{lo, lo + 1}
}

// touch is what one op reads and writes.
type touch struct {
	reads, writes [12]span
	nr, nw        int
	copies        bool // it is a copy, no dispatch
}

func (t *touch) read(s span)  { t.reads[t.nr] = s; t.nr++ }
func (t *touch) write(s span) { t.writes[t.nw] = s; t.nw++ }

// hazards remembers what was read and written since the last barrier.
type hazards struct{ reads, writes []span }

// conflict reports whether t reads what was written, or writes what was read or written.
func (h *hazards) conflict(t *touch) bool {
	return meet(h.writes, t.reads[:t.nr]) || meet(h.writes, t.writes[:t.nw]) || meet(h.reads, t.writes[:t.nw])
}

func meet(as, bs []span) bool {
	for _, a := range as {
		for _, b := range bs {
			if a.overlaps(b) {
				return true
			}
		}
	}
	return false
}

func (h *hazards) add(t *touch) {
	h.reads = append(h.reads, t.reads[:t.nr]...)
	h.writes = append(h.writes, t.writes[:t.nw]...)
}

func (h *hazards) merge(o *hazards) {
	h.reads = append(h.reads, o.reads...)
	h.writes = append(h.writes, o.writes...)
}

func (h *hazards) clear() { h.reads, h.writes = h.reads[:0], h.writes[:0] }

// history is what a recorder remembers of its ops to know where barriers are needed.
type history struct {
	since    hazards // the last barrier
	ordered  hazards // by barriers between dispatches, which order nothing for a copy
	copied   bool    // since the last barrier that holds for copies
	barriers int
}

// between puts the barrier that t needs: where no copy is concerned, one between dispatches, which has less to wait for.
func (r *Recorder) between(t *touch) {
	if t.copies || r.history.copied {
		r.Barrier()
		return
	}
	r.cb.DispatchBarrier()
	r.history.ordered.merge(&r.history.since)
	r.history.since.clear()
	r.history.barriers++
}

// order puts a barrier before an op where it needs one, and remembers what it touches.
func (r *Recorder) order(t *touch) error {
	if err := r.settle(t); err != nil {
		return err
	}
	if r.history.since.conflict(t) || t.copies && r.history.ordered.conflict(t) {
		r.between(t)
	}
	r.history.since.add(t)
	r.history.copied = r.history.copied || t.copies
	r.know(t)
	return nil
}

// know forgets what the recorder knows of memory that t writes: bytes, tiles and pairs made of it before.
func (r *Recorder) know(t *touch) {
	r.forget(t)
	r.unsort(t)
	if meet([]span{r.tiles.x}, t.writes[:t.nw]) {
		r.tiles.x = span{} // what was brought into tiles is not X any more
	}
}
