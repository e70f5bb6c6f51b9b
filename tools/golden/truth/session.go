package truth

import (
	"fmt"
	"math"
	"slices"

	"leat/gguf/quant"
)

// Session is one sequence of tokens.
type Session struct {
	Halves bool // what attention remembers is rounded to F16, as in a KV cache of that type

	m     *Model
	pos   int
	state []state // by layer

	token  int       // the one being taken
	inputs []float64 // what layers get beside the residual stream, one layer's after the other
}

// state is what a layer remembers of a sequence.
type state struct {
	keys, values [][]float64 // by position

	// Of a gated delta net.
	inputs   [][]float64 // of the convolution, by position
	matrices [][]float64 // by head
}

// kept is x as attention remembers it.
func (s *Session) kept(x []float64) []float64 {
	x = slices.Clone(x)
	if s.Halves {
		for i, v := range x {
			x[i] = float64(quant.F16ToF32(quant.F32ToF16(float32(v))))
		}
	}
	return x
}

// remember adds the keys and values of a position to what a layer's attention sees.
func (s *Session) remember(c *state, keys, values []float64) {
	c.keys, c.values = append(c.keys, s.kept(keys)), append(c.values, s.kept(values))
}

// NewSession begins a sequence.
func (m *Model) NewSession() *Session { return &Session{m: m, state: make([]state, m.layers)} }

// Next takes one token more and returns the logits of what follows it.
func (s *Session) Next(token int) (logits []float64, err error) {
	defer caught(&err)
	m := s.m
	if token < 0 || token >= m.vocab {
		return nil, fmt.Errorf("found token %d, wanted 0 to %d", token, m.vocab-1)
	}
	s.token = token
	x := make([]float64, m.dim)
	for i, v := range m.tensor("token_embd.weight").part(token).values {
		x[i] = float64(v)
	}
	for l := range m.layers {
		m.layer(s, l, x)
	}
	s.pos++
	if m.has("output_norm.bias") {
		x = layerNorm(m, "output_norm", x)
	} else {
		x = m.norm("output_norm", x)
	}
	if m.has("output.weight") {
		logits = m.linear("output", x)
	} else {
		logits = multiply(m.tensor("token_embd.weight"), x)
	}
	if most := m.float("final_logit_softcapping", 0); most > 0 {
		for i, v := range logits {
			logits[i] = most * math.Tanh(v/most)
		}
	}
	return logits, nil
}

// Greedy continues tokens by the most likely ones, n of them, and returns these and the logits of all rows.
func (m *Model) Greedy(tokens []int, n int) (greedy []int, logits [][]float64, err error) {
	s := m.NewSession()
	for i := range len(tokens) + n {
		var next int
		if i < len(tokens) {
			next = tokens[i]
		} else {
			next = best(logits[i-1])
			greedy = append(greedy, next)
		}
		row, err := s.Next(next)
		if err != nil {
			return nil, nil, fmt.Errorf("token %d: %w", i, err)
		}
		logits = append(logits, row)
	}
	return greedy, logits, nil
}

func best(x []float64) int {
	b := 0
	for i, v := range x {
		if v > x[b] {
			b = i
		}
	}
	return b
}
