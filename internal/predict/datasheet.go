package predict

import (
	"time"

	"leat/internal/predict/gpus"
)

// peakShares has the rates that leat's kernels and transfers reach, as shares of the peaks on a data sheet, and the times that no data sheet has. Calibrated
// machines don't need it.
type peakShares struct {
	link      float64 // rate of uploads: share of PCIe's peak
	linkBusy  float64 // rate of uploads while kernels read VRAM at full speed: share of the rate while no kernel runs
	copied    float64 // rate of uploads that are copies within shared memory: share of the memory's peak bandwidth
	memory    float64 // rate of kernels that only read: share of the memory's peak bandwidth
	decode    float64 // rate at which products with one vector decode weights: bytes for each FP32 operation at peak
	attention float64 // rate of attention of one row: share of FP32's peak
	fp32      float64 // rate of products with many vectors without matrix units: share of FP32's peak, measured on an H200 with its matrix units disabled
	matrix    float64 // rate of products with many vectors: share of the matrix units' peak
	experts   float64 // rate of products with experts, where each expert multiplies only some of the vectors: share of the matrix units' peak
	halves    float64 // rate at which weights are converted to half-precision floats, in bytes of weights: share of the memory's peak bandwidth

	dispatch time.Duration // time of a kernel that waits for the kernel before it, however small
	route    time.Duration // time to choose a layer's experts, without waits for kernels
	host     time.Duration // time from the end of a step to the device's first work of the next
}

// reached is fitted to measurements of one H100 (driver 580.159.04, leat bench of 2026-11-28), which are the rows of datasheet_test.go. The test there
// compares the two. When kernels have changed: change the rows, and copy the values that
//
//	go test ./internal/predict -run TestReached -v -args -fit
//
// prints. The values that it does not print come from other measurements; those of the link are in docs/benchmarks.md.
var reached = peakShares{
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
