package truth

import (
	"fmt"
	"math"
)

// kimiLinear is the layer of Kimi Linear (2025, arXiv:2510.26692): Kimi delta attention, or latent attention that nothing turns; then experts but in the first layers.
func kimiLinear(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	h := m.norm(p+"attn_norm", x)
	if m.has(p + "ssm_a") {
		addTo(x, s.kimiDelta(l, p, h))
	} else {
		addTo(x, s.latentAttention(l, p, h))
	}
	h = m.norm(p+"ffn_norm", x)
	if l < m.intOr("leading_dense_block_count", 0) {
		addTo(x, m.ffn(p, "", h))
		return
	}
	addTo(x, m.experts(p, h, swiglu))
	addTo(x, m.shared(p, h))
}

// kimiDelta is a matrix for each head, S (key, value): S = (I - b k kᵀ) Diag(f) S + b k vᵀ; what comes out is Sᵀ q.
func (s *Session) kimiDelta(l int, p string, x []float64) []float64 {
	m, c := s.m, &s.state[l]
	n, heads := m.int("kda.head_dim"), m.int("attention.head_count")
	var mixed [3][]float64
	row := make([]float64, 0, 3*heads*n)
	for _, part := range []string{"q", "k", "v"} {
		row = append(row, m.linear(p+"attn_"+part, x)...)
	}
	c.inputs = append(c.inputs, row)
	for i, part := range []string{"q", "k", "v"} {
		taps, count := m.tensor(p+"ssm_conv1d_"+part+".weight").values, m.int("ssm.conv_kernel")
		for ch := range heads * n {
			sum := 0.0
			for t := range count {
				if at := len(c.inputs) - count + t; at >= 0 {
					sum += float64(taps[ch*count+t]) * c.inputs[at][i*heads*n+ch]
				}
			}
			mixed[i] = append(mixed[i], silu(sum))
		}
	}
	rates, betas := m.linear(p+"ssm_f_b", m.linear(p+"ssm_f_a", x)), m.linear(p+"ssm_beta", x)
	gates := m.linear(p+"ssm_g_b", m.linear(p+"ssm_g_a", x))
	if c.matrices == nil {
		c.matrices = make([][]float64, heads)
		for h := range heads {
			c.matrices[h] = make([]float64, n*n)
		}
	}
	var out []float64
	for h := range heads {
		q, k, v := unit(mixed[0][h*n:(h+1)*n]), unit(mixed[1][h*n:(h+1)*n]), mixed[2][h*n:(h+1)*n]
		state := c.matrices[h]
		for i := range n {
			at := h*n + i
			rate := math.Log1p(math.Exp(rates[at] + float64(m.vector(p + "ssm_dt.bias")[at])))
			for j := range n {
				state[i*n+j] *= math.Exp(float64(m.vector(p + "ssm_a")[h]) * rate)
			}
			q[i] /= math.Sqrt(float64(n))
		}
		head := m.rmsNorm(deltaStep(state, q, k, v, 1, sigmoid(betas[h])), m.tensor(p+"ssm_norm.weight").values)
		for j, o := range head {
			out = append(out, o*sigmoid(gates[h*n+j]))
		}
	}
	return m.linear(p+"attn_output", out)
}
