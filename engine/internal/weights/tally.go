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
	Early, Foreseen        int64 // experts that came before a layer asked for them; of these, that it then did: they count as hits
	UploadedBytes          int64 // to the slots
	DiskBytes              int64 // read from disk for that
}

// Less is what happened since b.
func (s ExpertStats) Less(b ExpertStats) ExpertStats {
	return ExpertStats{
		Hits: s.Hits - b.Hits, HostMisses: s.HostMisses - b.HostMisses, DiskMisses: s.DiskMisses - b.DiskMisses, Evictions: s.Evictions - b.Evictions,
		Early: s.Early - b.Early, Foreseen: s.Foreseen - b.Foreseen,
		UploadedBytes: s.UploadedBytes - b.UploadedBytes, DiskBytes: s.DiskBytes - b.DiskBytes,
	}
}

// Asked is how often an expert was needed.
func (s ExpertStats) Asked() int64 { return s.Hits + s.HostMisses + s.DiskMisses }

// HitRate is the part of what was asked for that was in VRAM.
func (s ExpertStats) HitRate() float64 { return float64(s.Hits) / float64(max(1, s.Asked())) }

type expertCounters struct {
	hits, hostMisses, diskMisses, evictions, early, foreseen, bytes, diskBytes atomic.Int64
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
		Early: c.early.Load(), Foreseen: c.foreseen.Load(),
		UploadedBytes: c.bytes.Load(), DiskBytes: c.diskBytes.Load(),
	}
}
