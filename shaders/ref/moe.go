package ref

import (
	"fmt"
	"math"
	"slices"

	"leat/gguf"
)

// Router is how a layer's experts are chosen and weighed.
type Router struct {
	Experts, Used      int
	Sigmoid            bool      // of each score; else softmax of all
	Late               bool      // softmax of the chosen ones' scores
	Sparse             bool      // of each chosen one, its share of the softmax of scores near its own
	Normalise          bool      // a row's weights come to 1
	Scale              float32   // on the weights
	Scales             []float32 // (Experts) on the weights, each expert's own; nil: none
	Bias               []float32 // (Experts) added where they are chosen; nil: none
	Groups, GroupsUsed int       // Groups 0 or 1: none
	GroupBest          int       // how many of a group's experts choose it
}

// mixed is the share of expert best in the softmax of the scores p that are at most 2 % below its own, without those of experts whose score is taken, -Inf.
func mixed(p, score []float64, best int) float64 {
	total := 0.0
	for e, other := range p {
		gap := p[best] - other
		if far := gap > 0.02*max(math.Abs(other), p[best]); !far && !math.IsInf(score[e], -1) {
			total += math.Exp(-gap)
		}
	}
	return 1 / total
}

// TopKMoE chooses each row's experts by their scores x: ids, the best first and the lowest among equals, and weights.
func TopKMoE(r *Router, ids []uint32 /* (T, Used) */, weights Mat /* (T, Used) */, x Mat /* (T, Experts) */) {
	p := make([]float64, r.Experts)     // what weighs an expert
	score := make([]float64, r.Experts) // what chooses it
	for t := range x.Rows {
		for e, v := range x.Row(t) {
			p[e] = float64(v)
			if r.Sigmoid {
				p[e] = 1 / (1 + math.Exp(-p[e]))
			}
		}
		if !r.Sigmoid && !r.Late && !r.Sparse {
			softMax(p)
		}
		copy(score, p)
		for e := range r.Bias {
			score[e] += float64(r.Bias[e])
		}
		for e, s := range score {
			if math.IsNaN(s) {
				score[e] = math.MaxFloat32 // chosen before all others: so that its row is not a number either
			}
		}
		if r.Groups > 1 {
			r.limit(score)
		}
		chosen := make([]float64, r.Used)
		for k := range r.Used {
			best := 0
			for e, s := range score {
				if s > score[best] {
					best = e
				}
			}
			ids[t*r.Used+k], chosen[k] = uint32(best), p[best]
			if r.Sparse {
				chosen[k] = mixed(p, score, best)
			}
			score[best] = math.Inf(-1)
		}
		if r.Late {
			softMax(chosen)
		}
		sum := 0.0
		for _, w := range chosen {
			sum += w
		}
		for k, w := range chosen {
			if r.Normalise {
				w /= sum
			}
			w *= float64(r.Scale)
			if r.Scales != nil {
				w *= float64(r.Scales[ids[t*r.Used+k]])
			}
			weights.Row(t)[k] = float32(w)
		}
	}
}

// limit closes all groups but those whose GroupBest best experts have the largest sum of scores.
func (r *Router) limit(score []float64) {
	size := r.Experts / r.Groups
	sums := make([]float64, r.Groups)
	order := make([]int, r.Groups)
	for g := range sums {
		best := slices.Sorted(slices.Values(score[g*size : (g+1)*size]))
		for _, s := range best[max(0, size-r.GroupBest):] {
			sums[g] += s
		}
		order[g] = g
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case sums[a] > sums[b]:
			return -1
		case sums[a] < sums[b]:
			return 1
		}
		return 0
	})
	for _, g := range order[r.GroupsUsed:] {
		for i := range size {
			score[g*size+i] = math.Inf(-1)
		}
	}
}

// GroupExperts lists the pairs of each expert, by expert, and cuts them into tiles of up to cols pairs of one expert: an
// expert, where its pairs begin in pairs, how many. Expert e's first tile is number (its first place)/cols + e.
func GroupExperts(ids []uint32 /* (T*Used) */, experts, cols int) (pairs []uint32, tiles [][3]uint32) {
	for e := range experts {
		start := len(pairs)
		for p, id := range ids {
			if int(id) == e {
				pairs = append(pairs, uint32(p))
			}
		}
		for first := start; len(tiles) < len(pairs)/cols+e+1; first = min(first+cols, len(pairs)) {
			tiles = append(tiles, [3]uint32{uint32(e), uint32(first), uint32(min(cols, len(pairs)-first))})
		}
	}
	return pairs, tiles
}

// MulMatID multiplies row p/used of x by the matrix of expert ids[p] for every pair p, where that is from first on and below
// last and the expert is there: dst[p] = x[p/used] · Wᵀ.
func MulMatID(t gguf.Type, dst Mat /* (T*Used, M) */, w [][]byte /* (Experts) of (M, K) of t, nil: not there */, x Mat /* (T or T*Used, K) */, ids []uint32 /* (T*Used) */, used, first, last int) error {
	for p, id := range ids {
		if int(id) < first || int(id) >= last || w[id] == nil {
			continue
		}
		row := Mat{x.Row(p / used), 1, x.Cols, x.Cols}
		if err := MulMat(t, Mat{dst.Row(p), 1, dst.Cols, dst.Cols}, w[id], row); err != nil {
			return fmt.Errorf("expert %d: %w", id, err)
		}
	}
	return nil
}

// SumExperts is dst[t] = residual[t] + Σ over k of weights[t][k] * y[t*used+k].
func SumExperts(dst, residual Mat /* (T, D) */, y Mat /* (T*Used, D) */, weights Mat /* (T, Used) */) {
	for t := range dst.Rows {
		for i := range dst.Cols {
			sum := float64(residual.Row(t)[i])
			for k, w := range weights.Row(t) {
				sum += float64(w) * float64(y.Row(t*weights.Cols + k)[i])
			}
			dst.Row(t)[i] = float32(sum)
		}
	}
}

// PairScale is dst[t*used+k] = weights[t][k] * x[t].
func PairScale(dst Mat /* (T*Used, D) */, x Mat /* (T, D) */, weights Mat /* (T, Used) */) {
	for t := range x.Rows {
		for k, w := range weights.Row(t) {
			for i, v := range x.Row(t) {
				dst.Row(t*weights.Cols + k)[i] = w * v
			}
		}
	}
}

// LookupExperts is 1 if table has an address other than 0 for each of ids, else 0.
func LookupExperts(table []uint64 /* (Experts) */, ids []uint32) uint32 {
	for _, id := range ids {
		if table[id] == 0 {
			return 0
		}
	}
	return 1
}
