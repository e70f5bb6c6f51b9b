package predict

import (
	"leat/internal/arch"
	"leat/internal/plan"
)

// Prediction is what a plan will reach on a machine.
type Prediction struct {
	Context int `json:"context"` // tokens in the session while decoding
	Prompt  int `json:"prompt_tokens"`

	Decode           Work    `json:"decode"` // one token
	DecodeBottleneck Lane    `json:"decode_bottleneck"`
	DecodeSeconds    float64 `json:"decode_seconds"` // one token, with this plan's ring and staging
	DecodePerSec     float64 `json:"decode_tokens_per_second"`
	BoundPerSec      float64 `json:"bound_tokens_per_second"`     // 1 / max(Σ disk, Σ link, Σ compute): a ring without end
	LockStepPerSec   float64 `json:"lock_step_tokens_per_second"` // 1 / Σ max(…): each unit waits for the slowest of its lanes

	Prefill           Work    `json:"prefill"` // the whole prompt
	PrefillBottleneck Lane    `json:"prefill_bottleneck"`
	PrefillPerSec     float64 `json:"prefill_tokens_per_second"` // tokens of the prompt
	TTFTSeconds       float64 `json:"ttft_seconds"`              // time to the first token; the model is loaded, and the ring holds the first units of a step
	LoadSeconds       float64 `json:"load_seconds"`              // to read from disk what VRAM and the host tier hold

	HitRates []SpeedAtHitRate `json:"hit_rates,omitempty"` // where experts share slots: decoding at several hit rates
	Skewed   *SpeedAtHitRate  `json:"skewed,omitempty"`    // where experts share slots: decoding if experts are used by Zipf's law, see skewedRate
}

// Plan predicts how fast a plan will run: decoding with ctx tokens in the session, and
// a prompt of promptTokens in an empty one. h is the model's that was planned. Where experts
// share slots, all are taken to be as likely: a real router uses some more than others, and is faster.
func Plan(p *plan.Plan, s Speeds, h *arch.Hyper, ctx, promptTokens int) Prediction {
	return PlanWithHits(p, s, h, ctx, promptTokens, nil, nil)
}

// PlanWithHits is [Plan] for experts that decoded tokens and prompts find as told; nil: as if all are as likely.
func PlanWithHits(p *plan.Plan, s Speeds, h *arch.Hyper, ctx, promptTokens int, decode, prompt *ExpertHits) Prediction {
	m := newMachine(p, s, h)
	ctx = max(1, min(ctx, p.ContextLength))
	promptTokens = max(1, min(promptTokens, p.ContextLength))
	r := Prediction{Context: ctx, Prompt: promptTokens}
	m.hits = decode
	r.decode(m)
	m.hits = prompt
	r.prefill(m)
	r.LoadSeconds = loadSeconds(p, s)
	if x := p.Experts; x != nil {
		at := func(rate float64) SpeedAtHitRate {
			m.hits = &ExpertHits{HitRate: rate, DiskShare: x.DiskShare()}
			at := Prediction{Context: ctx, Prompt: promptTokens}
			at.decode(m)
			return SpeedAtHitRate{rate, at.DecodePerSec}
		}
		for _, rate := range hitRates {
			r.HitRates = append(r.HitRates, at(rate))
		}
		skewed := at(skewedRate(x))
		r.Skewed = &skewed
	}
	return r
}

// loadSeconds is how long it takes to bring all that stays in VRAM and RAM.
func loadSeconds(p *plan.Plan, s Speeds) float64 {
	var device, all float64
	for i := range p.Units {
		switch u := &p.Units[i]; u.Tier {
		case plan.VRAM:
			device += float64(u.Bytes)
			all += float64(u.Bytes)
		case plan.Host:
			all += float64(u.Bytes)
		case plan.Cached:
			all += float64(u.Bytes) * (1 - p.Experts.DiskShare())
		}
	}
	disk := s.Disk.FirstBytesPerSec
	if disk <= 0 {
		disk = s.Disk.BytesPerSec
	}
	return max(over(all, disk), over(device, s.Link.BytesPerSec))
}

// Tokens are timed in the flow: the first ones fill the ring.
const warmSteps, timedSteps = 3, 4

// A nearly idle device lowers its clock (an H200 that waits for experts from disk: 345 MHz in place of 1980, docs/benchmarks.md).
const (
	idleBelow   = 0.06 // the busy part of the time, by its full clock, at which the clock is lowest
	awakeAbove  = 0.2  // the part from which on the clock is full; between the two nothing was measured: a line
	idleKernels = 4    // the factor by which kernels take longer at the lowest clock
	idleUploads = 2    // the same of uploads
)

// decode predicts decoding, with a lowered clock where the device is nearly idle.
func (r *Prediction) decode(m *machine) {
	m.idle = 0
	r.decodeOnce(m)
	busy := over(r.Decode.ComputeSeconds, r.DecodeSeconds)
	if m.s.IdleClock && m.p.Experts != nil && busy < awakeAbove { // else what streams hides it
		m.idle = min(1, (awakeAbove-busy)/(awakeAbove-idleBelow))
		r.decodeOnce(m)
		m.idle = 0
	}
}

// decodeOnce predicts decoding at the machine's present clock.
func (r *Prediction) decodeOnce(m *machine) {
	r.Decode = Work{}
	works := m.step(1, r.Context, true)
	host := m.hostSeconds(1)
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

// prefill predicts reading a prompt, chunk by chunk.
func (r *Prediction) prefill(m *machine) {
	flow := m.newFlow().prefilled()
	for from := 0; from < r.Prompt; from += m.p.Chunk {
		n := min(m.p.Chunk, r.Prompt-from)
		head := from+n == r.Prompt
		works, host := m.step(n, from+n, head), m.hostSeconds(n)
		for _, w := range works {
			r.Prefill = r.Prefill.plus(w)
		}
		r.Prefill.ComputeSeconds += host
		r.TTFTSeconds = flow.run(works, host, head)
	}
	r.PrefillBottleneck = r.Prefill.Bottleneck()
	r.PrefillPerSec = float64(r.Prompt) * inverse(r.TTFTSeconds)
}

// inverse is 1/x; 0 where x is 0.
func inverse(x float64) float64 { return over(1, x) }

// over is how long an amount takes at a rate; 0 where there is no rate.
func over(amount, perSec float64) float64 {
	if perSec <= 0 {
		return 0
	}
	return amount / perSec
}
