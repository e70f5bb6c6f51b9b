package sample

import (
	"math"
	"slices"
)

// candidate is a token that may be drawn.
type candidate struct {
	id     int32
	logit  float32
	weight float64 // probability times a constant, once weighed
}

// inverse is 1/temperature, finite: the largest logit's distance to itself, 0, must stay 0 times it.
func inverse(temperature float64) float64 { return min(1/temperature, math.MaxFloat64) }

// weigh sets the weights to exp(logit/temperature), the largest 1, and returns their sum.
// Whatever the temperature, neither overflows.
func weigh(c []candidate, temperature float64) (sum float64) {
	top := math.Inf(-1)
	for i := range c {
		top = max(top, float64(c[i].logit))
	}
	scale := inverse(temperature)
	for i := range c {
		c[i].weight = exp((float64(c[i].logit) - top) * scale)
		sum += c[i].weight
	}
	return sum
}

// keepTopK begins the filters: of the logits that reach least, it gathers the TopK largest,
// or all; never one that is banned or not a number.
func (s *Sampler) keepTopK(logits []float32, least float32) {
	k := s.p.TopK
	least = max(least, -math.MaxFloat32)
	if k > 0 && k < len(logits) {
		least = max(least, s.lowerBound(logits, k))
	}
	s.kept = s.kept[:0]
	for i, l := range logits {
		if l >= least {
			s.kept = append(s.kept, candidate{id: int32(i), logit: l})
		}
	}
	if k == 0 || len(s.kept) <= k {
		return
	}
	s.ranks = s.ranks[:0]
	for i := range s.kept {
		s.ranks = append(s.ranks, rank{float64(s.kept[i].logit), 1, s.kept[i].id})
	}
	s.keepTo(cut(s.ranks, float64(k)))
}

// lowerBound returns a number that at least k logits reach, and hardly more do: the k-th
// largest of the maxima of a few k blocks. One pass without surprises for the branch
// predictor, where selecting among all V would have a few.
func (s *Sampler) lowerBound(logits []float32, k int) float32 {
	const blocksPerK, minBlocks = 4, 512
	blocks := max(minBlocks, blocksPerK*k)
	if len(logits)/blocks < 2 {
		return float32(math.Inf(-1))
	}
	size := (len(logits) + blocks - 1) / blocks // rounding up leaves more than 2k blocks
	s.ranks = s.ranks[:0]
	for from := 0; from < len(logits); from += size {
		top := float32(math.Inf(-1))
		for _, l := range logits[from:min(from+size, len(logits))] {
			if l > top {
				top = l
			}
		}
		s.ranks = append(s.ranks, rank{float64(top), 1, int32(len(s.ranks))})
	}
	return float32(cut(s.ranks, float64(k)).key)
}

// keepTopP keeps the smallest set of the most likely tokens that together have TopP of all, whose shape is given where
// s.kept has not all of them.
func (s *Sampler) keepTopP(shape *profile) {
	sum := weigh(s.kept, 1)
	// All tokens below this share together have less than 1-TopP, so the set has none of
	// them: of a large vocabulary, a few hundred are left to rank.
	least := (1 - s.p.TopP) * sum / float64(len(s.kept))
	if shape != nil {
		sum, least = shape.sum, 0
	}
	s.ranks = s.ranks[:0]
	for i := range s.kept {
		if c := &s.kept[i]; c.weight >= least {
			s.ranks = append(s.ranks, rank{float64(c.logit), c.weight, c.id})
		}
	}
	s.keepTo(cut(s.ranks, s.p.TopP*sum))
}

// keepTo keeps the tokens up to last in the order of their logits.
func (s *Sampler) keepTo(last rank) {
	s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool {
		return last.before(rank{float64(c.logit), 0, c.id})
	})
}

// keepTypical keeps the smallest set of tokens with TypicalP whose surprise, -log p, is
// nearest to the expected one, the entropy. shape is as for keepTopP.
func (s *Sampler) keepTypical(shape *profile) {
	sum := weigh(s.kept, 1)
	top := math.Inf(-1)
	for i := range s.kept {
		top = max(top, float64(s.kept[i].logit))
	}
	var entropy, logSum float64
	if shape != nil {
		sum = shape.sum
		entropy, logSum = shape.entropy()
	} else {
		logSum = math.Log(sum)
		entropy = logSum
		for i := range s.kept {
			entropy -= s.kept[i].weight / sum * (float64(s.kept[i].logit) - top)
		}
	}
	rankOf := func(c *candidate) rank {
		return rank{-math.Abs(logSum - (float64(c.logit) - top) - entropy), c.weight, c.id}
	}
	s.ranks = s.ranks[:0]
	for i := range s.kept {
		s.ranks = append(s.ranks, rankOf(&s.kept[i]))
	}
	last := cut(s.ranks, s.p.TypicalP*sum)
	s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool { return last.before(rankOf(&c)) })
}

// keepMinP keeps tokens at least MinP times as likely as the most likely one.
func (s *Sampler) keepMinP() {
	top := float32(math.Inf(-1))
	for i := range s.kept {
		top = max(top, s.kept[i].logit)
	}
	least := s.minLogit(top)
	s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool { return c.logit < least })
}

// minLogit is the least logit that MinP keeps beside top.
func (s *Sampler) minLogit(top float32) float32 {
	return float32(max(float64(top)+math.Log(s.p.MinP), -math.MaxFloat32))
}

// excludeTopChoices removes, with XTCProbability, all tokens that reach XTCThreshold but the
// least likely of them.
func (s *Sampler) excludeTopChoices() {
	if s.rng.Float64() >= s.p.XTCProbability {
		return
	}
	least := weigh(s.kept, 1) * s.p.XTCThreshold
	var last rank
	n := 0
	for i := range s.kept {
		c := &s.kept[i]
		if r := (rank{float64(c.logit), c.weight, c.id}); c.weight >= least {
			if n++; n == 1 || last.before(r) {
				last = r
			}
		}
	}
	if n < 2 {
		return
	}
	s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool {
		return rank{float64(c.logit), 0, c.id}.before(last)
	})
}
