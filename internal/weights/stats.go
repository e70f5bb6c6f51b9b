package weights

import (
	"sync/atomic"
	"time"

	"leat/internal/expertcache"
)

// ExpertStats counts the experts that layers needed, and where their bytes came from.
type ExpertStats struct {
	Hits                   int64 // experts that a layer needed and that were in VRAM
	HostMisses, DiskMisses int64 // experts that a layer needed and that came from host memory, or from disk
	Evictions              int64 // experts that lost their slot to another
	VRAMBytes              int64 // bytes of the hits
	UploadedBytes          int64 // bytes uploaded to slots
	DiskBytes              int64 // bytes of missing experts read from disk

	Layers, Needed int64         // runs of a layer with all rows of a step; different experts that these runs needed, summed up
	Ahead          int64         // the part of Layers, in steps of one token, that had all experts in VRAM and did not ask the host
	Stalled        time.Duration // time within steps that the device was idle because missing experts were not in VRAM yet; a part of a step's Stalled
}

// Less subtracts earlier statistics b from s. The result counts what happened between the two.
func (s ExpertStats) Less(b ExpertStats) ExpertStats {
	return ExpertStats{
		Hits: s.Hits - b.Hits, HostMisses: s.HostMisses - b.HostMisses, DiskMisses: s.DiskMisses - b.DiskMisses, Evictions: s.Evictions - b.Evictions,
		VRAMBytes: s.VRAMBytes - b.VRAMBytes, UploadedBytes: s.UploadedBytes - b.UploadedBytes, DiskBytes: s.DiskBytes - b.DiskBytes,
		Layers: s.Layers - b.Layers, Ahead: s.Ahead - b.Ahead, Needed: s.Needed - b.Needed, Stalled: s.Stalled - b.Stalled,
	}
}

// Asked is how often a layer needed an expert: hits and misses.
func (s ExpertStats) Asked() int64 { return s.Hits + s.HostMisses + s.DiskMisses }

// HitRate is the share of needed experts that were in VRAM.
func (s ExpertStats) HitRate() float64 { return float64(s.Hits) / float64(max(1, s.Asked())) }

// Distinct is how many different experts a layer of a step needed, on average.
func (s ExpertStats) Distinct() float64 { return float64(s.Needed) / float64(max(1, s.Layers)) }

// ExpertCounters are the counters from which [Experts.Stats] makes [ExpertStats]. The code that runs experts calls the exported methods.
type ExpertCounters struct {
	hits, hostMisses, diskMisses, evictions, vramBytes, diskBytes atomic.Int64 // see the fields of ExpertStats with these names
	layers, conditional, needed, stalled                          atomic.Int64 // conditional: ExpertStats.Ahead; stalled: in nanoseconds
}

// took adds the hits and evictions of a cache between two readings of its statistics.
func (c *ExpertCounters) took(now, before expertcache.Stats) {
	c.hits.Add(now.Hits - before.Hits)
	c.evictions.Add(now.Evictions - before.Evictions)
}

// CountLayer counts a run of a layer with all rows of a step, and the different experts that it needs.
func (c *ExpertCounters) CountLayer(experts int) {
	c.layers.Add(1)
	c.needed.Add(int64(experts))
}

// CountConditional counts a layer that ran conditionally, with all experts in VRAM, without asking the host: ExpertStats.Ahead.
func (c *ExpertCounters) CountConditional() { c.conditional.Add(1) }

// CountIdle counts time that the device was idle because missing experts were not in VRAM yet: ExpertStats.Stalled.
func (c *ExpertCounters) CountIdle(d time.Duration) { c.stalled.Add(int64(d)) }

// Stats reads the counters. Any goroutine may call it. For a nil Experts all are zero.
func (x *Experts) Stats() ExpertStats {
	if x == nil {
		return ExpertStats{}
	}
	c := &x.Counters
	return ExpertStats{
		Hits: c.hits.Load(), HostMisses: c.hostMisses.Load(), DiskMisses: c.diskMisses.Load(), Evictions: c.evictions.Load(),
		VRAMBytes: c.vramBytes.Load(), UploadedBytes: x.fetcher.uploaded.Load(), DiskBytes: c.diskBytes.Load(),
		Layers: c.layers.Load(), Ahead: c.conditional.Load(), Needed: c.needed.Load(), Stalled: time.Duration(c.stalled.Load()),
	}
}
