package predict

// Lane names a part of a machine that works at the same time as the others: disk, link, or device.
type Lane string

// The lanes work at the same time, so the busiest one decides how long a step takes.
const (
	LaneDisk    Lane = "disk"    // reads of the model's files
	LaneLink    Lane = "link"    // uploads from host memory to VRAM
	LaneCompute Lane = "compute" // kernels of the device
)

// Work is how long each lane is busy with a unit, a whole step or several steps. For one unit of experts in slots it also says how uploads of missing experts
// delay the unit.
type Work struct {
	DiskSeconds    float64 `json:"disk_seconds"`    // time of reads from disk
	LinkSeconds    float64 `json:"link_seconds"`    // time of uploads
	ComputeSeconds float64 `json:"compute_seconds"` // time of kernels, and the time that the device waits for the host
	OneQueue       bool    `json:"one_queue"`       // uploads and kernels share one queue: link and device take turns

	missSeconds     float64 // in steps of few rows: the wait for missing experts from RAM, in addition to asking the host
	diskMissSeconds float64 // in steps of few rows: the wait for the upload of missing experts that were read from disk
	waveShare       float64 // in steps of many rows: the share of the missing experts in one wave; 0: all of them
	prefetchShare   float64 // in steps of many rows: the share of the missing experts that is uploaded before the layer's router has chosen
}

// Bottleneck is the busiest lane. If link and device take turns (OneQueue), the sum of their times is compared with the disk's; if the disk is not the
// busiest, Bottleneck is the one of the two with the longer time.
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

// Bound is the least time that the work can take: the time of the busiest lane, if it never waits. Link and device that take turns count as
// one lane.
func (w Work) Bound() float64 {
	if w.OneQueue {
		return max(w.DiskSeconds, w.LinkSeconds+w.ComputeSeconds)
	}
	return max(w.DiskSeconds, w.LinkSeconds, w.ComputeSeconds)
}

// plus is the work of w and o together: seconds are added lane by lane, and link and device take turns if they do in w or in o. The fields about missing
// experts, which are for one unit only, stay zero.
func (w Work) plus(o Work) Work {
	return Work{
		DiskSeconds: w.DiskSeconds + o.DiskSeconds, LinkSeconds: w.LinkSeconds + o.LinkSeconds, ComputeSeconds: w.ComputeSeconds + o.ComputeSeconds,
		OneQueue: w.OneQueue || o.OneQueue,
	}
}
