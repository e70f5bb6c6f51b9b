package truth

import (
	"math"
	"slices"
)

// How an expert's score becomes its weight; the numbers are those of the key expert_gating_func.
const (
	gateSoftMax = 1 // softmax over all experts
	gateSigmoid = 2 // sigmoid of each
	gateLate    = 3 // softmax over the chosen ones
)

// defaults of an architecture whose files say nothing.
func (m *Model) normalises() bool {
	switch m.arch {
	case "llama", "qwen3moe", "qwen3vlmoe", "glm4moe", "qwen3next", "qwen35moe", "mimo2", "kimi-linear":
		return true
	}
	return false
}

// route chooses experts by their scores: which, and with what weight.
func (m *Model) route(prefix string, scores []float64) (chosen []int, weights []float64) {
	if m.arch == "phimoe" {
		return sparseMixer(scores, m.int("expert_used_count"))
	}
	gating := m.intOr("expert_gating_func", map[string]int{"glm4moe": gateSigmoid, "mimo2": gateSigmoid, "step35": gateSigmoid, "exaone-moe": gateSigmoid, "gpt-oss": gateLate}[m.arch])
	if gating == 0 {
		gating = gateSoftMax
	}
	p := slices.Clone(scores)
	switch gating {
	case gateSoftMax:
		softMax(p)
	case gateSigmoid:
		for i, v := range p {
			p[i] = sigmoid(v)
		}
	}
	by := slices.Clone(p) // what chooses: a bias balances the experts' load, but weighs nothing
	for i, b := range m.vector(prefix + "exp_probs_b.bias") {
		by[i] += float64(b)
	}
	if groups := m.intOr("expert_group_count", 1); groups > 1 {
		// DeepSeek-V2 takes the groups with the best expert; V3, whose router is of sigmoids, those with the best two together.
		closeGroups(by, groups, m.int("expert_group_used_count"), map[bool]int{true: 2, false: 1}[gating == gateSigmoid])
	}
	for range m.int("expert_used_count") {
		e := best(by)
		by[e] = math.Inf(-1)
		chosen, weights = append(chosen, e), append(weights, p[e])
	}
	if gating == gateLate {
		softMax(weights)
	}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i := range weights {
		if m.bool("expert_weights_norm", m.normalises()) {
			weights[i] /= sum
		}
		weights[i] *= m.float("expert_weights_scale", 1)
	}
	return chosen, weights
}

// closeGroups leaves the experts of `used` groups only: those whose `of` best have the largest sum.
func closeGroups(by []float64, groups, used, of int) {
	size := len(by) / groups
	sums := make([]float64, groups)
	for g := range sums {
		sorted := slices.Sorted(slices.Values(by[g*size : (g+1)*size]))
		for _, v := range sorted[size-of:] {
			sums[g] += v
		}
	}
	open := make([]bool, groups)
	for range used {
		g := best(sums)
		open[g], sums[g] = true, math.Inf(-1)
	}
	for e := range by {
		if !open[e/size] {
			by[e] = math.Inf(-1)
		}
	}
}

// experts is a mixture of FFNs with an activation of gate and up: those that the router chooses, by weight.
func (m *Model) experts(prefix string, x []float64, act func(gate, up []float64) []float64) []float64 {
	out := make([]float64, len(x))
	chosen, weights := m.route(prefix, m.linear(prefix+"ffn_gate_inp", x))
	for i, e := range chosen {
		y := m.expert(prefix+"ffn_down_exps", e, act(m.expert(prefix+"ffn_gate_exps", e, x), m.expert(prefix+"ffn_up_exps", e, x)))
		for j, v := range y {
			out[j] += weights[i] * v
		}
	}
	return out
}

// shared is the expert that every token uses, if there is one; qwen2moe's has a gate of one value.
func (m *Model) shared(prefix string, x []float64) []float64 {
	if !m.has(prefix + "ffn_up_shexp.weight") {
		return make([]float64, len(x))
	}
	y := m.ffn(prefix, "_shexp", x)
	if m.has(prefix + "ffn_gate_inp_shexp.weight") {
		gate := sigmoid(m.linear(prefix+"ffn_gate_inp_shexp", x)[0])
		for i := range y {
			y[i] *= gate
		}
	}
	return y
}

// expert is linear with expert e's part of a stack.
func (m *Model) expert(name string, e int, x []float64) []float64 {
	y := multiply(m.tensor(name+".weight").part(e), x)
	if scales := m.vector(name + ".scale"); scales != nil {
		scaleBy(y, scales[e])
	}
	if m.has(name + ".bias") {
		for i, b := range m.tensor(name + ".bias").part(e).values {
			y[i] += float64(b)
		}
	}
	return y
}
