package engine

import (
	"time"

	"leat/internal/weights"
)

// Stats is how a model is doing just now, and what it has done since [Load].
type Stats struct {
	Pace    PaceReport // temperature, power, rests
	Shrinks []Shrink   // times that VRAM was given back to other programs, oldest first; [Model.Plan] has the budget now

	Steps       int64 // forward passes
	Rows        int64 // tokens that went through them
	Submissions int64 // of work to the device, uploads not counted

	UploadedBytes int64 // weights, over the link
	DiskBytes     int64 // weights, read from disk; token embeddings, of which a step takes some rows, aside
	WeightBytes   int64 // weights that kernels read in VRAM, each unit once a step

	// How long each was busy: the disk while a read was outstanding, the link while a
	// copy was under way, the device while a submission ran. Link is what the host saw, waits
	// included; with [Tuning].Trace it is by the device's clock, which costs some
	// percent of the link. Compute is an estimate where the device has no timestamps.
	Disk, Link, Compute time.Duration

	Stalled time.Duration // the device stood idle within steps because weights had not come
	Record  time.Duration // the host recorded and submitted

	Experts ExpertStats // of experts that share slots of VRAM, where not all fit

	VRAMBytes, VRAMPeak int64 // in use by the model's own accounting, and the most that was
	HostBytes           int64 // pinned RAM in use

	DirectReads        bool // the disk is read past the page cache
	ValidationMessages int  // warnings and errors of Vulkan's validation layers
}

// ExpertStats is what slots of experts were asked for. A step asks once for each expert that a layer needs.
type ExpertStats struct {
	Hits                   int64 // experts that a layer needed and VRAM had
	HostMisses, DiskMisses int64 // experts that a layer needed and VRAM did not have, by where they came from
	Evictions              int64 // experts that lost their slot to another
	VRAMBytes              int64 // of the hits
	UploadedBytes          int64 // to the slots
	DiskBytes              int64 // of UploadedBytes, read from disk

	Layers, Needed int64         // layers that all rows of a step passed through, once each; the different experts that these layers needed
	Ahead          int64         // of Layers, those of steps of one token that found all their experts without asking the host
	Stalled        time.Duration // of [Stats].Stalled: the device stood idle within steps because experts had not come
}

// Less is what happened since b.
func (s ExpertStats) Less(b ExpertStats) ExpertStats {
	return ExpertStats(weights.ExpertStats(s).Less(weights.ExpertStats(b)))
}

// Asked is how often an expert was needed.
func (s ExpertStats) Asked() int64 { return weights.ExpertStats(s).Asked() }

// HitRate is the part of what was asked for that was in VRAM.
func (s ExpertStats) HitRate() float64 { return weights.ExpertStats(s).HitRate() }

// Distinct is how many different experts a layer of a step needed, on average.
func (s ExpertStats) Distinct() float64 { return weights.ExpertStats(s).Distinct() }

// Stats may be called by any goroutine, also while a step runs. It does not wait for that,
// so what the device does just now is not in it yet. Of a closed model they are what they were in the end.
func (m *Model) Stats() Stats {
	m.open.RLock()
	defer m.open.RUnlock()
	if m.closed {
		return m.left
	}
	return m.stats()
}

func (m *Model) stats() Stats {
	r := &m.runner
	c := r.stepper.Counters()
	s := Stats{
		Pace: paceReportOf(r.pacer.Report()), Shrinks: r.shrinker.shrinks(), Steps: c.Steps, Rows: c.Rows, Submissions: c.Submissions, WeightBytes: c.WeightBytes,
		Compute: c.Compute, Stalled: c.Stalled, Record: c.Record,
		VRAMBytes: r.vram.Used(), VRAMPeak: r.vram.Peak(), HostBytes: r.host.Used(),
		DirectReads: r.weights.Direct(), ValidationMessages: m.prepared.device.inst.Messages(),
	}
	s.UploadedBytes, s.DiskBytes = r.weights.Traffic()
	s.Experts = ExpertStats(r.weights.Experts().Stats())
	s.Disk, s.Link = r.weights.Busy()
	return s
}
