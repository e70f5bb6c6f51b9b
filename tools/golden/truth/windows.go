package truth

import (
	"fmt"
	"math"
)

// at is layer l's value of a key that has one for each layer, or for all.
func at(m *Model, key string, l int) int {
	if all, ok := m.md.Ints(m.arch + "." + key); ok {
		return int(all[l])
	}
	return m.int(key)
}

// windowed reports whether a file's pattern gives layer l a window: bools, or 0 and 1.
func windowed(m *Model, l int) bool {
	const key = "attention.sliding_window_pattern"
	if v, ok := m.md.Get(m.arch + "." + key); ok {
		if all, ok := v.([]bool); ok {
			return all[l]
		}
	}
	return at(m, key, l) != 0
}

// attentionAt is attention of layer l, of a model whose layers differ in heads and windows.
func attentionAt(m *Model, l int) attention {
	a := attention{heads: at(m, "attention.head_count", l), headsKV: at(m, "attention.head_count_kv", l), key: m.int("attention.key_length")}
	a.value, a.scale = m.intOr("attention.value_length", a.key), 1/math.Sqrt(float64(a.key))
	if windowed(m, l) {
		a.window = m.int("attention.sliding_window")
	}
	return a
}

// plainRope turns the first dim values of heads by pairs (i, i+dim/2). factors divide the frequencies; nil: nothing does.
func plainRope(dim int, base float64, factors []float32) *rope {
	r := &rope{dim: dim, halves: true, scale: 1}
	for i := range dim / 2 {
		f := math.Pow(base, -2*float64(i)/float64(dim))
		if factors != nil {
			f /= float64(factors[i])
		}
		r.freqs = append(r.freqs, f)
	}
	return r
}

// mimo2 is the layer of Xiaomi's MiMo-V2-Flash (2025): windows have sinks, more key heads and a rope base of their own; attention's output is scaled.
func mimo2(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	a := attentionAt(m, l)
	a.sinks, a.rope = m.vector(p+"attn_sinks.weight"), &m.rope
	if a.window > 0 {
		a.rope = plainRope(m.rope.dim, m.float("rope.freq_base_swa", 10000), nil)
	}
	heads := s.look(a, l, p, m.norm(p+"attn_norm", x))
	for i := range heads {
		heads[i] *= m.float("attention.value_scale", 1)
	}
	addTo(x, m.linear(p+"attn_output", heads))
	h := m.norm(p+"ffn_norm", x)
	if m.has(p + "ffn_gate_inp.weight") {
		addTo(x, m.experts(p, h, swiglu))
		return
	}
	addTo(x, m.ffn(p, "", h))
}

// exaoneMoE is the layer of LG's K-EXAONE (2025): rope in windows only.
func exaoneMoE(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	a := attentionAt(m, l)
	if a.window > 0 {
		a.rope = &m.rope
	}
	addTo(x, s.attend(a, l, p, m.norm(p+"attn_norm", x)))
	h := m.norm(p+"ffn_norm", x)
	if !m.has(p + "ffn_gate_inp.weight") {
		addTo(x, m.ffn(p, "", h))
		return
	}
	addTo(x, m.experts(p, h, swiglu))
	addTo(x, m.shared(p, h))
}

// step35 is the layer of StepFun's Step-3.5-Flash (2026): windows have more heads, and heads that turn whole, not half; each head has a gate; some layers bound what
// their experts multiply.
func step35(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	a := attentionAt(m, l)
	if a.rope = plainRope(a.key/2, m.float("rope.freq_base", 0), m.vector("rope_freqs.weight")); a.window > 0 {
		a.rope = plainRope(a.key, m.float("rope.freq_base_swa", 10000), nil)
	}
	n := m.norm(p+"attn_norm", x)
	heads := s.look(a, l, p, n)
	for h, gate := range m.linear(p+"attn_gate", n) {
		for i := range a.value {
			heads[h*a.value+i] *= sigmoid(gate)
		}
	}
	addTo(x, m.linear(p+"attn_output", heads))
	n = m.norm(p+"ffn_norm", x)
	ending := ""
	if m.has(p + "ffn_gate_inp.weight") {
		ending = "_shexp"
		addTo(x, m.experts(p, n, boundedSwiGLU(bound(m, "swiglu_clamp_exp", l))))
	}
	act := boundedSwiGLU(bound(m, "swiglu_clamp_shexp", l))
	addTo(x, m.linear(p+"ffn_down"+ending, act(m.linear(p+"ffn_gate"+ending, n), m.linear(p+"ffn_up"+ending, n))))
}

// bound is layer l's value of a key with a float for each layer.
func bound(m *Model, key string, l int) float64 {
	all, ok := m.md.Floats(m.arch + "." + key)
	if !ok {
		fail("key %q is missing", key)
	}
	return float64(all[l])
}

// boundedSwiGLU is silu(gate) * up, silu(gate) at most c, up between -c and c; c 0 bounds nothing.
func boundedSwiGLU(c float64) func(gate, up []float64) []float64 {
	if c == 0 {
		return swiglu
	}
	return func(gate, up []float64) []float64 {
		y := make([]float64, len(gate))
		for i := range y {
			y[i] = min(silu(gate[i]), c) * max(-c, min(up[i], c))
		}
		return y
	}
}
