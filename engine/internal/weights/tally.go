package weights

import (
	"sync/atomic"

	"leat/engine/expert"
)

// ExpertStats is what the slots of experts were asked for, and what came of it.
type ExpertStats struct {
	Hits                   int64 // experts that a layer needed and VRAM had
	HostMisses, DiskMisses int64 // and had not, by where they came from
	Evictions              int64 // experts that lost their slot to another
	UploadedBytes          int64 // to the slots
	DiskBytes              int64 // read from disk for that
}

type expertCounters struct {
	hits, hostMisses, diskMisses, evictions, bytes, diskBytes atomic.Int64
}

func (c *expertCounters) took(now, before expert.Stats) {
	c.hits.Add(now.Hits - before.Hits)
	c.evictions.Add(now.Evictions - before.Evictions)
}

// Stats may be called by any goroutine; of none at all they are zero.
func (x *Experts) Stats() ExpertStats {
	if x == nil {
		return ExpertStats{}
	}
	c := &x.count
	return ExpertStats{
		Hits: c.hits.Load(), HostMisses: c.hostMisses.Load(), DiskMisses: c.diskMisses.Load(), Evictions: c.evictions.Load(),
		UploadedBytes: c.bytes.Load(), DiskBytes: c.diskBytes.Load(),
	}
}
