package truth

import (
	"fmt"
	"math"
	"slices"
)

// gemma4 is the layer of Gemma 4 (Google 2026) with inputs that layers have of their own, and without experts. The last shared_kv_layers layers look at the keys and values of the last
// layer before them that sees as far as they do.
func gemma4(s *Session, l int, x []float64) {
	m, p := s.m, fmt.Sprintf("blk.%d.", l)
	if l == 0 {
		for i := range x {
			x[i] *= math.Sqrt(float64(m.dim))
		}
		s.inputs = layerInputs(m, s.token, x)
	}
	addTo(x, m.norm(p+"post_attention_norm", s.sharedAttention(l, p, m.norm(p+"attn_norm", x))))
	h := m.norm(p+"ffn_norm", x)
	addTo(x, m.norm(p+"post_ffw_norm", m.linear(p+"ffn_down", geglu(m.linear(p+"ffn_gate", h), m.linear(p+"ffn_up", h)))))
	size := len(s.inputs) / m.layers
	gated := geglu(m.linear(p+"inp_gate", x), s.inputs[l*size:(l+1)*size])
	addTo(x, m.norm(p+"post_norm", m.linear(p+"proj", gated)))
	for i := range x {
		x[i] *= float64(m.vector(p + "layer_output_scale.weight")[0])
	}
}

// layerInputs has what layers get beside x, the scaled embedding of a token: for each layer (a + b)/√2, a a product of x, normalised, b a second embedding.
func layerInputs(m *Model, token int, x []float64) []float64 {
	a, size := m.linear("per_layer_model_proj", x), m.int("embedding_length_per_layer_input")
	for i := range a {
		a[i] /= math.Sqrt(float64(m.dim))
	}
	m.headNorm("per_layer_proj_norm", a, size)
	for i, b := range m.tensor("per_layer_token_embd.weight").part(token).values {
		a[i] = (a[i] + float64(b)*math.Sqrt(float64(size))) / math.Sqrt2
	}
	return a
}

func (s *Session) sharedAttention(l int, p string, x []float64) []float64 {
	m := s.m
	windowed, _ := m.md.Get(m.arch + ".attention.sliding_window_pattern")
	near := windowed.([]bool)
	a := attention{heads: m.int("attention.head_count"), key: m.int("attention.key_length"), scale: 1}
	r := plainRope(a.key, m.float("rope.freq_base", 1e6), m.vector("rope_freqs.weight"))
	if near[l] {
		a.key, a.window = m.int("attention.key_length_swa"), m.int("attention.sliding_window")
		r = plainRope(a.key, m.float("rope.freq_base_swa", 1e4), nil)
	}
	a.value = a.key
	from := l
	if first := m.layers - m.int("attention.shared_kv_layers"); l >= first {
		for from = first - 1; near[from] != near[l]; from-- {
		}
	}
	q := m.linear(p+"attn_q", x)
	m.headNorm(p+"attn_q_norm", q, a.key)
	r.turn(q, a.key, s.pos)
	c := &s.state[from]
	if from == l {
		k, v := m.linear(p+"attn_k", x), m.linear(p+"attn_v", x)
		m.headNorm(p+"attn_k_norm", k, a.key)
		r.turn(k, a.key, s.pos)
		ones := slices.Repeat([]float32{1}, a.key)
		for head := range slices.Chunk(v, a.key) {
			copy(head, m.rmsNorm(head, ones))
		}
		s.remember(c, k, v)
	}
	a.headsKV = len(c.keys[0]) / a.key
	return m.linear(p+"attn_output", a.of(q, c.keys, c.values))
}

// geglu is gelu(gate) * up, gelu by tanh.
func geglu(gate, up []float64) []float64 {
	y := make([]float64, len(gate))
	for i, g := range gate {
		y[i] = g / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g))) * up[i]
	}
	return y
}
