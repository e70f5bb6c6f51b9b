package truth

import (
	"fmt"
	"math"
	"slices"
)

// deepSeek is the layer of DeepSeek-V2 (2024, arXiv:2405.04434) and V3 (arXiv:2412.19437): attention whose keys and values are made
// of a latent, here for each position and head as the papers write them, and experts but in the first layers.
func deepSeek(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	addTo(x, s.latentAttention(l, p, m.norm(p+"attn_norm", x)))
	h := m.norm(p+"ffn_norm", x)
	if l < m.intOr("leading_dense_block_count", 0) {
		addTo(x, m.ffn(p, "", h))
		return
	}
	addTo(x, m.experts(p, h, swiglu))
	addTo(x, m.shared(p, h))
}

func (s *Session) latentAttention(l int, p string, x []float64) []float64 {
	m := s.m
	heads, turned, rank := m.int("attention.head_count"), m.rope.dim, m.int("attention.kv_lora_rank")
	a := attention{heads: heads, headsKV: heads, key: m.int("attention.key_length_mla"), value: m.int("attention.value_length_mla")}
	still := a.key - turned
	a.scale = 1 / math.Sqrt(float64(a.key))
	if log := m.float("rope.scaling.yarn_log_multiplier", 0); log != 0 {
		mscale := 1 + log*math.Log(m.float("rope.scaling.factor", 1))
		a.scale *= mscale * mscale
	}
	var q []float64
	if m.has(p + "attn_q_a.weight") {
		q = m.linear(p+"attn_q_b", m.norm(p+"attn_q_a_norm", m.linear(p+"attn_q_a", x)))
	} else {
		q = m.linear(p+"attn_q", x)
	}
	for h := range heads {
		turnLatent(m, q[h*a.key+still:(h+1)*a.key], s.pos)
	}
	both := m.linear(p+"attn_kv_a_mqa", x)
	latent, shared := m.norm(p+"attn_kv_a_norm", both[:rank]), both[rank:]
	turnLatent(m, shared, s.pos)
	latent, shared = s.kept(latent), s.kept(shared) // the cache has these; keys and values of heads follow from them
	var keys, values []float64
	for h := range heads {
		keys = append(keys, multiplyTransposed(m.tensor(p+"attn_k_b.weight").part(h), latent)...)
		keys = append(keys, shared...)
		values = append(values, multiply(m.tensor(p+"attn_v_b.weight").part(h), latent)...)
	}
	c := &s.state[l]
	c.keys, c.values = append(c.keys, slices.Clip(keys)), append(c.values, slices.Clip(values))
	return m.linear(p+"attn_output", a.of(q, c.keys, c.values))
}

// turnLatent turns the part of a head that is not computed from a latent.
func turnLatent(m *Model, x []float64, pos int) {
	if m.arch != "kimi-linear" {
		m.rope.turn(x, m.rope.dim, pos)
	}
}

// multiplyTransposed is wᵀ · x, w (rows, cols): files hold the keys' matrix turned.
func multiplyTransposed(w *tensor, x []float64) []float64 {
	y := make([]float64, w.shape[1])
	for i, v := range x {
		for j := range y {
			y[j] += float64(w.values[i*len(y)+j]) * v
		}
	}
	return y
}
