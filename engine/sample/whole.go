package sample

import "math"

// whole is what is known of a distribution over all tokens at temperature 1, without a list of
// them: a pass over the logits is a fraction of what a list takes.
type whole struct {
	top     float64 // the largest logit
	n       int     // tokens that have a probability
	sum     float64 // of exp(logit − top)
	entropy float64 // in nats
}

// wholeOf sums up logits; top is the largest, a finite one.
func wholeOf(logits []float32, top float32) whole {
	w := whole{top: float64(top)}
	var moment float64
	for _, l := range logits {
		if !(l >= -math.MaxFloat32) {
			continue
		}
		w.n++
		if x := float64(l) - w.top; x >= leastExp {
			e := tableExp(x)
			w.sum += e
			moment += e * x
		}
	}
	w.entropy = math.Log(w.sum) - moment/w.sum
	return w
}

// wholeOf sums up s.kept, whose weights it sets.
func (s *Sampler) wholeOf() whole {
	w := whole{top: math.Inf(-1), n: len(s.kept)}
	for i := range s.kept {
		w.top = max(w.top, float64(s.kept[i].logit))
	}
	w.sum = weigh(s.kept, 1)
	var moment float64
	for i := range s.kept {
		if c := &s.kept[i]; c.weight > 0 {
			moment += c.weight * (float64(c.logit) - w.top)
		}
	}
	w.entropy = math.Log(w.sum) - moment/w.sum
	return w
}

// sumExp is Σ exp((logit − top) · scale) of those that have a probability.
func sumExp(logits []float32, top float32, scale float64) float64 {
	// Four at once: none need wait for another.
	var a, b, c, d float64
	t := float64(top)
	for ; len(logits) >= 4; logits = logits[4:] {
		xa, xb, xc, xd := (float64(logits[0])-t)*scale, (float64(logits[1])-t)*scale, (float64(logits[2])-t)*scale, (float64(logits[3])-t)*scale
		if min(xa, xb, xc, xd) >= leastExp {
			a, b, c, d = a+tableExp(xa), b+tableExp(xb), c+tableExp(xc), d+tableExp(xd)
			continue
		}
		a += someExp(xa) + someExp(xb) + someExp(xc) + someExp(xd)
	}
	for _, l := range logits {
		a += someExp((float64(l) - t) * scale)
	}
	return a + b + c + d
}

// someExp is exp, or 0 for what is banned, not a number or next to impossible.
func someExp(x float64) float64 {
	if x >= leastExp {
		return tableExp(x)
	}
	return 0
}

// likely is a logit below which the tokens are less likely, all together, than 1−p: a smallest
// set with p of the most likely tokens has none of them.
func (w *whole) likely(p float64) float64 {
	return w.top + math.Log((1-p)*w.sum/float64(w.n))
}

// nearEntropy is the same for a smallest set of those whose surprise is nearest to the entropy;
// −Inf where tokens as unlikely as that may be nearer to it than the likeliest is.
func (w *whole) nearEntropy(p float64) float64 {
	least := w.likely(p)
	if surprise := math.Log(w.sum); w.top-least+surprise-w.entropy <= w.entropy-surprise {
		return math.Inf(-1)
	}
	return least
}

// gather fills s.kept with the tokens whose logits reach least, and their weights.
func (s *Sampler) gather(logits []float32, w *whole, least float64) {
	s.kept = s.kept[:0]
	bound := float32(max(least, -math.MaxFloat32))
	if float64(bound) > least {
		bound = math.Nextafter32(bound, -math.MaxFloat32)
	}
	for i, l := range logits {
		if l >= bound {
			s.kept = append(s.kept, candidate{int32(i), l, exp(float64(l) - w.top)})
		}
	}
}

// drawAll chooses among all tokens, at the temperature alone; top is the largest logit. It sums
// the weights up by blocks, and computes those of one block again.
func (s *Sampler) drawAll(logits []float32, top float32) int32 {
	const block = 512
	scale := 1 / s.p.Temperature
	s.sums = s.sums[:0]
	var sum float64
	for from := 0; from < len(logits); from += block {
		part := sumExp(logits[from:min(from+block, len(logits))], top, scale)
		s.sums = append(s.sums, part)
		sum += part
	}
	at := s.rng.Float64() * sum
	last := -1 // the last block with a probability
	for i, part := range s.sums {
		if part == 0 {
			continue
		}
		if last = i; at < part {
			break
		}
		at -= part
	}
	chosen, from := last*block, last*block
	for i, l := range logits[from:min(from+block, len(logits))] {
		w := sumExp([]float32{l}, top, scale)
		if w == 0 {
			continue
		}
		if chosen = from + i; at < w {
			break
		}
		at -= w
	}
	return int32(chosen)
}
