package predict

// Lane is a part of the machine that a step keeps busy.
type Lane string

// The lanes run at the same time, so the busiest of them decides.
const (
	LaneDisk    Lane = "disk"
	LaneLink    Lane = "link"
	LaneCompute Lane = "compute"
)

// Work is how long each lane is busy, all transfers and all kernels of something.
type Work struct {
	DiskSeconds    float64 `json:"disk_seconds"`
	LinkSeconds    float64 `json:"link_seconds"`
	ComputeSeconds float64 `json:"compute_seconds"` // the host's part included: the device waits for it
	OneQueue       bool    `json:"one_queue"`       // link and compute take turns

	missSeconds     float64 // steps of few rows: the wait for missing experts, beside the host
	diskMissSeconds float64 // of these, the uploads that begin when all has been read from disk
	waveShare       float64 // the part of the experts of a step of many rows that comes at a time; 0: all that is missing comes at once
	earlyShare      float64 // the part that may come before their layer's router has chosen
}

// Bottleneck is the busiest lane.
func (w Work) Bottleneck() Lane {
	device := max(w.LinkSeconds, w.ComputeSeconds)
	if w.OneQueue {
		device = w.LinkSeconds + w.ComputeSeconds
	}
	switch {
	case w.DiskSeconds > 0 && w.DiskSeconds >= device:
		return LaneDisk
	case w.LinkSeconds > w.ComputeSeconds:
		return LaneLink
	}
	return LaneCompute
}

// Bound is the least time the work can take: the busiest lane never waits.
func (w Work) Bound() float64 {
	if w.OneQueue {
		return max(w.DiskSeconds, w.LinkSeconds+w.ComputeSeconds)
	}
	return max(w.DiskSeconds, w.LinkSeconds, w.ComputeSeconds)
}

func (w Work) plus(o Work) Work {
	return Work{
		DiskSeconds: w.DiskSeconds + o.DiskSeconds, LinkSeconds: w.LinkSeconds + o.LinkSeconds, ComputeSeconds: w.ComputeSeconds + o.ComputeSeconds,
		OneQueue: w.OneQueue || o.OneQueue,
	}
}
