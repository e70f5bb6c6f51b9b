package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var negInf, posInf, nan = float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())

// randomLogits makes n logits of one of several shapes, ties and bans among them.
func randomLogits(rng *rand.Rand, n int) []float32 {
	l := make([]float32, n)
	shape := rng.IntN(4)
	for i := range l {
		switch shape {
		case 0: // bell
			l[i] = float32(rng.NormFloat64() * 3)
		case 1: // few values, many ties
			l[i] = float32(rng.IntN(5))
		case 2: // as language: a power law over the rank
			l[i] = float32(20 - 1.3*math.Log(float64(1+rng.IntN(n))) + 0.1*rng.NormFloat64())
		case 3: // flat
			l[i] = -7
		}
		if rng.IntN(50) == 0 {
			l[i] = []float32{negInf, nan, -math.MaxFloat32, -1e30}[rng.IntN(4)]
		}
	}
	l[rng.IntN(n)] = 21 // at least one that is finite
	return l
}

// distribution is what the chain draws from: probabilities in order of id.
func distribution(t testing.TB, s *Sampler, logits []float32) map[int32]float64 {
	t.Helper()
	changed := s.change(logits)
	sum := s.filter(changed, Argmax(changed))
	if len(s.kept) == 0 {
		t.Fatal("a filter kept nothing")
	}
	d := make(map[int32]float64)
	for _, c := range s.kept {
		d[c.id] = c.weight / sum
	}
	return d
}

func ids(d map[int32]float64) []int32 {
	var out []int32
	for id := range d {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// naive is the chain from top-k on, as its definitions read: sort everything, then cut.
// It is what the package's selection is held against. XTC acts when xtc says so.
func naive(logits []float32, p Params, xtc bool) map[int32]float64 {
	type tok struct {
		id int32
		l  float64
		p  float64
	}
	var ts []tok
	for i, l := range logits {
		if l == l && l != negInf {
			ts = append(ts, tok{int32(i), float64(l), 0})
		}
	}
	slices.SortFunc(ts, func(a, b tok) int {
		if a.l != b.l {
			return int(math.Copysign(1, b.l-a.l))
		}
		return int(a.id - b.id)
	})
	softmax := func(temperature float64) {
		sum := 0.0
		for i := range ts {
			ts[i].p = math.Exp((ts[i].l - ts[0].l) / temperature)
			sum += ts[i].p
		}
		for i := range ts {
			ts[i].p /= sum
		}
	}
	// mass is the number of tokens in the smallest beginning with probability p.
	mass := func(p float64) int {
		sum := 0.0
		for i := range ts {
			if sum += ts[i].p; sum >= p {
				return i + 1
			}
		}
		return len(ts)
	}
	if p.TopK > 0 {
		ts = ts[:min(p.TopK, len(ts))]
	}
	if p.TypicalP > 0 && p.TypicalP < 1 {
		softmax(1)
		entropy := 0.0
		for _, t := range ts {
			if t.p > 0 {
				entropy -= t.p * math.Log(t.p)
			}
		}
		logSum := math.Log(1 / ts[0].p)
		top := ts[0].l
		distance := func(t tok) float64 { return math.Abs(logSum - (t.l - top) - entropy) }
		slices.SortFunc(ts, func(a, b tok) int {
			if x, y := distance(a), distance(b); x != y {
				return int(math.Copysign(1, x-y))
			}
			return int(a.id - b.id)
		})
		ts = ts[:mass(p.TypicalP)]
		slices.SortFunc(ts, func(a, b tok) int {
			if a.l != b.l {
				return int(math.Copysign(1, b.l-a.l))
			}
			return int(a.id - b.id)
		})
	}
	if p.TopP > 0 && p.TopP < 1 {
		softmax(1)
		ts = ts[:mass(p.TopP)]
	}
	if p.MinP > 0 {
		softmax(1)
		n := 0
		for n < len(ts) && ts[n].p >= p.MinP*ts[0].p*(1-1e-12) {
			n++
		}
		ts = ts[:n]
	}
	if xtc {
		softmax(1)
		n := 0
		for n < len(ts) && ts[n].p >= p.XTCThreshold {
			n++
		}
		if n > 1 {
			ts = ts[n-1:]
		}
	}
	softmax(p.Temperature)
	d := make(map[int32]float64)
	for _, t := range ts {
		d[t.id] = t.p
	}
	return d
}
