package arch

import "slices"

// Fuse replaces operations of a layer that a device may run as one by an operation that holds them in its Ops. The results are the same, but
// values that nothing reads any more may not be written: products that are only added or gated, K and V once they are in the cache, Scores once
// experts are chosen. It sets Multiplied, too.
func Fuse(ops []Op) []Op {
	var out []Op
	for i := 0; i < len(ops); {
		fused, n := fuse(ops[i:])
		if n == 0 {
			fused, n = ops[i], 1
			fused.Multiplied = fused.Kind == RMSNorm && multiplied(ops[i+1:], fused.Dst)
		}
		out = append(out, fused)
		i += n
	}
	return out
}

// fuse puts the first n of ops together into one; n is 0 if they fit nothing.
func fuse(ops []Op) (fused Op, n int) {
	for _, match := range []func([]Op) (Op, int){gated, added, siblingsTurned, siblings, headsNormed, turned, routed} {
		if fused, n = match(ops); n > 0 {
			if fused.Ops == nil {
				fused.Ops = slices.Clone(ops[:n])
			}
			return fused, n
		}
	}
	return Op{}, 0
}

// linear is the length of a product and its bias at the start of ops.
func linear(ops []Op) int {
	if len(ops) == 0 || ops[0].Kind != MulMat || ops[0].A == ops[0].Dst {
		return 0
	}
	if len(ops) > 1 && ops[1].Kind == Bias && ops[1].Dst == ops[0].Dst {
		return 2
	}
	return 1
}

// gated: two products of one input, then SwiGLU.
func gated(ops []Op) (Op, int) {
	g := linear(ops)
	n := g + linear(ops[g:])
	if g == 0 || n == g || n == len(ops) {
		return Op{}, 0
	}
	gate, up, glu := ops[0], ops[g], ops[n]
	if glu.Kind != SwiGLU || glu.A != gate.Dst || glu.B != up.Dst || gate.Dst == up.Dst || up.A != gate.A || glu.Dst == gate.A {
		return Op{}, 0
	}
	rest := ops[n+1:]
	if glu.Dst == up.Dst || !dead(rest, up.Dst) || glu.Dst != gate.Dst && !dead(rest, gate.Dst) {
		return Op{}, 0
	}
	return Op{Kind: Gated, Dst: glu.Dst, A: gate.A}, n + 1
}

// added: a product that is added to something.
func added(ops []Op) (Op, int) {
	n := linear(ops)
	if n == 0 || n == len(ops) || ops[n].Kind != Add {
		return Op{}, 0
	}
	mul, add := ops[0], ops[n]
	other := add.A
	if other == mul.Dst {
		other = add.B
	} else if add.B != mul.Dst {
		return Op{}, 0
	}
	if other == mul.Dst || add.Dst == mul.A || add.Dst != mul.Dst && !dead(ops[n+1:], mul.Dst) {
		return Op{}, 0
	}
	return Op{Kind: Added, Dst: add.Dst, A: mul.A, B: other}, n + 1
}

// siblings: two or three products of one input.
func siblings(ops []Op) (Op, int) {
	n, count := linear(ops), 1
	for n > 0 && count < 3 {
		more := linear(ops[n:])
		if more == 0 || ops[n].A != ops[0].A || written(ops[:n], ops[n].Dst) || written(ops[:n], ops[n].A) {
			break
		}
		n, count = n+more, count+1
	}
	if count < 2 {
		return Op{}, 0
	}
	return Op{Kind: Siblings, A: ops[0].A}, n
}

// turned: Q and K are turned, and K and V written to the cache.
func turned(ops []Op) (Op, int) {
	if len(ops) < 3 || ops[0].Kind != RopeTurn || ops[0].Dst != Q || ops[0].Off != 0 || ops[1].Kind != RopeTurn || ops[1].Dst != K || ops[2].Kind != KVAppend || ops[2].B != V ||
		!dead(ops[3:], K) {
		return Op{}, 0
	}
	return Op{Kind: TurnedAppend, Dst: Q, Heads: ops[0].Heads, Cols: ops[0].Cols}, 3
}

// siblingsTurned: the products Q, K and V of one input and what is turned of them, where nobody else reads K and V.
func siblingsTurned(ops []Op) (Op, int) {
	products, n := siblings(ops)
	if n == 0 || n != linears(ops, Q, K, V) {
		return Op{}, 0
	}
	rest, m := turned(ops[n:])
	if m == 0 || ops[n+1].Off != 0 || ops[n+2].A != K || !dead(ops[n+m:], V) {
		return Op{}, 0
	}
	products.Ops, rest.Ops = slices.Clone(ops[:n]), slices.Clone(ops[n:n+m])
	return Op{Kind: TurnedProducts, Dst: Q, A: products.A, Heads: rest.Heads, Cols: rest.Cols, Ops: []Op{products, rest}}, n + m
}

// linears is the length of products, with their biases, that give these values and stand at the start of ops.
func linears(ops []Op, values ...Value) (n int) {
	for _, v := range values {
		m := linear(ops[n:])
		if m == 0 || ops[n].Dst != v {
			return 0
		}
		n += m
	}
	return n
}

// headsNormed: norms of the heads of Q and K in place, then what is turned. Its Ops are the norms and that as one.
func headsNormed(ops []Op) (Op, int) {
	if len(ops) < 2 {
		return Op{}, 0
	}
	for i, v := range []Value{Q, K} {
		if ops[i].Kind != RMSNorm || ops[i].Dst != v || ops[i].A != v {
			return Op{}, 0
		}
	}
	fused, n := turned(ops[2:])
	if n == 0 || fused.Heads != ops[0].Heads || fused.Cols != ops[0].Cols {
		return Op{}, 0
	}
	fused.Ops = slices.Clone(ops[2 : 2+n])
	return Op{Kind: NormedAppend, Dst: Q, Heads: fused.Heads, Cols: fused.Cols, Ops: append(slices.Clone(ops[:2]), fused)}, 2 + n
}

// routed: a norm, a router's product of that, and the choice of experts by it, which alone reads the scores.
func routed(ops []Op) (Op, int) {
	if len(ops) < 3 || ops[0].Kind != RMSNorm || ops[1].Kind != MulMat || ops[2].Kind != Route {
		return Op{}, 0
	}
	norm, mul, route := ops[0], ops[1], ops[2]
	if norm.Heads != 1 || norm.Dst == norm.A || mul.A != norm.Dst || mul.Dst != Scores || route.A != Scores || !dead(ops[3:], Scores) {
		return Op{}, 0
	}
	norm.Multiplied = true
	return Op{Kind: NormedRoute, Dst: norm.Dst, A: norm.A, Ops: []Op{norm, mul, route}}, 3
}

// written reports whether one of ops writes v.
func written(ops []Op, v Value) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return slices.Contains(o.Writes(), v) })
}

// dead reports whether the ops that follow do without v: only X is handed on to the next layer.
func dead(ops []Op, v Value) bool {
	for _, o := range ops {
		if slices.Contains(o.Reads(), v) {
			return false
		}
		if slices.Contains(o.Writes(), v) {
			return true
		}
	}
	return v != X
}

// multiplied reports whether a MulMat reads v before v is written anew.
func multiplied(ops []Op, v Value) bool {
	for _, o := range ops {
		if o.Kind == MulMat && o.A == v {
			return true
		}
		if slices.Contains(o.Writes(), v) {
			return false
		}
	}
	return false
}

// Weights lists the tensors that an operation reads.
func (o *Op) Weights() []string {
	var names []string
	if o.Weight != "" {
		names = append(names, o.Weight)
	}
	if o.Weight2 != "" {
		names = append(names, o.Weight2)
	}
	for i := range o.Ops {
		names = append(names, o.Ops[i].Weights()...)
	}
	return names
}
