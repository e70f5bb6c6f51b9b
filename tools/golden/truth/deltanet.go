package truth

import (
	"fmt"
	"math"
	"slices"
)

// qwen3next is the layer of Qwen3-Next (2025) and Qwen3.5: gated delta nets (Yang et al. 2024, arXiv:2412.06464), and in every fourth layer
// attention whose output has a gate; then experts with a shared one.
func qwen3next(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	h := m.norm(p+"attn_norm", x)
	if every := m.intOr("full_attention_interval", 4); (l+1)%every == 0 {
		addTo(x, s.gatedAttention(l, p, h))
	} else {
		addTo(x, s.deltaNet(l, p, h))
	}
	h = m.norm(p+"post_attention_norm", x)
	addTo(x, m.experts(p, h, swiglu))
	addTo(x, m.shared(p, h))
}

// gatedAttention is attention whose queries come with gates, head by head, for what comes out.
func (s *Session) gatedAttention(l int, p string, x []float64) []float64 {
	m, a := s.m, s.m.attention()
	var q, gates []float64
	for both := range slices.Chunk(m.linear(p+"attn_q", x), 2*a.key) {
		q, gates = append(q, both[:a.key]...), append(gates, both[a.key:]...)
	}
	k, v := m.linear(p+"attn_k", x), m.linear(p+"attn_v", x)
	m.headNorm(p+"attn_q_norm", q, a.key)
	m.headNorm(p+"attn_k_norm", k, a.key)
	m.rope.turn(q, a.key, s.pos)
	m.rope.turn(k, a.key, s.pos)
	c := &s.state[l]
	s.remember(c, k, v)
	out := a.of(q, c.keys, c.values)
	for i, g := range gates {
		out[i] *= sigmoid(g)
	}
	return m.linear(p+"attn_output", out)
}

// deltaNet is a gated delta net: a matrix for each head, of which a key reads, and corrects, a value.
func (s *Session) deltaNet(l int, p string, x []float64) []float64 {
	m, c := s.m, &s.state[l]
	size, keyHeads, heads := m.int("ssm.state_size"), m.int("ssm.group_count"), m.int("ssm.time_step_rank")
	each := heads / keyHeads

	// A short convolution over the last positions, of each channel by itself.
	taps := m.tensor(p + "ssm_conv1d.weight")
	c.inputs = append(c.inputs, m.linear(p+"attn_qkv", x))
	mixed := make([]float64, taps.shape[0])
	for ch := range mixed {
		for t := range taps.shape[1] {
			if at := len(c.inputs) - taps.shape[1] + t; at >= 0 {
				mixed[ch] += float64(taps.values[ch*taps.shape[1]+t]) * c.inputs[at][ch]
			}
		}
		mixed[ch] = silu(mixed[ch])
	}
	queries, keys, values := mixed[:keyHeads*size], mixed[keyHeads*size:2*keyHeads*size], mixed[2*keyHeads*size:]

	var beta, alpha []float64
	if m.has(p + "ssm_ba.weight") { // for each key head its value heads' betas, then their alphas
		for both := range slices.Chunk(m.linear(p+"ssm_ba", x), 2*each) {
			beta, alpha = append(beta, both[:each]...), append(alpha, both[each:]...)
		}
	} else {
		beta, alpha = m.linear(p+"ssm_beta", x), m.linear(p+"ssm_alpha", x)
	}
	if c.matrices == nil {
		c.matrices = make([][]float64, heads)
		for h := range heads {
			c.matrices[h] = make([]float64, size*size)
		}
	}
	decay, bias := m.tensor(p+"ssm_a").values, m.tensor(p+"ssm_dt.bias").values
	var out []float64
	for h := range heads {
		from := h / each
		if m.arch == "qwen35moe" { // its files have the value heads in another order
			from = h % keyHeads
		}
		q, k := unit(queries[from*size:(from+1)*size]), unit(keys[from*size:(from+1)*size])
		for i := range q {
			q[i] /= math.Sqrt(float64(size))
		}
		fade := math.Exp(float64(decay[h]) * math.Log1p(math.Exp(alpha[h]+float64(bias[h]))))
		head := deltaStep(c.matrices[h], q, k, values[h*size:(h+1)*size], fade, sigmoid(beta[h]))
		out = append(out, m.rmsNorm(head, m.tensor(p+"ssm_norm.weight").values)...)
	}
	return m.linear(p+"ssm_out", swiglu(m.linear(p+"attn_gate", x), out))
}

// deltaStep fades the matrix s (key, value), moves what k reads from it towards v by beta, and returns what q reads.
func deltaStep(s, q, k, v []float64, fade, beta float64) []float64 {
	n := len(v)
	out := make([]float64, n)
	for j := range n {
		read := 0.0
		for i := range k {
			s[i*n+j] *= fade
			read += s[i*n+j] * k[i]
		}
		for i := range k {
			s[i*n+j] += k[i] * (v[j] - read) * beta
			out[j] += s[i*n+j] * q[i]
		}
	}
	return out
}

// unit is x of length 1.
func unit(x []float64) []float64 {
	sum, y := 1e-6, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(sum)
	}
	return y
}
