package plan

import (
	"time"

	"leat/engine/plan/gpus"
)

// What our kernels and transfers make of a data sheet's peaks, fitted to what one H100 and
// its link reached (docs/benchmarks.md, design §10). A machine that was calibrated needs none of it.
const (
	linkShare     = 0.81  // of PCIe's peak: 51.0 GB/s of 63
	linkUnderLoad = 0.97  // of that, while kernels read at full speed
	memoryShare   = 0.90  // of the memory's, where nothing else holds the kernels up
	bytesPerFlop  = 0.071 // weights' bytes that the shader units decode a peak FP32 operation: with that, large products read at 1.85 TB/s
	multiplyShare = 0.15  // of FP32 peak, in products with many vectors; assumed
	matrixShare   = 0.2   // of the matrix units' peak, all of a long prompt's work counted
	copyShare     = 0.35  // of the memory's peak, where an upload is a copy within it
	attnFlops     = 250e9 // one row, 32 heads, some hundred positions; longer contexts were not measured, and should be quicker
	attnFP32      = 5e12  // a device with less has too few units for all heads at once

	dispatchTime = 7 * time.Microsecond
	hostOverhead = 200 * time.Microsecond
)

// Reached estimates what leat reaches on a GPU from its data sheet, with a disk that reads
// diskBytesPerSec. It is a guess from one machine: calibrate where you can.
func Reached(g *gpus.GPU, diskBytesPerSec float64) Speeds {
	memory := memoryShare * g.MemBytesPerSec
	decode := bytesPerFlop * g.FP32
	s := Speeds{
		DiskBytesPerSec:     diskBytesPerSec,
		LinkBytesPerSec:     linkShare * g.PCIeBytesPerSec(),
		DeviceBytesPerSec:   1 / (1/memory + 1/decode), // a kernel does both, one after the other
		FlopsPerSec:         multiplyShare * g.FP32,
		AttnFlopsPerSec:     attnFlops * min(1, g.FP32/attnFP32),
		DispatchTime:        dispatchTime,
		HostOverheadPerStep: hostOverhead,
	}
	if g.Matrices() {
		s.FlopsPerSec = max(s.FlopsPerSec, matrixShare*g.BF16)
	}
	if g.UMA {
		s.LinkBytesPerSec = copyShare * g.MemBytesPerSec
	}
	s.LinkBusyBytesPerSec = linkUnderLoad * s.LinkBytesPerSec
	return s
}
