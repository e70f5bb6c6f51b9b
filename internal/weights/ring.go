package weights

// ring says where in the ring's blocks units go: one after another, over the oldest.
// It is pure bookkeeping. Units are placed, released and overwritten in one order.
type ring struct {
	blocks []int64  // bytes of each block
	block  int      // block that the next unit goes to, if it fits there
	off    int64    // offset of the next unit in block
	live   []region // regions that are not overwritten yet, used as a circle
	first  int      // index of the oldest region in live
	count  int      // number of regions in live
	freed  int      // number of regions in live that are released: the oldest ones
	value  uint64   // compute value at which all regions overwritten so far have been read
}

// region is the part of a block of the ring that a unit occupies.
type region struct {
	block      int    // index of the block
	off, bytes int64  // offset in the block, and size
	value      uint64 // compute value at which the unit has been read
}

// ringAlign is the alignment of units in the ring, in bytes.
const ringAlign = 256

// at is the i'th oldest region in live, from 0.
func (r *ring) at(i int) *region { return &r.live[(r.first+i)%len(r.live)] }

// place finds room for the next unit. It reports false where a unit that is not yet
// released is in the way: then nothing has changed, and it must be tried again. The
// room may be overwritten once the compute timeline has reached after.
func (r *ring) place(bytes int64) (to region, after uint64, ok bool) {
	to = region{block: r.block, off: r.off, bytes: (bytes + ringAlign - 1) / ringAlign * ringAlign}
	for range len(r.blocks) + 1 { // once round to the same block's beginning
		if to.off+to.bytes <= r.blocks[to.block] {
			return r.take(to)
		}
		to.block, to.off = (to.block+1)%len(r.blocks), 0
	}
	return to, 0, false // it fits no block: the plan sees to it that this can't be
}

// take makes room for the region to: it forgets the regions in the way, and all older ones. It reports false while one of them is not released.
func (r *ring) take(to region) (region, uint64, bool) {
	drop := 0
	for i := range r.count {
		if o := r.at(i); o.block == to.block && o.off < to.off+to.bytes && to.off < o.off+o.bytes {
			drop = i + 1
		}
	}
	if drop > r.freed {
		return to, 0, false
	}
	for range drop {
		r.value = max(r.value, r.at(0).value)
		r.first = (r.first + 1) % len(r.live)
		r.count--
		r.freed--
	}
	if r.count == len(r.live) {
		r.grow()
	}
	r.count++
	*r.at(r.count - 1) = to
	r.block, r.off = to.block, to.off+to.bytes
	return to, r.value, true
}

// grow makes room in live for more regions; the memory of the ring stays the same.
func (r *ring) grow() {
	bigger := make([]region, max(8, 2*len(r.live)))
	for i := range r.count {
		bigger[i] = *r.at(i)
	}
	r.live, r.first = bigger, 0
}

// release says that the oldest unit not yet released is free once the compute timeline
// reaches value, which never falls from one call to the next. It reports false if all are released.
func (r *ring) release(value uint64) bool {
	if r.freed == r.count {
		return false
	}
	r.at(r.freed).value = value
	r.freed++
	return true
}
