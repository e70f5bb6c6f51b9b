package sample

import (
	"fmt"
	"math"
)

// Params shape the choice. The zero value is greedy, with everything off. docs/sampling.md says
// what each is good for.
type Params struct {
	Temperature float64 // 0: always the most likely token
	TopK        int     // keep the k most likely; 0: all
	TopP        float64 // keep the smallest set with this probability; 0, 1: off
	MinP        float64 // keep what has this share of the largest probability; 0: off
	TypicalP    float64 // as TopP, but nearest to the expected surprise first; 0, 1: off

	RepeatPenalty    float64 // divides a seen token's positive logit, multiplies a negative one; 0, 1: off
	FrequencyPenalty float64 // subtracted for each time a token was seen
	PresencePenalty  float64 // subtracted once from a token that was seen
	PenaltyLastN     int     // tokens the three look back on; 0: 64, -1: all

	DRYMultiplier    float64 // penalty of the shortest repeat; 0: off
	DRYBase          float64 // growth of the penalty with each token of the repeat; 0: 1.75
	DRYAllowedLength int     // repeats shorter than this are free; 0: 2
	DRYLastN         int     // tokens it looks back on; 0, -1: all
	DRYBreakers      []int32 // tokens no repeat reaches across

	XTCProbability float64 // how often it acts; 0: off
	XTCThreshold   float64 // probability from which a token is a top choice; 0: 0.1

	LogitBias map[int32]float32 // added to these tokens' logits; −Inf bans
	Seed      uint64            // of the random choice: the same seed, parameters and prompt give the same tokens; 0: [NewSeed] draws one for each generation
}

// RangeError is a parameter with a value it can't have.
type RangeError struct {
	Param  string // "top-p"
	Found  string
	Wanted string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("sampling parameters: %s: found %s, wanted %s", e.Param, e.Found, e.Wanted)
}

// Validate reports a parameter out of its range, as a [*RangeError].
func (p *Params) Validate() error {
	inf := math.Inf(1)
	for _, r := range []struct {
		name     string
		v        float64
		min, max float64
		wanted   string
	}{
		{"temperature", p.Temperature, 0, inf, "0 or more"},
		{"top-k", float64(p.TopK), 0, inf, "0 or more"},
		{"top-p", p.TopP, 0, 1, "0 to 1"},
		{"min-p", p.MinP, 0, 1, "0 to 1"},
		{"typical-p", p.TypicalP, 0, 1, "0 to 1"},
		{"repeat penalty", p.RepeatPenalty, 0, inf, "more than 0 (1: off)"},
		{"frequency penalty", p.FrequencyPenalty, -inf, inf, "a number"},
		{"presence penalty", p.PresencePenalty, -inf, inf, "a number"},
		{"penalty last n", float64(p.PenaltyLastN), -1, inf, "-1 (all tokens) or more"},
		{"DRY multiplier", p.DRYMultiplier, 0, inf, "0 or more"},
		{"DRY allowed length", float64(p.DRYAllowedLength), 0, inf, "0 or more"},
		{"DRY last n", float64(p.DRYLastN), -1, inf, "-1 (all tokens) or more"},
		{"XTC probability", p.XTCProbability, 0, 1, "0 to 1"},
		{"XTC threshold", p.XTCThreshold, 0, 0.5, "0 to 0.5 (two tokens can't be above more)"},
	} {
		if !(r.v >= r.min && r.v <= r.max) || math.IsInf(r.v, 0) {
			return &RangeError{r.name, fmt.Sprint(r.v), r.wanted}
		}
	}
	if b := p.DRYBase; b != 0 && !(b >= 1) || math.IsInf(b, 0) {
		return &RangeError{"DRY base", fmt.Sprint(b), "1 or more (0: 1.75)"}
	}
	for id, b := range p.LogitBias {
		if id < 0 {
			return &RangeError{"logit bias", fmt.Sprintf("token %d", id), "ids from 0"}
		}
		if b != b || math.IsInf(float64(b), 1) {
			return &RangeError{"logit bias", fmt.Sprintf("%g for token %d", b, id), "a number, or -Inf to ban it"}
		}
	}
	return nil
}

// Greedy reports whether the choice is the largest raw logit, whatever was seen before.
func (p *Params) Greedy() bool {
	return p.Temperature == 0 && len(p.LogitBias) == 0 && !p.penalizes() && p.DRYMultiplier == 0
}

func (p *Params) penalizes() bool {
	return p.RepeatPenalty != 0 && p.RepeatPenalty != 1 || p.FrequencyPenalty != 0 || p.PresencePenalty != 0
}

// filled puts numbers where 0 stands for a default.
func (p Params) filled() Params {
	setDefault(&p.RepeatPenalty, 1)
	setDefault(&p.PenaltyLastN, 64)
	setDefault(&p.DRYBase, 1.75)
	setDefault(&p.DRYAllowedLength, 2)
	setDefault(&p.DRYLastN, -1)
	setDefault(&p.XTCThreshold, 0.1)
	return p
}

func setDefault[T int | float64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// lookBack is how many tokens of the history matter.
func (p *Params) lookBack() int {
	n := 0
	if p.penalizes() {
		n = atLeast(n, p.PenaltyLastN)
	}
	if p.DRYMultiplier > 0 {
		n = atLeast(n, p.DRYLastN)
	}
	return n
}

func atLeast(n, m int) int {
	if m < 0 {
		return math.MaxInt
	}
	return max(n, m)
}
