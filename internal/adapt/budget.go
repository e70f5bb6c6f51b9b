package adapt

import "time"

const (
	mostReserve = 64 << 20 // free bytes below which others are starved, or we are soon
	partReserve = 64       // of our own bytes, at most, for that
	comfort     = 4        // times the reserve are left free after a shrink
	pollEvery   = time.Second
)

// Budget watches what the driver says is free.
type Budget struct {
	reserve int64
	settled bool
	next    time.Duration
}

// NewBudget watches for a model that takes bytes of VRAM.
func NewBudget(bytes int64) *Budget {
	return &Budget{reserve: min(mostReserve, bytes/partReserve)}
}

// Due reports whether to ask the driver again, at now on any clock.
func (b *Budget) Due(now time.Duration) bool {
	if now < b.next {
		return false
	}
	b.next = now + pollEvery
	return true
}

// Give is how many bytes to give back where free, below zero when we use more than our
// budget, is what is left for us. A budget that leaves little free from the beginning
// was chosen so: only less than half of that is a sign of others.
func (b *Budget) Give(free int64) int64 {
	if !b.settled {
		b.settled = true
		b.reserve = min(b.reserve, max(0, free/2))
	}
	if free >= b.reserve {
		return 0
	}
	return comfort*b.reserve - free
}
