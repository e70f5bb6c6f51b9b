package sample

import (
	"math"
	"slices"
)

// tail is the last n of ids, all with n < 0.
func tail(ids []int32, n int) []int32 {
	if n < 0 || n > len(ids) {
		return ids
	}
	return ids[len(ids)-n:]
}

// penalize makes tokens that were seen lately less likely.
func (s *Sampler) penalize(logits []float32) {
	seen := tail(s.history, s.p.PenaltyLastN)
	for _, id := range seen {
		if within(id, logits) {
			s.counts[id]++
		}
	}
	for _, id := range seen {
		if !within(id, logits) || s.counts[id] == 0 {
			continue
		}
		n := float64(s.counts[id])
		s.counts[id] = 0
		l := float64(logits[id])
		if l > 0 {
			l /= s.p.RepeatPenalty
		} else { // dividing would make an unlikely token likelier
			l *= s.p.RepeatPenalty
		}
		l -= n*s.p.FrequencyPenalty + s.p.PresencePenalty
		logits[id] = moved(logits[id], floor(l))
	}
}

// dry makes a token less likely the longer the sequence is that it would repeat: it looks
// for earlier places that agree with the end of the history, and penalizes what came next there.
func (s *Sampler) dry(logits []float32) {
	seen := tail(s.history, s.p.DRYLastN)
	n, allowed := len(seen), s.p.DRYAllowedLength
	limit := n // a repeat reaches back to the last breaker
	for i := range n {
		if s.breakers[seen[n-1-i]] {
			limit = i
			break
		}
	}
	if limit < allowed {
		return
	}
	s.z = commonSuffixes(s.z, seen)
	for k := 1; k < n; k++ {
		id, length := seen[n-k], min(int(s.z[k]), limit)
		if length >= allowed && within(id, logits) && !s.breakers[id] {
			s.counts[id] = max(s.counts[id], int32(length))
		}
	}
	for _, id := range seen {
		if !within(id, logits) || s.counts[id] == 0 {
			continue
		}
		penalty := s.p.DRYMultiplier * math.Pow(s.p.DRYBase, float64(int(s.counts[id])-allowed))
		s.counts[id] = 0
		logits[id] = moved(logits[id], floor(float64(logits[id])-penalty))
	}
}

// floor keeps a penalty, however large, from becoming a ban.
func floor(l float64) float64 { return max(l, -math.MaxFloat32) }

// commonSuffixes returns z, shape (len(ids)): z[k] is how many tokens the ends of ids and
// of ids without its last k have in common, with z[0] left 0. It is the Z algorithm on ids
// read backwards, linear in its length (Gusfield, "Algorithms on Strings", section 1.4).
func commonSuffixes(z []int32, ids []int32) []int32 {
	n := len(ids)
	z = slices.Grow(z[:0], n)[:n]
	clear(z)
	last := n - 1
	left, right := 0, 0 // the match that reaches furthest: [left, right)
	for k := 1; k < n; k++ {
		m := 0
		if k < right {
			m = min(right-k, int(z[k-left]))
		}
		for k+m < n && ids[last-m] == ids[last-k-m] {
			m++
		}
		z[k] = int32(m)
		if k+m > right {
			left, right = k, k+m
		}
	}
	return z
}
