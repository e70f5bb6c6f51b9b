package kernels

// span is a range of device addresses, from lo up to but not including hi.
type span struct{ lo, hi uint64 }

// overlaps reports whether a and b have an address in common.
func (a span) overlaps(b span) bool { return a.lo < b.hi && b.lo < a.hi }

// f32s is the span of n rows of cols float32 or uint32 values, stride values apart.
func f32s(address uint64, n, cols, stride uint32) span {
	if n == 0 || cols == 0 {
		return span{}
	}
	return span{address, address + 4*(uint64(n-1)*uint64(stride)+uint64(cols))}
}

// cacheSpan stands for one layer of the KV cache. Only the device knows the pages' addresses, so the span is made up: no real address has
// bit 63.
func cacheSpan(layerOff uint32) span {
	lo := uint64(1)<<63 + uint64(layerOff)
	return span{lo, lo + 2}
}

// cachePart is the half of [cacheSpan] that stands for the keys, part 0, or the values, part 1.
func cachePart(layerOff uint32, part int) span {
	lo := cacheSpan(layerOff).lo + uint64(part)
	return span{lo, lo + 1}
}

// touch is the memory that one op reads and writes.
type touch struct {
	reads, writes [12]span // spans that the op reads, and spans that it writes
	nr, nw        int      // number of used entries of reads and writes
	copies        bool     // the op is a copy, not a dispatch
}

// read adds a span that the op reads.
func (t *touch) read(s span) { t.reads[t.nr] = s; t.nr++ }

// write adds a span that the op writes.
func (t *touch) write(s span) { t.writes[t.nw] = s; t.nw++ }

// hazards collects the spans that ops have read and written.
type hazards struct{ reads, writes []span }

// conflict reports whether t reads memory that an op of h wrote, or writes memory that an op of h read or wrote.
func (h *hazards) conflict(t *touch) bool {
	return anyOverlap(h.writes, t.reads[:t.nr]) || anyOverlap(h.writes, t.writes[:t.nw]) || anyOverlap(h.reads, t.writes[:t.nw])
}

// anyOverlap reports whether a span of as overlaps one of bs.
func anyOverlap(as, bs []span) bool {
	for _, a := range as {
		for _, b := range bs {
			if a.overlaps(b) {
				return true
			}
		}
	}
	return false
}

// add adds the spans that t reads and writes.
func (h *hazards) add(t *touch) {
	h.reads = append(h.reads, t.reads[:t.nr]...)
	h.writes = append(h.writes, t.writes[:t.nw]...)
}

// merge adds all spans of o.
func (h *hazards) merge(o *hazards) {
	h.reads = append(h.reads, o.reads...)
	h.writes = append(h.writes, o.writes...)
}

// clear forgets all spans.
func (h *hazards) clear() { h.reads, h.writes = h.reads[:0], h.writes[:0] }

// history is what a recorder remembers of its ops to know where barriers are needed.
type history struct {
	since    hazards // accesses of ops since the last barrier of either kind
	ordered  hazards // accesses of ops after the last Barrier and before the last DispatchBarrier: a copy must still wait for these ops
	copied   bool    // a copy was recorded since the last Barrier
	barriers int     // number of barriers of both kinds since the last Reset
}

// recordBarrier records a barrier before t: a DispatchBarrier, which is cheaper, if neither t nor an op since the last Barrier is a copy. The caller
// has found that t needs one.
func (r *Recorder) recordBarrier(t *touch) {
	if t.copies || r.history.copied {
		r.Barrier()
		return
	}
	r.cb.DispatchBarrier()
	r.history.ordered.merge(&r.history.since)
	r.history.since.clear()
	r.history.barriers++
}

// order records a barrier before an op if the op needs one, after pending products that it depends on, and adds the op to the history.
func (r *Recorder) order(t *touch) error {
	if err := r.recordPending(t); err != nil {
		return err
	}
	if r.history.since.conflict(t) || t.copies && r.history.ordered.conflict(t) {
		r.recordBarrier(t)
	}
	r.history.since.add(t)
	r.history.copied = r.history.copied || t.copies
	r.forgetOverwritten(t)
	return nil
}

// forgetOverwritten forgets int8 rows, tiles and sorted pairs whose source t overwrites.
func (r *Recorder) forgetOverwritten(t *touch) {
	r.forgetQuantised(t)
	r.forgetSorted(t)
	if anyOverlap([]span{r.tiles.x}, t.writes[:t.nw]) {
		r.tiles.x = span{} // the tiles were made of values that t overwrites
	}
}
