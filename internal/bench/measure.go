package bench

import (
	"runtime"
	"time"

	"leat/engine"
	"leat/internal/predict"
)

// sample is the counters at one moment.
type sample struct {
	at    time.Time
	stats engine.Stats
	cpu   time.Duration
}

func take(m *engine.Model) sample { return sample{time.Now(), m.Stats(), cpuTime()} }

// usage is what happened between samples, several times over.
type usage struct {
	wall, cpu, disk, link, compute, stalled, record time.Duration

	uploaded, fromDisk, weights, steps, rows int64
	rested                                   float64 // seconds

	experts engine.ExpertStats
}

func (u *usage) add(a, b sample) {
	wall := b.at.Sub(a.at)
	u.wall += wall
	u.cpu += b.cpu - a.cpu
	u.disk += b.stats.Disk - a.stats.Disk
	u.link += b.stats.Link - a.stats.Link
	u.compute += b.stats.Compute - a.stats.Compute
	u.stalled += b.stats.Stalled - a.stats.Stalled
	u.record += b.stats.Record - a.stats.Record
	u.uploaded += b.stats.UploadedBytes - a.stats.UploadedBytes
	u.fromDisk += b.stats.DiskBytes - a.stats.DiskBytes
	u.weights += b.stats.WeightBytes - a.stats.WeightBytes
	u.steps += b.stats.Steps - a.stats.Steps
	u.rows += b.stats.Rows - a.stats.Rows
	x := b.stats.Experts.Less(a.stats.Experts)
	u.experts = x.Less(engine.ExpertStats{}.Less(u.experts)) // the sum
	u.rested += b.stats.Pace.RestShare * wall.Seconds()
}

// Ceilings are what disk, link and VRAM do by themselves, in bytes a second; 0: not known.
type Ceilings struct {
	Disk      float64 `json:"disk_bytes_per_second"`                 // what was read a moment before, as each token does
	DiskFirst float64 `json:"disk_first_bytes_per_second,omitempty"` // what was not, as loading does
	Link      float64 `json:"link_bytes_per_second"`
	VRAM      float64 `json:"vram_bytes_per_second"` // weights of this model's types, times one vector
}

// fill writes what a row took.
func (u *usage) fill(r *Row, c Ceilings) {
	wall := u.wall.Seconds()
	if wall <= 0 {
		return
	}
	share := func(d time.Duration) float64 { return min(1, d.Seconds()/wall) }
	r.Disk = lane(u.fromDisk, wall, c.Disk, share(u.disk))
	r.Link = lane(u.uploaded, wall, c.Link, share(u.link))
	r.VRAM = lane(u.weights, u.compute.Seconds(), c.VRAM, share(u.compute))
	work := predict.Work{DiskSeconds: u.disk.Seconds(), LinkSeconds: u.link.Seconds(), ComputeSeconds: u.compute.Seconds()}
	if work.Bound() > 0 {
		r.Bottleneck = work.Bottleneck()
	}
	if share, ok := overlap(wall, work.DiskSeconds, work.LinkSeconds, work.ComputeSeconds); ok {
		r.Overlap = &share
	}
	r.Experts = expertsOf(u.experts, u.steps, u.rows)
	r.Stalled, r.Record = share(u.stalled), share(u.record)
	r.CPUOfCore = u.cpu.Seconds() / wall
	r.CPUOfAll = r.CPUOfCore / float64(runtime.NumCPU())
	r.RestShare = u.rested / wall
}

func lane(bytes int64, seconds, ceiling, busy float64) Lane {
	l := Lane{Bytes: bytes, Ceiling: ceiling, Busy: busy}
	if seconds > 0 {
		l.BytesPerSec = float64(bytes) / seconds
	}
	if ceiling > 0 {
		l.Share = l.BytesPerSec / ceiling
	}
	return l
}

// telling is how much the other lanes must work, of what the busiest does, for their overlap
// to be known: below, pauses that have nothing to do with it weigh more.
const telling = 0.1

// overlap is the part that ran side by side of what could: 0 where the lanes worked one
// after the other, 1 where all were hidden behind the busiest one.
func overlap(wall float64, busy ...float64) (share float64, ok bool) {
	sum, most := 0.0, 0.0
	for _, b := range busy {
		sum, most = sum+b, max(most, b)
	}
	if sum-most <= telling*most {
		return 0, false
	}
	return max(0, min(1, (sum-wall)/(sum-most))), true
}
