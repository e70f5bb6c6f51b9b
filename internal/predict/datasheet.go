package predict

import (
	"time"

	"leat/internal/predict/gpus"
)

// peakShares is what share of the peaks on a data sheet leat's kernels and transfers reach, and the times that no data sheet has. Calibrated machines don't
// need it.
type peakShares struct {
	link      float64 // uploads, of PCIe's peak
	linkBusy  float64 // uploads while kernels read VRAM at full speed, of the rate of uploads alone
	copied    float64 // uploads that are copies within shared memory, of the memory's peak
	memory    float64 // kernels that only read, of the memory's peak bandwidth
	decode    float64 // bytes of weights that products with one vector decode, for each FP32 operation at peak
	attention float64 // attention of one row, of FP32's peak
	fp32      float64 // products with many vectors, of FP32's peak, on devices without matrix units: as reached by an H200 with its matrix units disabled
	matrix    float64 // products with many vectors, of the matrix units' peak
	experts   float64 // products with experts, each of which multiplies some of the vectors, of the matrix units' peak
	halves    float64 // bytes of weights that are converted to half-precision floats, of the memory's peak bandwidth

	dispatch time.Duration // a kernel that waits for the kernel before it
	route    time.Duration // choosing a layer's experts, without waits for kernels
	host     time.Duration // between two steps
}

// reached is fitted to what one H100 reached (driver 580.159.04, leat bench of 2026-11-28), by the rows of datasheet_test.go,
// which hold it to that. When kernels have changed: change the rows, and take over what
//
//	go test ./internal/predict -run TestReached -v -args -fit
//
// prints. What it does not print was not measured there, or is what docs/benchmarks.md says of the link.
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
