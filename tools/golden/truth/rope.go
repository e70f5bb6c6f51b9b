package truth

import "math"

// rope says how positions turn heads (Su et al. 2021, arXiv:2104.09864).
type rope struct {
	dim    int  // values of a head that turn
	halves bool // pairs (i, i+dim/2); else (2i, 2i+1)
	freqs  []float64
	scale  float64 // on cosine and sine
}

// readRope makes the frequencies, with YaRN (Peng et al. 2023, arXiv:2309.00071) or Llama 3's factors where the file has them.
func (m *Model) readRope() {
	r := rope{dim: m.intOr("rope.dimension_count", 0), halves: m.arch != "llama" && m.arch != "deepseek2" && m.arch != "glm-dsa", scale: 1}
	if r.dim == 0 {
		if r.dim = m.intOr("attention.key_length", 0); r.dim == 0 {
			r.dim = m.dim / m.int("attention.head_count")
		}
	}
	base, factor := m.float("rope.freq_base", 10000), m.float("rope.scaling.factor", 1)
	kind, _ := m.md.String(m.arch + ".rope.scaling.type")
	factors := m.vector("rope_freqs.weight")
	for i := range r.dim / 2 {
		f := math.Pow(base, -2*float64(i)/float64(r.dim))
		if factors != nil {
			f /= float64(factors[i])
		}
		switch kind {
		case "yarn":
			keep := 1 - m.interpolated(i, r.dim, base)
			f = f*keep + f/factor*(1-keep)
		default:
			f /= factor
		}
		r.freqs = append(r.freqs, f)
	}
	if kind == "yarn" {
		r.scale = 0.1*math.Log(factor) + 1
		// DeepSeek's config has mscale and mscale_all_dim, the same in all of its models: the first's effect on the heads and the
		// second's cancel, and the scores are scaled instead (see mla.go).
		if m.float("rope.scaling.yarn_log_multiplier", 0) != 0 {
			r.scale = 1
		}
	}
	m.rope = r
}

// interpolated is how much of pair i's frequency YaRN divides by its factor: nothing where the pair turns often within the
// original context, all where it turns less than once.
func (m *Model) interpolated(i, dim int, base float64) float64 {
	context := m.float("rope.scaling.original_context_length", 0)
	if context == 0 {
		context = float64(m.int("context_length"))
	}
	pair := func(turns float64) float64 {
		return float64(dim) * math.Log(context/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := pair(m.float("rope.scaling.yarn_beta_fast", 32)), pair(m.float("rope.scaling.yarn_beta_slow", 1))
	if m.arch != "gpt-oss" { // its own code doesn't round
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(dim-1))
	if high == low {
		high += 0.001
	}
	return min(1, max(0, (float64(i)-low)/(high-low)))
}

// turn turns the heads of size n in x, the first dim values of each.
func (r *rope) turn(x []float64, n, pos int) {
	for at := 0; at < len(x); at += n {
		head := x[at : at+n]
		for i, f := range r.freqs {
			a, b := 2*i, 2*i+1
			if r.halves {
				a, b = i, i+r.dim/2
			}
			sin, cos := math.Sincos(float64(pos) * f)
			sin, cos = sin*r.scale, cos*r.scale
			head[a], head[b] = head[a]*cos-head[b]*sin, head[a]*sin+head[b]*cos
		}
	}
}
