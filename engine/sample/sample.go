package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Params shape the choice. The zero value is greedy.
type Params struct {
	Temperature float64 // 0: always the most likely token
	Seed        uint64  // of the random choice; the same seed gives the same tokens
}

// Validate reports a parameter out of its range.
func (p *Params) Validate() error {
	if !(p.Temperature >= 0) || math.IsInf(p.Temperature, 0) {
		return fmt.Errorf("sampling parameters: temperature: found %g, wanted 0 or more", p.Temperature)
	}
	return nil
}

// Greedy reports whether the most likely token is always taken.
func (p *Params) Greedy() bool { return p.Temperature == 0 }

// Sampler makes a sequence of choices.
type Sampler struct {
	p    Params
	rng  *rand.Rand
	prob []float64
}

// New returns a sampler for valid parameters.
func New(p Params) *Sampler {
	return &Sampler{p: p, rng: rand.New(rand.NewPCG(p.Seed, p.Seed^0x9e3779b97f4a7c15))}
}

// Next chooses an id for logits, shape (V). It fails when no logit is finite.
func (s *Sampler) Next(logits []float32) (int32, error) {
	best := Argmax(logits)
	if len(logits) == 0 || math.IsNaN(float64(logits[best])) || math.IsInf(float64(logits[best]), 0) {
		return 0, fmt.Errorf("sample from %d logits: the largest is not a finite number", len(logits))
	}
	if s.p.Greedy() {
		return int32(best), nil
	}
	s.prob = slices.Grow(s.prob[:0], len(logits))
	var sum float64
	for _, l := range logits {
		w := math.Exp((float64(l) - float64(logits[best])) / s.p.Temperature)
		if math.IsNaN(w) {
			w = 0
		}
		sum += w
		s.prob = append(s.prob, sum)
	}
	at := s.rng.Float64() * sum
	i, _ := slices.BinarySearchFunc(s.prob, at, func(cumulative, at float64) int {
		if cumulative <= at {
			return -1
		}
		return 1
	})
	return int32(min(i, len(logits)-1)), nil
}

// Argmax returns the index of the largest logit: the lowest among equals, NaN last.
func Argmax(logits []float32) int {
	best := 0
	for i, l := range logits {
		if l > logits[best] || l == l && logits[best] != logits[best] {
			best = i
		}
	}
	return best
}
