package predict

import (
	"time"

	"leat/gguf"
)

// Speeds are what a machine reaches, not what its data sheet says: package calibrate
// measures them, [FromDataSheet] estimates them. A rate of 0 means "takes no time".
type Speeds struct {
	Disk    DiskSpeeds
	Link    LinkSpeeds
	Kernels KernelSpeeds

	// Rehearsal replaces the speeds of kernels by measured steps of the model; nil: nothing was rehearsed.
	Rehearsal *Rehearsal

	IdleClock           bool          // the device lowers its clock when it is nearly idle
	HostOverheadPerStep time.Duration // from the end of a step to the device's first work on the next
}

// DiskSpeeds are rates of reading the model's file past the page cache.
type DiskSpeeds struct {
	BytesPerSec      float64 // reading the same bytes again and again, as steps do
	FirstBytesPerSec float64 // reading bytes for the first time, as loading does; 0: BytesPerSec
}

// LinkSpeeds are rates of uploading from pinned memory to VRAM.
type LinkSpeeds struct {
	BytesPerSec     float64 // while no kernel runs
	BusyBytesPerSec float64 // while kernels read VRAM at full speed; 0: BytesPerSec
	OneQueue        bool    // uploads and kernels take turns
	Bursts          []Burst // by bytes, ascending; fewer than two: a burst's time is guessed from BytesPerSec
}

// Burst is an upload that begins on an idle link and that kernels wait for: the missing experts of one layer.
type Burst struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"` // from handing the upload in until the waiting kernel runs
}

// KernelSpeeds are rates of the device's kernels. Weights of some types are slower to decode than to read: the maps hold
// the rates of such types.
type KernelSpeeds struct {
	BytesPerSec       float64 // weights in VRAM, as a product with one vector reads them
	FlopsPerSec       float64 // products with many vectors
	AttnFlopsPerSec   float64 // attention of one row; 0: FlopsPerSec
	ExpertFlopsPerSec float64 // products with experts, each of which multiplies some of a step's vectors; 0: FlopsPerSec
	HalvesBytesPerSec float64 // converting weights to half-precision floats once, before a product with many vectors; 0: takes no time

	TypeBytesPerSec map[gguf.Type]float64 // instead of BytesPerSec
	TypeFlopsPerSec map[gguf.Type]float64 // instead of FlopsPerSec
	TypeRowSeconds  map[gguf.Type]float64 // what each row of a matrix costs in addition to its bytes: short rows are slower

	DispatchTime time.Duration // a kernel that waits for the one before it, however small
	RouteTime    time.Duration // choosing a layer's experts, without such waits
}

// burst is the seconds of an upload that begins on an idle link.
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

// underLoad is the factor by which a step's uploads take longer because kernels read VRAM meanwhile. The step uploads for link
// seconds and computes for compute seconds.
func (l *LinkSpeeds) underLoad(link, compute float64) float64 {
	idle, busy := l.BytesPerSec, l.BusyBytesPerSec
	if link <= 0 || busy <= 0 || busy >= idle || l.OneQueue {
		return 1
	}
	// bytes = busy × compute + idle × (time − compute), or busy × time.
	return min(1+(1-busy/idle)*compute/link, idle/busy)
}

// product is the seconds of a matrix times n vectors: it is read once, and multiplied at the rate flopsPerSec unless its type has its own.
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

// attention is the seconds of operations of attention that several rows share. One row leaves most of a large device idle,
// and every further one costs nothing until the device is full.
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
