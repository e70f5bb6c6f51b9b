package arch

import (
	"fmt"
	"math"
)

// Rope is the hyperparameters of rotary position embedding: how positions rotate pairs of values of query and key heads.
type Rope struct {
	Dim     int       // Dr: number of values of a head that are rotated
	Neox    bool      // pairs are (i, i+Dr/2); if not, (2i, 2i+1)
	Base    float64   // θ: rope.freq_base
	Scale   float64   // 1/factor of linear or YaRN scaling; 1: none
	Factors []float32 // (Dr/2) divisor of each frequency (Llama 3's rope_freqs, LongRoPE's short factors); nil: none
	Long    []float32 // (Dr/2) used instead of Factors in sessions that hold more than OrigContext tokens (LongRoPE's long factors); nil: Factors apply

	// YaRN (Peng et al. 2023, arXiv:2309.00071), by the paper's names. Without YaRN only AttnFactor and, for Long, OrigContext count.
	ExtFactor   float64 // share of the extrapolated frequency in the blend; 0: YaRN is off
	AttnFactor  float64 // factor of the rotated values: that of the file, with YaRN times its attention temperature
	BetaFast    float64 // pairs that turn more often within OrigContext keep their frequency
	BetaSlow    float64 // pairs that turn less often within OrigContext are interpolated
	OrigContext int     // tokens that the model was trained to hold before YaRN or LongRoPE
	Exact       bool    // the range of blended pairs is not rounded to whole pairs
}

// MaxRopes is the most ropes that a model has.
const MaxRopes = 2

// readRopes reads the keys of rope, which rotates queries and keys in all layers with a cache. If the file is wrong, k keeps the error.
func readRopes(k *keys, h *Hyper, neox bool) {
	if k.err != nil {
		return
	}
	h.Ropes = []Rope{readRope(k, shortestKey(h), h.ContextLength, neox)}
	for l := range h.Layers {
		if h.Layers[l].Cache {
			h.Layers[l].Rope = 0
		}
	}
}

// ropeOnly takes rope from the layers that roped does not mark.
func ropeOnly(h *Hyper, roped []bool) {
	for l := range h.Layers {
		if !roped[l] {
			h.Layers[l].Rope = NoRope
		}
	}
}

// shortestKey is the least size of a key head among the layers with a cache; 0: there are none.
func shortestKey(h *Hyper) (n int) {
	for l := range h.Layers {
		if s := &h.Layers[l]; s.Cache && (n == 0 || s.KeyLength < n) {
			n = s.KeyLength
		}
	}
	return n
}

// windowedBase is the base of the frequencies of rope in layers with a window, if a file of Gemma 3 or 4, MiMo-V2 or Step-3.5 does not have the key.
const windowedBase = 10000

// readWindowedRope gives the layers that windowed marks a rope of their own: with the frequencies of rope.freq_base_swa, by default those of base, and without
// scaling.
func readWindowedRope(k *keys, h *Hyper, windowed []bool, base float64) {
	if k.err != nil {
		return
	}
	r := h.Ropes[0]
	r.Base, r.Scale, r.ExtFactor, r.AttnFactor = k.float("rope.freq_base_swa", base), 1, 0, 1
	k.checkBase("rope.freq_base_swa", r.Base)
	h.Ropes = append(h.Ropes, r)
	for l := range h.Layers {
		if s := &h.Layers[l]; windowed[l] && s.Rope != NoRope {
			s.Rope = len(h.Ropes) - 1
		}
	}
}

// checkBase fails if base, the value of key name, can't be the base of frequencies.
func (k *keys) checkBase(name string, base float64) {
	if base <= 1 {
		k.fail("key %q: found %g, wanted more than 1", k.arch+"."+name, base)
	}
}

// checkRopeDim fails if rope can't rotate the first n values of heads of keyLength values. name is the key that says n.
func (k *keys) checkRopeDim(name string, n, keyLength int) {
	if n < 2 || n%2 != 0 || n > keyLength {
		k.fail("key %q: found %d, wanted an even number up to the head size %d", k.arch+"."+name, n, keyLength)
	}
}

// readRope reads the keys of a rope of heads of keyLength values or more, and checks them; if the file is wrong, k keeps the error. It does not set Factors,
// Long and Exact, which no key has.
func readRope(k *keys, keyLength, contextLength int, neox bool) Rope {
	r := Rope{
		Dim: k.int("rope.dimension_count", keyLength), Neox: neox,
		Base: k.float("rope.freq_base", 10000), Scale: 1, AttnFactor: k.positive("rope.scaling.attn_factor", 1),
		BetaFast: k.positive("rope.scaling.yarn_beta_fast", 32), BetaSlow: k.positive("rope.scaling.yarn_beta_slow", 1),
		OrigContext: k.int("rope.scaling.original_context_length", contextLength),
	}
	k.checkRopeDim("rope.dimension_count", r.Dim, keyLength)
	k.checkBase("rope.freq_base", r.Base)
	factor := k.atLeastZero("rope.scaling.factor", k.atLeastZero("rope.scale_linear", 1))
	checkScaling(k)
	ext := k.float("rope.scaling.yarn_ext_factor", -1)
	switch kind := k.text("rope.scaling.type", ""); kind {
	case "", "linear":
	case "none":
		factor = 1
	case "longrope":
		if k.shape(RopeLong) == nil {
			k.fail("key %q: found %q, wanted a file with %s and %s", k.arch+".rope.scaling.type", kind, RopeShort, RopeLong)
		}
	case "yarn":
		if r.ExtFactor = ext; ext < 0 { // the file leaves the choice to us
			r.ExtFactor = 1
		}
		if r.OrigContext < 1 {
			k.fail("key %q: found 0, wanted at least 1", k.arch+".rope.scaling.original_context_length")
		}
	default:
		k.fail("key %q: found %q, wanted none, linear, yarn or longrope", k.arch+".rope.scaling.type", kind)
	}
	if factor == 0 { // none
		factor = 1
	}
	r.Scale = 1 / factor
	if r.ExtFactor != 0 {
		r.AttnFactor *= k.positive("rope.scaling.yarn_attn_factor", yarnTemperature(factor))
	}
	return r
}

// checkScaling fails if the file has keys of a scaling of rope, but not others that they mean nothing without.
func checkScaling(k *keys) {
	const prefix = "rope.scaling."
	kind := k.text(prefix+"type", "")
	for _, c := range []struct {
		needed bool
		name   string // key without prefix
	}{
		{kind == "linear" || kind == "yarn", "factor"},
		{kind == "yarn", "original_context_length"},
	} {
		if _, _, found := k.lookUp(prefix+c.name, nil); c.needed && !found {
			k.fail("key %q is missing, and others of rope's scaling are there", k.arch+"."+prefix+c.name)
		}
	}
}

// yarnTemperature is YaRN's attention temperature for contexts that are longer by a factor.
func yarnTemperature(factor float64) float64 { return 1 + 0.1*math.Log(max(1, factor)) }

// Freqs returns the frequency of each pair, shape (Dr/2), in sessions that hold up to context tokens: the angle in radians by which one position rotates the pair.
func (r *Rope) Freqs(context int) []float64 {
	freqs, factors := make([]float64, r.Dim/2), r.Factors
	if r.Long != nil && context > r.OrigContext {
		factors = r.Long
	}
	low, high := r.yarnRange()
	for i := range freqs {
		f := math.Pow(r.Base, -2*float64(i)/float64(r.Dim))
		if factors != nil {
			f /= float64(factors[i])
		}
		interpolated := r.Scale * f
		freqs[i] = interpolated
		if r.ExtFactor != 0 {
			ramp := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low)))
			mix := ramp * r.ExtFactor
			freqs[i] = interpolated*(1-mix) + f*mix
		}
	}
	return freqs
}

// yarnRange returns the range of pairs for which YaRN blends two frequencies. Pairs below low turn
// so often within the original context that they keep their frequency; pairs above high are
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

// Table fills dst, shape (N, Dr/2, 2), with the cosine and sine of each pair's angle at
// each of N positions, times AttnFactor. freqs is of [Rope.Freqs]. It computes in float64: sines of a GPU lose
// precision at large angles. The error says that dst has another size.
func (r *Rope) Table(dst []float32, freqs []float64, positions []int) error {
	if len(dst) != len(positions)*len(freqs)*2 {
		return fmt.Errorf("fill rope table: found room for %d values, wanted %d", len(dst), len(positions)*len(freqs)*2)
	}
	for n, p := range positions {
		row := dst[n*len(freqs)*2:]
		for i, f := range freqs {
			sin, cos := math.Sincos(float64(p) * f)
			row[2*i], row[2*i+1] = float32(cos*r.AttnFactor), float32(sin*r.AttnFactor)
		}
	}
	return nil
}
