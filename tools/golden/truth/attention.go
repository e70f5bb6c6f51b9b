package truth

import "math"

// attention says how a layer's heads look at what came before.
type attention struct {
	heads, headsKV int
	key, value     int     // sizes of a head
	scale          float64 // on scores
	window         int     // positions that are seen, with the own one; 0: all
	sinks          []float32
	rope           *rope // of queries and keys; nil: none
}

func (m *Model) attention() attention {
	a := attention{heads: m.int("attention.head_count")}
	a.headsKV = m.intOr("attention.head_count_kv", a.heads)
	a.key = m.intOr("attention.key_length", m.dim/a.heads)
	a.value = m.intOr("attention.value_length", a.key)
	a.scale, a.rope = 1/math.Sqrt(float64(a.key)), &m.rope
	return a
}

// of is attention of q, the heads of one position, over all positions so far.
func (a *attention) of(q []float64, keys, values [][]float64) []float64 {
	out := make([]float64, a.heads*a.value)
	first := 0
	if a.window > 0 {
		first = max(0, len(keys)-a.window)
	}
	for h := range a.heads {
		kv := h / (a.heads / a.headsKV)
		var scores []float64
		for _, k := range keys[first:] {
			s := 0.0
			for i, v := range q[h*a.key : (h+1)*a.key] {
				s += v * k[kv*a.key+i]
			}
			scores = append(scores, s*a.scale)
		}
		if a.sinks != nil { // one score more, of nothing
			scores = append(scores, float64(a.sinks[h]))
		}
		softMax(scores)
		for t, v := range values[first:] {
			for i := range a.value {
				out[h*a.value+i] += scores[t] * v[kv*a.value+i]
			}
		}
	}
	return out
}

// attend is attention with the usual projections of x, their biases and norms of heads where the file has them.
func (s *Session) attend(a attention, l int, prefix string, x []float64) []float64 {
	return s.m.linear(prefix+"attn_output", s.look(a, l, prefix, x))
}

// look is attend before its last projection.
func (s *Session) look(a attention, l int, prefix string, x []float64) []float64 {
	m := s.m
	q, k, v := m.linear(prefix+"attn_q", x), m.linear(prefix+"attn_k", x), m.linear(prefix+"attn_v", x)
	m.headNorm(prefix+"attn_q_norm", q, a.key)
	m.headNorm(prefix+"attn_k_norm", k, a.key)
	if a.rope != nil {
		a.rope.turn(q, a.key, s.pos)
		a.rope.turn(k, a.key, s.pos)
	}
	c := &s.state[l]
	s.remember(c, k, v)
	return a.of(q, c.keys, c.values)
}
