package sample

import "math"

// blockLen is how many weights are summed before the sum is kept: a draw looks at the sums, then at one block.
const blockLen = 256

// drawAll chooses among all logits by their weights, without listing them. best is the largest logit's index.
func (s *Sampler) drawAll(logits []float32, best int) int32 {
	top, scale := float64(logits[best]), inverse(s.p.Temperature)
	s.sums = s.sums[:0]
	var sum float64
	for from := 0; from < len(logits); from += blockLen {
		var block float64
		for _, l := range logits[from:min(from+blockLen, len(logits))] {
			if x := (float64(l) - top) * scale; x >= expLeast {
				block += expOf(x, expSplit(x))
			}
		}
		sum += block
		s.sums = append(s.sums, sum)
	}
	at := s.rng.Float64() * sum
	i, reached := 0, 0.0
	for i < len(s.sums)-1 && s.sums[i] <= at {
		reached = s.sums[i]
		i++
	}
	// Sums of a block's part may be off the block's by rounding, hence last.
	last := best
	for j := i * blockLen; j < min((i+1)*blockLen, len(logits)); j++ {
		if x := (float64(logits[j]) - top) * scale; x >= expLeast {
			last = j
			if reached += expOf(x, expSplit(x)); at < reached {
				break
			}
		}
	}
	return int32(last)
}

// profile is what one pass tells of a distribution.
type profile struct {
	top, sum float64 // the largest logit; the sum of the weights exp(logit - top)
	moment   float64 // the sum of weight × (logit - top)
	mass     [buckets]float64
}

// A bucket of a profile has the weights of logits within some tenth of each other, the largest first.
const (
	buckets     = 1024
	bucketSteps = 8
)

// below and above are the bounds of a bucket's logits less the top.
func below(bucket int) float64 { return -expStep * (bucketSteps*float64(bucket) + bucketSteps) }
func above(bucket int) float64 { return -expStep * (bucketSteps*float64(bucket) - 1) }

// measure fills in a profile of logits whose largest is top.
func (p *profile) measure(logits []float32, top float32) {
	*p = profile{top: float64(top)}
	var sum, moment float64
	for _, l := range logits {
		if x := float64(l) - p.top; x >= expLeast {
			k := expSplit(x)
			w := expOf(x, k)
			sum += w
			moment += float64(w * x)
			p.mass[min(-k/bucketSteps, buckets-1)] += w
		}
	}
	p.sum, p.moment = sum, moment
}

// reaching is a logit such that those above it have the share of all weights.
func (p *profile) reaching(share float64) float32 {
	var sum float64
	for b := range buckets - 1 {
		if sum += p.mass[b]; sum >= share*p.sum*(1+1e-9) {
			return floor32(p.top + below(b))
		}
	}
	return float32(math.Inf(-1))
}

// entropy is the expected surprise, in nats; a logit's own is logSum - (logit - top).
func (p *profile) entropy() (entropy, logSum float64) {
	logSum = math.Log(p.sum)
	return logSum - p.moment/p.sum, logSum
}

// typical is a logit that all those reach which, nearest to the expected surprise, have the share of all weights: the buckets
// nearest to it are taken until they have it.
func (p *profile) typical(share float64) float32 {
	entropy, logSum := p.entropy()
	middle := logSum - entropy // the logit less the top that is as surprising as expected
	distance := func(b int) float64 { return max(above(b)-middle, middle-below(b)) }
	hi := int(max(0, min(-middle/(expStep*bucketSteps), buckets-1)))
	lo, sum, far := hi, p.mass[hi], distance(hi)
	for sum < share*p.sum*(1+1e-9) {
		switch {
		case hi == buckets-1: // its logits may be anything
			return float32(math.Inf(-1))
		case lo > 0 && distance(lo-1) <= distance(hi+1):
			lo--
			sum += p.mass[lo]
			far = max(far, distance(lo))
		default:
			hi++
			sum += p.mass[hi]
			far = max(far, distance(hi))
		}
	}
	if hi == buckets-1 {
		return float32(math.Inf(-1))
	}
	return floor32(p.top + middle - far)
}

// floor32 is a float32 below x.
func floor32(x float64) float32 {
	return math.Nextafter32(float32(max(x, -math.MaxFloat32)), float32(math.Inf(-1)))
}
