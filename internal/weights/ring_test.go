package weights

import (
	"math/rand/v2"
	"testing"
)

// simulation is a ring with a step that reads it: what a device would do, without one.
type simulation struct {
	t        *testing.T
	r        ring
	placed   []region // not yet overwritten, oldest first; value 0: not released
	released int      // of them
	clock    uint64   // compute value given last
}

// place checks that what the ring gives away is free, or will be at the value it says.
func (s *simulation) place(bytes int64) bool {
	b := s.r
	to, after, ok := s.r.place(bytes)
	if a := &s.r; !ok && (a.block != b.block || a.off != b.off || a.first != b.first || a.count != b.count || a.freed != b.freed || a.value != b.value) {
		s.t.Fatalf("a refusal changed the ring from %+v to %+v", b, s.r)
	}
	if !ok {
		return false
	}
	if to.off < 0 || to.off%ringAlign != 0 || to.bytes < bytes || to.off+to.bytes > s.r.blocks[to.block] {
		s.t.Fatalf("%d bytes placed at %+v of blocks %v", bytes, to, s.r.blocks)
	}
	var left []region
	for i, o := range s.placed {
		if o.block != to.block || o.off >= to.off+to.bytes || to.off >= o.off+o.bytes {
			left = append(left, o)
			continue
		}
		if i >= s.released {
			s.t.Fatalf("%+v placed over %+v, which is not released", to, o)
		}
		if o.value > after {
			s.t.Fatalf("%+v may be overwritten after %d, but %+v is read until %d", to, after, o, o.value)
		}
	}
	s.released -= len(s.placed) - len(left)
	s.placed = append(left, to)
	return true
}

func (s *simulation) release() bool {
	if s.released == len(s.placed) {
		if s.r.release(s.clock) {
			s.t.Fatal("a unit was released twice")
		}
		return false
	}
	s.clock++
	s.placed[s.released].value = s.clock
	s.released++
	if !s.r.release(s.clock) {
		s.t.Fatal("a unit that is there could not be released")
	}
	return true
}

// TestRingNeverOverlaps: whatever the units' sizes and the blocks, in whatever order
// the stream and the step take turns, nothing is placed over what is still read, and
// the stream never stands still for good.
func TestRingNeverOverlaps(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		sizes := make([]int64, rng.IntN(12)+1)
		largest := int64(0)
		for i := range sizes {
			sizes[i] = rng.Int64N(10_000) + 1
			if rng.IntN(3) == 0 {
				sizes[i] = rng.Int64N(300) + 1
			}
			largest = max(largest, (sizes[i]+ringAlign-1)/ringAlign*ringAlign)
		}
		s := &simulation{t: t}
		for range rng.IntN(3) + 1 {
			s.r.blocks = append(s.r.blocks, largest+rng.Int64N(2*largest))
		}
		eager := rng.IntN(10) // how often the step takes a turn
		for k, stuck := 0, 0; k < 2000; {
			if rng.IntN(10) >= eager || s.released == len(s.placed) {
				if s.place(sizes[k%len(sizes)]) {
					k++
					stuck = 0
					continue
				}
			}
			if s.release() {
				stuck = 0
				continue
			}
			if stuck++; stuck > 100 {
				t.Fatalf("seed %d: unit %d of %d bytes has no place in %v, nothing left to release", seed, k, sizes[k%len(sizes)], s.r.blocks)
			}
		}
	}
}

// TestRingHoldsTwo: with room for two of the largest, the next unit of equal ones
// always has its place while the last is read.
func TestRingHoldsTwo(t *testing.T) {
	for _, blocks := range [][]int64{{2048}, {1024, 1024}, {2048 + 256}} {
		s := &simulation{t: t, r: ring{blocks: blocks}}
		for k := range 50 {
			if !s.place(1024) {
				t.Fatalf("blocks %v: unit %d has to wait", blocks, k)
			}
			if k > 0 && !s.release() {
				t.Fatal("nothing to release")
			}
		}
	}
}

func TestRingTooSmall(t *testing.T) {
	r := ring{blocks: []int64{512, 512}}
	if to, _, ok := r.place(513); ok {
		t.Errorf("513 bytes were placed at %+v", to)
	}
}
