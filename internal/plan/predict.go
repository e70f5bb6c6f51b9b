package plan

import (
	"time"

	"leat/gguf"
	"leat/internal/arch"
)

// Speeds are what a machine reaches, not what its data sheet says: package calibrate
// measures them, [Reached] estimates them. A rate of 0 means "takes no time".
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

	// Rests says that the device lowers its clock where it has next to nothing to do.
	Rests bool

	// Rehearsed takes the place of all rates of kernels; nil: there are only rates.
	Rehearsed *Rehearsed

	DispatchTime        time.Duration // a kernel that waits for the one before it, however small
	RouteTime           time.Duration // a layer's choice of experts, beside such waits
	HostOverheadPerStep time.Duration // from the end of a step to the device's first work on the next
}

// Burst is an upload that nothing came before: from handing it in until a kernel runs that waits for it.
type Burst struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

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

	behind float64 // steps of few rows: what is waited for missing experts, beside the host
	late   float64 // of these, the uploads that begin when all has come from disk
	wave   float64 // the part of experts, which come in waves, that comes at a time; 0: all that is missing comes at once
	early  float64 // the part that may come before their layer has chosen
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

// Prediction is what a plan will reach on a machine.
type Prediction struct {
	Context int `json:"context"` // tokens in the session while decoding
	Prompt  int `json:"prompt_tokens"`

	Decode           Work    `json:"decode"` // of one token
	DecodeBottleneck Lane    `json:"decode_bottleneck"`
	DecodeSeconds    float64 `json:"decode_seconds"` // a token, with this plan's ring and staging
	DecodePerSec     float64 `json:"decode_tokens_per_second"`
	BoundPerSec      float64 `json:"bound_tokens_per_second"`     // 1 / max(Σ disk, Σ link, Σ compute): a ring without end
	LockStepPerSec   float64 `json:"lock_step_tokens_per_second"` // 1 / Σ max(…): each unit waits for the slowest of its lanes

	Prefill           Work    `json:"prefill"` // of the prompt
	PrefillBottleneck Lane    `json:"prefill_bottleneck"`
	PrefillPerSec     float64 `json:"prefill_tokens_per_second"`
	TTFTSeconds       float64 `json:"ttft_seconds"` // loaded and warm: the ring holds what a step begins with
	LoadSeconds       float64 `json:"load_seconds"` // what VRAM and the host tier hold, read from disk

	HitRates []HitRate `json:"hit_rates,omitempty"` // decoding, where experts share slots
	Skewed   *HitRate  `json:"skewed,omitempty"`    // the same, if experts are used as unevenly as Zipf's law has it and the most used are there
}

// Predict says how fast the plan will run: decoding with ctx tokens in the session, and
// a prompt of promptTokens in an empty one. h is the model's that was planned. Where experts
// share slots, all are taken to be as likely: a real router uses some more than others, and is faster.
func (p *Plan) Predict(s Speeds, h *arch.Hyper, ctx, promptTokens int) Prediction {
	return p.PredictFound(s, h, ctx, promptTokens, nil, nil)
}

// loading is how long it takes until all that stays is there.
func (p *Plan) loading(s Speeds) float64 {
	var device, all float64
	for i := range p.Units {
		switch u := &p.Units[i]; u.Tier {
		case VRAM:
			device += float64(u.Bytes)
			all += float64(u.Bytes)
		case Host:
			all += float64(u.Bytes)
		case Cached:
			all += float64(u.Bytes) * (1 - p.Experts.diskShare())
		}
	}
	disk := s.DiskFirstBytesPerSec
	if disk <= 0 {
		disk = s.DiskBytesPerSec
	}
	return max(over(all, disk), over(device, s.LinkBytesPerSec))
}

// Tokens are timed in the flow: the first ones fill the ring.
const warmSteps, timedSteps = 3, 4

// A device that has next to nothing to do lowers its clock: kernels and uploads then take so many times as long (an H200 beside a disk from
// which experts come: 345 MHz in place of 1980, docs/benchmarks.md).
const (
	restsBelow     = 0.06 // of the time, by its full clock
	wakesAbove     = 0.2  // from here on it has enough to do; between them nothing was measured: a line
	restingKernels = 4
	restingUploads = 2
)

func (r *Prediction) decode(m *machine) {
	m.resting = 0
	r.decodeOnce(m)
	busy := over(r.Decode.ComputeSeconds, r.DecodeSeconds)
	if m.s.Rests && m.p.Experts != nil && busy < wakesAbove { // else what streams hides it
		m.resting = min(1, (wakesAbove-busy)/(wakesAbove-restsBelow))
		r.decodeOnce(m)
		m.resting = 0
	}
}

func (r *Prediction) decodeOnce(m *machine) {
	r.Decode = Work{}
	works := m.step(1, r.Context, true)
	host := m.host(1)
	lockStep := host
	for _, w := range works {
		r.Decode = r.Decode.plus(w)
		lockStep += w.Bound()
	}
	r.Decode.ComputeSeconds += host
	r.DecodeBottleneck = r.Decode.Bottleneck()
	flow := m.newFlow()
	var warm float64
	for n := range warmSteps + timedSteps {
		if end := flow.run(works, host, true); n == warmSteps-1 {
			warm = end
		}
	}
	r.DecodeSeconds = (flow.computed - warm) / timedSteps
	r.DecodePerSec, r.BoundPerSec, r.LockStepPerSec = inverse(r.DecodeSeconds), inverse(r.Decode.Bound()), inverse(lockStep)
}

func (r *Prediction) prefill(m *machine) {
	flow := m.newFlow().rested()
	for from := 0; from < r.Prompt; from += m.p.Chunk {
		n := min(m.p.Chunk, r.Prompt-from)
		head := from+n == r.Prompt
		works, host := m.step(n, from+n, head), m.host(n)
		for _, w := range works {
			r.Prefill = r.Prefill.plus(w)
		}
		r.Prefill.ComputeSeconds += host
		r.TTFTSeconds = flow.run(works, host, head)
	}
	r.PrefillBottleneck = r.Prefill.Bottleneck()
	r.PrefillPerSec = float64(r.Prompt) * inverse(r.TTFTSeconds)
}

func inverse(x float64) float64 { return over(1, x) }

// over is how long an amount takes at a rate; 0 where there is no rate.
func over(amount, perSec float64) float64 {
	if perSec <= 0 {
		return 0
	}
	return amount / perSec
}
