package predict

import (
	"time"

	"leat/internal/predict/gpus"
)

// shares are what our kernels and transfers make of a data sheet's peaks. A machine that was calibrated needs none of it.
type shares struct {
	link      float64 // of PCIe's peak
	linkBusy  float64 // of that, while kernels read at full speed
	copied    float64 // of the memory's peak, where an upload is a copy within it
	memory    float64 // of the memory's, where nothing else holds the kernels up
	decode    float64 // weights' bytes that the shader units decode a peak FP32 operation, by rows of one
	attention float64 // of FP32's peak, one row
	fp32      float64 // of FP32's peak, in products with many vectors where there are no matrix units: as an H200 reached without its own
	matrix    float64 // of the matrix units' peak, in products with many vectors
	experts   float64 // of the same, in those with experts, of which each has some vectors
	halves    float64 // weights' bytes that are brought into halves for those, a byte of the memory's peak

	dispatch time.Duration // a kernel that waits
	route    time.Duration // a layer's choice of experts, beside its waits
	host     time.Duration // between two steps
}

// reached is fitted to what one H100 reached (driver 580.159.04, leat bench of 2026-11-28), by the rows of datasheet_test.go,
// which hold it to that. When kernels have changed: change the rows, and take over what
//
//	go test ./internal/predict -run TestReached -v -args -fit
//
// prints. What it does not print was not measured there, or is what docs/benchmarks.md says of the link.
var reached = shares{
	link: 0.81, linkBusy: 0.97, copied: 0.35, memory: 0.90, decode: 0.254, attention: 0.12,
	fp32: 0.22, matrix: 0.24, experts: 0.0512, halves: 2.67,
	dispatch: 3900 * time.Nanosecond, route: 16400 * time.Nanosecond, host: 150 * time.Microsecond,
}

// FromDataSheet estimates what leat reaches on a GPU from its data sheet, with a disk that reads
// diskBytesPerSec. It is a guess from one machine: calibrate where you can.
func FromDataSheet(g *gpus.GPU, diskBytesPerSec float64) Speeds {
	r := &reached
	s := Speeds{
		Disk: DiskSpeeds{BytesPerSec: diskBytesPerSec},
		Link: LinkSpeeds{BytesPerSec: r.link * g.PCIeBytesPerSec()},
		Kernels: KernelSpeeds{
			BytesPerSec:     1 / (1/(r.memory*g.MemBytesPerSec) + 1/(r.decode*g.FP32)), // a kernel does both, one after the other
			FlopsPerSec:     r.fp32 * g.FP32,
			AttnFlopsPerSec: r.attention * g.FP32,
			DispatchTime:    r.dispatch,
			RouteTime:       r.route,
		},
		IdleClock:           true,
		HostOverheadPerStep: r.host,
	}
	if g.Matrices() {
		s.Kernels.FlopsPerSec = max(s.Kernels.FlopsPerSec, r.matrix*g.BF16)
		s.Kernels.ExpertFlopsPerSec, s.Kernels.HalvesBytesPerSec = r.experts*g.BF16, r.halves*g.MemBytesPerSec
	}
	if g.UMA {
		s.Link.BytesPerSec = r.copied * g.MemBytesPerSec
	}
	s.Link.BusyBytesPerSec = r.linkBusy * s.Link.BytesPerSec
	return s
}
