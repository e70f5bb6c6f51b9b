package arch

import "slices"

// Fuse replaces runs of a layer's operations that one kernel can compute by one fused operation, which has them in its Ops. The layer's result is the same. Some
// intermediate values are no longer written, because nothing else reads them: products that are added or gated, K and V that are in the cache, Scores.
// Fuse also sets [Op.Multiplied].
func Fuse(ops []Op) []Op {
	var out []Op
	for i := 0; i < len(ops); {
		fused, n := fuse(ops[i:])
		if n == 0 {
			fused, n = ops[i], 1
			fused.Multiplied = fused.Kind == RMSNorm && readByProduct(ops[i+1:], fused.Dst)
		}
		out = append(out, fused)
		i += n
	}
	return out
}

// fuse returns a fused operation for the first n operations of ops; n is 0 if no pattern matches. Each match function below does this for one pattern: it
// returns the fused operation and n.
func fuse(ops []Op) (fused Op, n int) {
	for _, match := range []func([]Op) (Op, int){matchGated, matchAdded, matchRopedProducts, matchSiblings, matchNormedHeads, matchRoped, matchNormedRoute} {
		if fused, n = match(ops); n > 0 {
			if fused.Ops == nil {
				fused.Ops = slices.Clone(ops[:n])
			}
			return fused, n
		}
	}
	return Op{}, 0
}

// productLength is the number of operations of the product that ops begin with, its scale and its bias included. It is 0 if ops do not begin with a product, or if
// the product is written over its own input.
func productLength(ops []Op) int {
	if len(ops) == 0 || ops[0].Kind != MulMat || ops[0].A == ops[0].Dst {
		return 0
	}
	n, dst := 1, ops[0].Dst
	if n < len(ops) && ops[n].Kind == MulWeight && ops[n].A == dst && ops[n].Dst == dst && ops[n].Cols == 1 {
		n++
	}
	if n < len(ops) && ops[n].Kind == Bias && ops[n].Dst == dst {
		n++
	}
	return n
}

// matchGated matches two products of one input, with their biases, then their SwiGLU, if nothing else reads the products.
func matchGated(ops []Op) (Op, int) {
	g := productLength(ops)
	n := g + productLength(ops[g:])
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

// matchAdded matches a product, with its bias, then an Add without a Factor of its result and another value, if nothing else reads the product.
func matchAdded(ops []Op) (Op, int) {
	n := productLength(ops)
	if n == 0 || n == len(ops) || ops[n].Kind != Add || ops[n].Factor != 0 {
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

// matchSiblings matches two or three products of one input, with their biases.
func matchSiblings(ops []Op) (Op, int) {
	n, count := productLength(ops), 1
	for n > 0 && count < 3 {
		more := productLength(ops[n:])
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

// matchRoped matches rope of Q and of K, then KVAppend, if nothing else reads K. Heads of Q must be rotated from their first value on.
func matchRoped(ops []Op) (Op, int) {
	if len(ops) < 3 || ops[0].Kind != RopeHeads || ops[0].Dst != Q || ops[0].Off != 0 || ops[1].Kind != RopeHeads || ops[1].Dst != K || ops[2].Kind != KVAppend || ops[2].B != V ||
		!dead(ops[3:], K) {
		return Op{}, 0
	}
	return Op{Kind: RopedAppend, Dst: Q, Heads: ops[0].Heads, Cols: ops[0].Cols, Rope: ops[0].Rope}, 3
}

// matchRopedProducts matches the products Q, K and V of one input, then rope of Q and K and KVAppend, see [matchRoped]. Nothing else may read K or V: the
// fused operation writes them only to the cache.
func matchRopedProducts(ops []Op) (Op, int) {
	products, n := matchSiblings(ops)
	if n == 0 || n != productsLength(ops, Q, K, V) {
		return Op{}, 0
	}
	rest, m := matchRoped(ops[n:])
	if m == 0 || ops[n+1].Off != 0 || ops[n+2].A != K || !dead(ops[n+m:], V) {
		return Op{}, 0
	}
	products.Ops, rest.Ops = slices.Clone(ops[:n]), slices.Clone(ops[n:n+m])
	return Op{Kind: RopedProducts, Dst: Q, A: products.A, Heads: rest.Heads, Cols: rest.Cols, Rope: rest.Rope, Ops: []Op{products, rest}}, n + m
}

// productsLength is the number of operations of the products that ops begin with, biases included, if these products write values, in this order. It is 0 if
// they do not.
func productsLength(ops []Op, values ...Value) (n int) {
	for _, v := range values {
		m := productLength(ops[n:])
		if m == 0 || ops[n].Dst != v {
			return 0
		}
		n += m
	}
	return n
}

// matchNormedHeads matches norms of the heads of Q and K in place, then rope of Q and K and KVAppend, see [matchRoped].
func matchNormedHeads(ops []Op) (Op, int) {
	if len(ops) < 2 {
		return Op{}, 0
	}
	for i, v := range []Value{Q, K} {
		if ops[i].Kind != RMSNorm || ops[i].Dst != v || ops[i].A != v || !ops[i].plainNorm() {
			return Op{}, 0
		}
	}
	fused, n := matchRoped(ops[2:])
	if n == 0 || fused.Heads != ops[0].Heads || fused.Cols != ops[0].Cols {
		return Op{}, 0
	}
	fused.Ops = slices.Clone(ops[2 : 2+n])
	return Op{Kind: NormedRopedAppend, Dst: Q, Heads: fused.Heads, Cols: fused.Cols, Rope: fused.Rope, Ops: append(slices.Clone(ops[:2]), fused)}, 2 + n
}

// plainNorm reports whether an RMSNorm multiplies by weights that all heads share, and by nothing else.
func (o *Op) plainNorm() bool { return o.Weight != "" && o.Factor == 0 && !o.PerHead }

// matchNormedRoute matches a norm, the router's product of the normalised rows, and the choice of experts, if nothing else reads Scores.
func matchNormedRoute(ops []Op) (Op, int) {
	if len(ops) < 3 || ops[0].Kind != RMSNorm || ops[1].Kind != MulMat || ops[2].Kind != Route {
		return Op{}, 0
	}
	norm, mul, route := ops[0], ops[1], ops[2]
	if norm.Heads != 1 || !norm.plainNorm() || norm.Dst == norm.A || mul.A != norm.Dst || mul.Dst != Scores || route.A != Scores || route.Weight2 != "" || !dead(ops[3:], Scores) {
		return Op{}, 0
	}
	norm.Multiplied = true
	return Op{Kind: NormedRoute, Dst: norm.Dst, A: norm.A, Ops: []Op{norm, mul, route}}, 3
}

// written reports whether one of ops writes v.
func written(ops []Op, v Value) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return slices.Contains(o.Writes(), v) })
}

// dead reports whether the current value of v is not read any more: ops, the rest of the layer, do not read v before they write it again, and v is not X,
// which the next layer reads. Callers do not ask about LayerInputs before the last layer: the next layer reads it too.
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

// readByProduct reports whether a MulMat among ops reads v before v is written again: the kernel that computes v may then also prepare v for
// products, see [Op.Multiplied].
func readByProduct(ops []Op, v Value) bool {
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
