package predict

import (
	"time"

	"leat/gguf"
)

// Speeds are what a machine reaches, not what its data sheet says: package calibrate
// measures them, [FromDataSheet] estimates them. A rate of 0 means "takes no time".
type Speeds struct {
	DiskBytesPerSec   float64 // the model's file, past the page cache, as steps read it: again and again
	LinkBytesPerSec   float64 // uploads from pinned memory, the kernels idle
	DeviceBytesPerSec float64 // weights in VRAM, as a product with one vector reads them
	FlopsPerSec       float64 // products with many vectors
	AttnFlopsPerSec   float64 // attention of one row; 0: FlopsPerSec

	ExpertFlopsPerSec float64 // products with experts, of which each has a part of a step's vectors; 0: FlopsPerSec
	HalvesBytesPerSec float64 // weights that are brought into halves first, once for all vectors; 0: takes no time

	// Weights of some types are slower to decode than to read. A type that is absent
	// goes at the rates above.
	TypeBytesPerSec map[gguf.Type]float64
	TypeFlopsPerSec map[gguf.Type]float64
	TypeRowSeconds  map[gguf.Type]float64 // what each row of a matrix costs beside its bytes: short rows are slower

	// DiskFirstBytesPerSec is what the disk gives for the first time, as loading reads; 0: as steps.
	DiskFirstBytesPerSec float64

	// LinkBusyBytesPerSec is what uploads keep while kernels read VRAM at full speed; 0: all.
	LinkBusyBytesPerSec float64
	OneQueue            bool // uploads and kernels take turns

	// Bursts are uploads of experts: they begin when a layer has chosen, with nothing before them, and kernels wait for them. By bytes,
	// ascending; none: they are guessed from the link's rate.
	Bursts []Burst

	// IdleClock says that the device lowers its clock when it is nearly idle.
	IdleClock bool

	// Rehearsal takes the place of all rates of kernels; nil: there are only rates.
	Rehearsal *Rehearsal

	DispatchTime        time.Duration // a kernel that waits for the one before it, however small
	RouteTime           time.Duration // a layer's choice of experts, beside such waits
	HostOverheadPerStep time.Duration // from the end of a step to the device's first work on the next
}

// Burst is an upload that nothing came before: from handing it in until a kernel runs that waits for it.
type Burst struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}
