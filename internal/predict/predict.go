package predict

import (
	"leat/internal/arch"
	"leat/internal/plan"
)

// Prediction is how fast a plan will run on a machine.
type Prediction struct {
	Context int `json:"context"`       // tokens in the session while it decodes
	Prompt  int `json:"prompt_tokens"` // tokens of the prompt

	Decode           Work    `json:"decode"`                      // work of one decoded token, the host's time included
	DecodeBottleneck Lane    `json:"decode_bottleneck"`           // the busiest lane while decoding
	DecodeSeconds    float64 `json:"decode_seconds"`              // time of one decoded token, with the plan's ring and staging
	DecodePerSec     float64 `json:"decode_tokens_per_second"`    // 1 / DecodeSeconds
	BoundPerSec      float64 `json:"bound_tokens_per_second"`     // decoded tokens a second with an endless ring: 1 / [Work.Bound] of Decode
	LockStepPerSec   float64 `json:"lock_step_tokens_per_second"` // decoded tokens a second if no unit begins before the slowest lane of the unit before it ends: 1 / (the host's time + Σ [Work.Bound] of each unit)

	Prefill           Work    `json:"prefill"`                   // work of the whole prompt, the host's time included
	PrefillBottleneck Lane    `json:"prefill_bottleneck"`        // the busiest lane while the prompt is read
	PrefillPerSec     float64 `json:"prefill_tokens_per_second"` // tokens of the prompt a second
	TTFTSeconds       float64 `json:"ttft_seconds"`              // time to the first token of a loaded model, whose ring holds the first units of a step
	LoadSeconds       float64 `json:"load_seconds"`              // time to load all that stays in VRAM and RAM

	HitRates []SpeedAtHitRate `json:"hit_rates,omitempty"` // speed of decoding at several hit rates; nil: no experts share slots
	Skewed   *SpeedAtHitRate  `json:"skewed,omitempty"`    // speed of decoding if experts are used by Zipf's law, see skewedRate; nil: no experts share slots
}

// Plan predicts how fast a plan will run on a machine of speeds s: decoding with ctx tokens in the session, and
// a prompt of promptTokens in an empty session. h is the planned model's. If experts
// share slots, Plan assumes that all are used equally often. A real router uses some more often, and is faster.
func Plan(p *plan.Plan, s Speeds, h *arch.Hyper, ctx, promptTokens int) Prediction {
	return PlanWithHits(p, s, h, ctx, promptTokens, nil, nil)
}

// PlanWithHits is [Plan] with given hits of experts in slots: decode for decoded tokens, prompt for the prompt. nil means that all experts are used equally
// often.
func PlanWithHits(p *plan.Plan, s Speeds, h *arch.Hyper, ctx, promptTokens int, decode, prompt *ExpertHits) Prediction {
	m := newCostModel(p, s, h)
	ctx = max(1, min(ctx, p.ContextLength))
	promptTokens = max(1, min(promptTokens, p.ContextLength))
	r := Prediction{Context: ctx, Prompt: promptTokens}
	m.hits = decode
	r.predictDecode(m)
	m.hits = prompt
	r.predictPrefill(m)
	r.LoadSeconds = loadSeconds(p, s)
	if x := p.Experts; x != nil {
		at := func(rate float64) SpeedAtHitRate {
			m.hits = &ExpertHits{HitRate: rate, DiskShare: x.DiskShare()}
			at := Prediction{Context: ctx, Prompt: promptTokens}
			at.predictDecode(m)
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

// loadSeconds is the time to load all weights that stay in VRAM and RAM: to read them from disk, or to upload those that stay in VRAM, whichever is longer.
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

// A simulation of decoding runs warmSteps steps, which fill the ring, and then timedSteps steps, whose time counts.
const warmSteps, timedSteps = 3, 4

// A nearly idle device lowers its clock: an H200 that waited for experts from disk ran at 345 MHz instead of 1980.
const (
	idleBelow   = 0.06 // share of the time that the device is busy, computed for the full clock, below which the clock is lowest
	awakeAbove  = 0.2  // share of the time that the device is busy above which the clock is full; nothing was measured between the two
	idleKernels = 4    // factor by which kernels take longer at the lowest clock
	idleUploads = 2    // factor by which uploads take longer at the lowest clock
)

// predictDecode predicts decoding. If experts share slots and the device is nearly idle, it predicts again with a lowered clock.
func (r *Prediction) predictDecode(m *costModel) {
	m.idle = 0
	r.predictDecodeOnce(m)
	busy := over(r.Decode.ComputeSeconds, r.DecodeSeconds)
	if m.speeds.IdleClock && m.plan.Experts != nil && busy < awakeAbove { // without slots, streamed units hide a slower device
		m.idle = min(1, (awakeAbove-busy)/(awakeAbove-idleBelow))
		r.predictDecodeOnce(m)
		m.idle = 0
	}
}

// predictDecodeOnce predicts decoding with the device's clock lowered by m.idle.
func (r *Prediction) predictDecodeOnce(m *costModel) {
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
	flow := m.newSimulation()
	var warm float64
	for n := range warmSteps + timedSteps {
		if end := flow.run(works, host, true); n == warmSteps-1 {
			warm = end
		}
	}
	r.DecodeSeconds = (flow.computed - warm) / timedSteps
	r.DecodePerSec, r.BoundPerSec, r.LockStepPerSec = inverse(r.DecodeSeconds), inverse(r.Decode.Bound()), inverse(lockStep)
}

// predictPrefill predicts the prompt, chunk by chunk.
func (r *Prediction) predictPrefill(m *costModel) {
	flow := m.newSimulation().afterLoading()
	for from := 0; from < r.Prompt; from += m.plan.Chunk {
		n := min(m.plan.Chunk, r.Prompt-from)
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

// over is amount / perSec, the time that an amount takes at a rate; 0 if the rate is 0, which means that it takes no time.
func over(amount, perSec float64) float64 {
	if perSec <= 0 {
		return 0
	}
	return amount / perSec
}
