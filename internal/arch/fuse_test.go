package arch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// shorthand of an op, and of those it stands for.
func (o Op) short() string {
	names := map[Value]string{X: "X", Norm: "Norm", Q: "Q", K: "K", V: "V", Att: "Att", Gate: "Gate", Up: "Up", Scores: "Scores", Chosen: "Chosen", ExpertOut: "ExpertOut"}
	kinds := map[Kind]string{RMSNorm: "norm", MulMat: "mul", Bias: "bias", MulWeight: "scaled", RopeHeads: "rope", KVAppend: "append", Attention: "attend", SwiGLU: "swiglu", Add: "add",
		Siblings: "siblings", Gated: "gated", Added: "added", RopedAppend: "turned", RopedProducts: "turned products", NormedRopedAppend: "normed", Route: "route", NormedRoute: "routed", Experts: "experts", SumExperts: "sum"}
	s := kinds[o.Kind]
	switch o.Kind {
	case Siblings, KVAppend, RopedAppend, RopedProducts, NormedRopedAppend:
	default:
		s += " " + names[o.Dst]
	}
	if o.Ops != nil {
		s += fmt.Sprint(" of ", len(o.Ops))
	}
	if o.Multiplied {
		s += ", multiplied"
	}
	return s
}

func shorts(ops []Op) (s []string) {
	for _, o := range ops {
		s = append(s, o.short())
	}
	return s
}

func TestFuseLayer(t *testing.T) {
	none := func(string) bool { return false }
	biased := func(name string) bool { return strings.HasSuffix(name, ".bias") }
	scaled := func(name string) bool { return strings.HasSuffix(name, ".scale") }
	for _, c := range []struct {
		name, arch string
		has        func(string) bool
		want       []string
	}{
		{"llama", "llama", none, []string{"norm Norm, multiplied", "turned products of 2", "attend Att", "added X of 2",
			"norm Norm, multiplied", "gated Gate of 3", "added X of 2"}},
		{"biases", "qwen2", biased, []string{"norm Norm, multiplied", "turned products of 2", "attend Att", "added X of 3",
			"norm Norm, multiplied", "gated Gate of 5", "added X of 3"}},
		{"scales", "llama", scaled, []string{"norm Norm, multiplied", "turned products of 2", "attend Att", "added X of 3",
			"norm Norm, multiplied", "gated Gate of 5", "added X of 3"}},
		{"head norms", "qwen3", none, []string{"norm Norm, multiplied", "siblings of 3", "normed of 3", "attend Att", "added X of 2",
			"norm Norm, multiplied", "gated Gate of 3", "added X of 2"}},
		{"experts", "qwen3moe", none, []string{"norm Norm, multiplied", "siblings of 3", "normed of 3", "attend Att", "added X of 2",
			"routed Norm of 3", "experts ExpertOut of 4", "sum X"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &Hyper{Architecture: c.arch, EmbeddingLength: 64, ResidualScale: 1, Layers: make([]LayerShape, 5)}
			h.Layers[3] = LayerShape{HeadCount: 4, HeadCountKV: 2, KeyLength: 16, ValueLength: 16, FeedForwardLength: 128}
			if c.name == "experts" {
				h.Experts, h.Layers[3].Experts = Mixture{Count: 8, Used: 2, FeedForwardLength: 32}, true
			}
			plain := h.Layer(3, c.has)
			fused := Fuse(plain)
			if got := shorts(fused); !slices.Equal(got, c.want) {
				t.Errorf("fused\n got %q\nwant %q", got, c.want)
			}
			if got := flat(fused); !reflect.DeepEqual(got, plain) {
				t.Errorf("the operations within are\n got %q\nwant %q", shorts(got), shorts(plain))
			}
			var names []string
			for _, o := range plain {
				names = append(names, o.Weights()...)
			}
			var got []string
			for _, o := range fused {
				got = append(got, o.Weights()...)
			}
			if !slices.Equal(got, names) {
				t.Errorf("weights\n got %q\nwant %q", got, names)
			}
		})
	}
}

// flat is what fused operations stand for.
func flat(ops []Op) (plain []Op) {
	for _, o := range ops {
		if o.Ops != nil && o.Kind != Experts {
			plain = append(plain, flat(o.Ops)...)
			continue
		}
		o.Multiplied = false
		plain = append(plain, o)
	}
	return plain
}

// What is read later, or in another order, stays as it is.
func TestFuseNot(t *testing.T) {
	mul := func(dst, a Value) Op { return Op{Kind: MulMat, Dst: dst, A: a, Weight: "w"} }
	add := func(dst, a, b Value) Op { return Op{Kind: Add, Dst: dst, A: a, B: b} }
	glu := Op{Kind: SwiGLU, Dst: Gate, A: Gate, B: Up}
	for _, c := range []struct {
		name string
		ops  []Op
		want []string
	}{
		{"the product is read again", []Op{mul(Norm, Att), add(X, X, Norm), mul(Q, Norm)}, []string{"mul Norm", "add X", "mul Q"}},
		{"the product is written again", []Op{mul(Norm, Att), add(X, X, Norm), mul(Norm, Att), add(X, X, Norm)}, []string{"added X of 2", "added X of 2"}},
		{"the product is the residual stream", []Op{mul(X, Att), add(Norm, X, Gate)}, []string{"mul X", "add Norm"}},
		{"added to itself", []Op{mul(Norm, Att), add(X, Norm, Norm)}, []string{"mul Norm", "add X"}},
		{"added the other way round", []Op{mul(Norm, Att), add(X, Norm, X)}, []string{"added X of 2"}},
		{"another sum", []Op{mul(Norm, Att), add(X, X, Gate)}, []string{"mul Norm", "add X"}},
		{"two inputs", []Op{mul(Q, Norm), mul(K, Att)}, []string{"mul Q", "mul K"}},
		{"one output", []Op{mul(Q, Norm), mul(Q, Norm)}, []string{"mul Q", "mul Q"}},
		{"the input is overwritten", []Op{mul(Norm, Norm), mul(K, Norm)}, []string{"mul Norm", "mul K"}},
		{"a sibling too many", []Op{mul(Q, Norm), mul(K, Norm), mul(V, Norm), mul(Att, Norm)}, []string{"siblings of 3", "mul Att"}},
		{"up is read again", []Op{mul(Gate, Norm), mul(Up, Norm), glu, mul(Q, Up)}, []string{"siblings of 2", "swiglu Gate", "mul Q"}},
		{"gate and up swapped", []Op{mul(Up, Norm), mul(Gate, Norm), glu}, []string{"siblings of 2", "swiglu Gate"}},
		{"K is read again", []Op{{Kind: RopeHeads, Dst: Q}, {Kind: RopeHeads, Dst: K}, {Kind: KVAppend}, mul(Norm, K)}, []string{"rope Q", "rope K", "append", "mul Norm"}},
		{"a norm of heads elsewhere", []Op{{Kind: RMSNorm, Dst: Q, A: QueryGate}, {Kind: RMSNorm, Dst: K, A: K}, {Kind: RopeHeads, Dst: Q}, {Kind: RopeHeads, Dst: K}, {Kind: KVAppend, B: V}},
			[]string{"norm Q", "norm K", "turned of 3"}},
		{"V is read again", []Op{mul(Q, Norm), mul(K, Norm), mul(V, Norm), {Kind: RopeHeads, Dst: Q}, {Kind: RopeHeads, Dst: K}, {Kind: KVAppend, A: K, B: V}, mul(Norm, V)}, []string{"siblings of 3", "turned of 3", "mul Norm"}},
		{"V is of another input", []Op{mul(Q, Norm), mul(K, Norm), mul(V, Att), {Kind: RopeHeads, Dst: Q}, {Kind: RopeHeads, Dst: K}, {Kind: KVAppend, A: K, B: V}}, []string{"siblings of 2", "mul V", "turned of 3"}},
		{"products in another order", []Op{mul(K, Norm), mul(Q, Norm), mul(V, Norm), {Kind: RopeHeads, Dst: Q}, {Kind: RopeHeads, Dst: K}, {Kind: KVAppend, A: K, B: V}}, []string{"siblings of 3", "turned of 3"}},
		{"norms of heads that are not turned", []Op{{Kind: RMSNorm, Dst: Q, A: Q}, {Kind: RMSNorm, Dst: K, A: K}, {Kind: RopeHeads, Dst: K}, {Kind: RopeHeads, Dst: Q}}, []string{"norm Q", "norm K", "rope K", "rope Q"}},
		{"a router with a bias", []Op{{Kind: RMSNorm, Dst: Norm, A: X, Heads: 1}, mul(Scores, Norm), {Kind: Bias, Dst: Scores}, {Kind: Route, Dst: Chosen, A: Scores}},
			[]string{"norm Norm, multiplied", "mul Scores", "bias Scores", "route Chosen"}},
		{"a router of something else", []Op{{Kind: RMSNorm, Dst: Norm, A: X, Heads: 1}, mul(Scores, X), {Kind: Route, Dst: Chosen, A: Scores}}, []string{"norm Norm", "mul Scores", "route Chosen"}},
		{"a norm in place before a router", []Op{{Kind: RMSNorm, Dst: X, A: X, Heads: 1}, mul(Scores, X), {Kind: Route, Dst: Chosen, A: Scores}}, []string{"norm X, multiplied", "mul Scores", "route Chosen"}},
		{"scores that are read again", []Op{{Kind: RMSNorm, Dst: Norm, A: X, Heads: 1}, mul(Scores, Norm), {Kind: Route, Dst: Chosen, A: Scores}, add(X, X, Scores)},
			[]string{"norm Norm, multiplied", "mul Scores", "route Chosen", "add X"}},
		{"a norm that is not multiplied", []Op{{Kind: RMSNorm, Dst: Norm, A: X}, add(X, X, Norm), {Kind: RMSNorm, Dst: Norm, A: X}, mul(Q, Norm)},
			[]string{"norm Norm", "add X", "norm Norm, multiplied", "mul Q"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shorts(Fuse(c.ops)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
