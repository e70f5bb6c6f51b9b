package arch

import (
	"fmt"
	"math"
)

// Rope says how positions turn query and key heads.
type Rope struct {
	Dim     int       // Dr: values of a head that turn
	Neox    bool      // pairs (i, i+Dr/2); else (2i, 2i+1)
	Base    float64   // θ: rope.freq_base
	Scale   float64   // 1/factor of linear or YaRN scaling; 1: none
	Factors []float32 // (Dr/2) divides each frequency (Llama 3's rope_freqs); nil: none

	// YaRN (Peng et al. 2023, arXiv:2309.00071): ExtFactor 0 turns it off.
	ExtFactor, AttnFactor, BetaFast, BetaSlow float64
	OrigContext                               int
	Exact                                     bool // the range between is not rounded to whole pairs
}

func readRope(k *keys, keyLength, contextLength int, neox bool) Rope {
	r := Rope{
		Dim: k.int("rope.dimension_count", keyLength), Neox: neox,
		Base: k.float("rope.freq_base", 10000), Scale: 1, AttnFactor: k.positive("rope.scaling.attn_factor", 1),
		BetaFast: k.positive("rope.scaling.yarn_beta_fast", 32), BetaSlow: k.positive("rope.scaling.yarn_beta_slow", 1),
		OrigContext: k.int("rope.scaling.original_context_length", contextLength),
	}
	if r.Dim < 2 || r.Dim%2 != 0 || r.Dim > keyLength {
		k.fail("key %q: found %d, wanted an even number up to the head size %d", k.arch+".rope.dimension_count", r.Dim, keyLength)
	}
	if r.Base <= 1 {
		k.fail("key %q: found %g, wanted more than 1", k.arch+".rope.freq_base", r.Base)
	}
	factor := k.atLeastZero("rope.scaling.factor", k.atLeastZero("rope.scale_linear", 1))
	ext := k.float("rope.scaling.yarn_ext_factor", -1)
	switch kind := k.text("rope.scaling.type", ""); kind {
	case "", "linear":
	case "none":
		factor = 1
	case "yarn":
		if r.ExtFactor = ext; ext < 0 { // not said
			r.ExtFactor = 1
		}
		if r.OrigContext < 1 {
			k.fail("key %q: found 0, wanted at least 1", k.arch+".rope.scaling.original_context_length")
		}
	default:
		k.fail("key %q: found %q, wanted none, linear or yarn", k.arch+".rope.scaling.type", kind)
	}
	if factor == 0 { // none
		factor = 1
	}
	r.Scale = 1 / factor
	return r
}

// Freqs returns the angle per position of each pair, shape (Dr/2), and the factor
// on the rotated values (YaRN's attention temperature; 1 without it).
func (r *Rope) Freqs() (freqs []float64, mscale float64) {
	freqs = make([]float64, r.Dim/2)
	mscale = r.AttnFactor
	low, high := r.yarnRange()
	for i := range freqs {
		f := math.Pow(r.Base, -2*float64(i)/float64(r.Dim))
		if r.Factors != nil {
			f /= float64(r.Factors[i])
		}
		interpolated := r.Scale * f
		freqs[i] = interpolated
		if r.ExtFactor != 0 {
			ramp := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
			mix := ramp * r.ExtFactor
			freqs[i] = interpolated*(1-mix) + f*mix
		}
	}
	if r.ExtFactor != 0 {
		mscale *= 1 + 0.1*math.Log(1/r.Scale)
	}
	return freqs, mscale
}

// yarnRange returns the pairs between which YaRN blends: below low a pair turns
// often enough within the original context to be left alone, above high it is
// interpolated (YaRN paper, section 3.2).
func (r *Rope) yarnRange() (low, high float64) {
	pair := func(turns float64) float64 {
		return float64(r.Dim) * math.Log(float64(r.OrigContext)/(turns*2*math.Pi)) / (2 * math.Log(r.Base))
	}
	low, high = pair(r.BetaFast), pair(r.BetaSlow)
	if !r.Exact {
		low, high = math.Floor(low), math.Ceil(high)
	}
	return max(0, low), min(float64(r.Dim-1), high)
}

// Table fills dst, shape (N, Dr/2, 2), with the cosine and sine of every pair at
// each position, computed in float64: GPU sines lose precision at large angles.
func (r *Rope) Table(dst []float32, freqs []float64, mscale float64, positions []int) error {
	if len(dst) != len(positions)*len(freqs)*2 {
		return fmt.Errorf("fill rope table: found room for %d values, wanted %d", len(dst), len(positions)*len(freqs)*2)
	}
	for n, p := range positions {
		row := dst[n*len(freqs)*2:]
		for i, f := range freqs {
			sin, cos := math.Sincos(float64(p) * f)
			row[2*i], row[2*i+1] = float32(cos*mscale), float32(sin*mscale)
		}
	}
	return nil
}
