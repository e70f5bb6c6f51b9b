package predict

import (
	"time"

	"leat/gguf"
)

// Speeds are the rates and times that leat reaches on a machine, not those of its data sheet: package calibrate
// measures them, [FromDataSheet] estimates them. A rate of 0 means "takes no time",
// unless its comment names another.
type Speeds struct {
	Disk    DiskSpeeds   // rates of reads from disk
	Link    LinkSpeeds   // rates of uploads
	Kernels KernelSpeeds // rates and times of kernels

	// Rehearsal is measured steps of the model, whose times replace those computed from Kernels, except for dispatches that are skipped; nil: nothing was
	// rehearsed.
	Rehearsal *Rehearsal

	IdleClock           bool          // the device lowers its clock when it is nearly idle
	HostOverheadPerStep time.Duration // time from the end of a step to the device's first work of the next
}

// DiskSpeeds are rates of reading the model's file past the page cache.
type DiskSpeeds struct {
	BytesPerSec      float64 // rate of reading bytes that were read before, as each step reads the same units again
	FirstBytesPerSec float64 // rate of reading bytes for the first time, as loading does: some drives are slower then; 0: BytesPerSec
}

// LinkSpeeds are rates of uploading from pinned memory to VRAM.
type LinkSpeeds struct {
	BytesPerSec     float64 // rate while no kernel runs
	BusyBytesPerSec float64 // rate while kernels read VRAM at full speed; 0: BytesPerSec
	OneQueue        bool    // uploads and kernels share one queue: they take turns
	Bursts          []Burst // measured bursts, by ascending size; fewer than two: a burst's time is computed from BytesPerSec
}

// Burst is a measured upload that began on an idle link and that a kernel waited for, like the missing experts of one layer.
type Burst struct {
	Bytes   int64   `json:"bytes"`   // bytes uploaded
	Seconds float64 `json:"seconds"` // time from submitting the upload until the waiting kernel runs
}

// KernelSpeeds are rates of the device's kernels. Weights of some types are slower to decode than to read: the maps hold
// the rates of these types.
type KernelSpeeds struct {
	BytesPerSec       float64 // rate at which a product with one vector reads weights in VRAM
	FlopsPerSec       float64 // rate of products with many vectors
	AttnFlopsPerSec   float64 // rate of attention of one row; 0: FlopsPerSec
	ExpertFlopsPerSec float64 // rate of products with experts, where each expert multiplies only some of a step's vectors; 0: FlopsPerSec
	HalvesBytesPerSec float64 // rate at which weights are converted to half-precision floats before a product with many vectors; 0: takes no time

	TypeBytesPerSec map[gguf.Type]float64 // by type of the weights: replaces BytesPerSec
	TypeFlopsPerSec map[gguf.Type]float64 // by type of the weights: replaces FlopsPerSec
	TypeRowSeconds  map[gguf.Type]float64 // by type of the weights: time for each row of a matrix in addition to that of its bytes: short rows are slower

	DispatchTime time.Duration // time of a kernel that waits for the kernel before it, however small
	RouteTime    time.Duration // time to choose a layer's experts, without waits for kernels
}

// burst is the time, in seconds, of an upload of bytes that begins on an idle link.
func (l *LinkSpeeds) burst(bytes float64) float64 {
	list, link := l.Bursts, over(bytes, l.BytesPerSec)
	if bytes <= 0 {
		return 0
	}
	if len(list) < 2 {
		return burstTrip + link/burstShare
	}
	i := 1
	for i < len(list)-1 && float64(list[i].Bytes) < bytes {
		i++
	}
	a, b := &list[i-1], &list[i]
	t := a.Seconds + (b.Seconds-a.Seconds)*(bytes-float64(a.Bytes))/float64(b.Bytes-a.Bytes)
	return max(t, a.Seconds*burstFloor, link)
}

// underLoad is the factor by which a step's uploads take longer because kernels read VRAM at the same time. link is the time of the uploads while no kernel
// runs, compute the time of the kernels, both in seconds.
func (l *LinkSpeeds) underLoad(link, compute float64) float64 {
	idle, busy := l.BytesPerSec, l.BusyBytesPerSec
	if link <= 0 || busy <= 0 || busy >= idle || l.OneQueue {
		return 1
	}
	// bytes = busy × compute + idle × (time − compute), or busy × time.
	return min(1+(1-busy/idle)*compute/link, idle/busy)
}

// product is the time of matrix x times n vectors. The matrix is read once. Rates for the type of its weights, if there are any, replace BytesPerSec and
// flopsPerSec.
func (k *KernelSpeeds) product(x matrix, n, flopsPerSec float64) float64 {
	read := k.BytesPerSec
	if r, ok := k.TypeBytesPerSec[x.typ]; ok {
		read = r
	}
	if r, ok := k.TypeFlopsPerSec[x.typ]; ok {
		flopsPerSec = r
	}
	t := 0.0
	if read > 0 {
		t = x.bytes/read + x.rows*k.TypeRowSeconds[x.typ]
	}
	if n > 1 && flopsPerSec > 0 {
		t = max(t, n*x.flops/flopsPerSec)
	}
	return t
}

// attention is the time of attention of the given rows, which takes flops operations. One row leaves most of a large device idle, and more rows take no
// longer until the device is full.
func (k *KernelSpeeds) attention(flops float64, rows int) float64 {
	rate := k.AttnFlopsPerSec
	if rate <= 0 {
		rate = k.FlopsPerSec
	} else if many := rate * float64(rows); k.FlopsPerSec > 0 {
		rate = min(many, max(rate, k.FlopsPerSec))
	} else {
		rate = many
	}
	return over(flops, rate)
}
