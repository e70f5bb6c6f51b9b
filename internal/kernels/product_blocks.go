package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// Decoding says where products by cooperative matrices decode quantised weights.
type Decoding uint8

// The ways to decode weights.
const (
	DecodeByShape Decoding = iota // in the way that is faster for the type and size of the matrix
	DecodeBefore                  // into memory, by a kernel before the product's
	DecodeWithin                  // in the product's kernel
)

// blocksProduct is like [tilesProduct], but its kernel reads the quantised weights and decodes them itself.
var blocksProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat", Variant: shaders.BlocksCM,
		When:  "as cm, rows of whole blocks of 32: weights Q4_K, Q5_K and others whose blocks begin on 16 bytes; of others matrices of up to 2048 rows or with rows of more than 16384 values. Gates too, without a bias",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"mul_mat_q_cm", "tile_f16"},
	},
	unfit:  unfitBlocks,
	record: recordBlocks,
}

// unfitBlocks says why [blocksProduct] can't record p, "" if it can.
func unfitBlocks(r *Recorder, p *Products) string {
	t, m := p.Type, p.Of[0].M
	if teamVariants[t] != shaders.Int8 {
		return "another type of weights"
	}
	if why := unfitHalves(r, p); why != "" {
		return why
	}
	c := blocksChoice(r, t, m, p.N)
	if p.GLU {
		m *= 2
		c = gatesChoice(r, t, p.Of[0].M, p.N)
	}
	switch {
	case p.K%q8Block != 0:
		return "rows are no whole blocks of 32"
	case r.Override.Decoding == DecodeBefore:
		return "weights are to be decoded before"
	case r.Override.Decoding == DecodeByShape && !fasterDecodedWithin(t, m, p.K):
		return "a large matrix of such blocks is decoded faster before the product"
	case p.GLU && (p.Residual != 0 || c.cmTile.WM%32 != 0):
		return "gates with a residual, or too small a tile"
	case !r.usable(c):
		return failedTest
	}
	return ""
}

// recordBlocks checks the arguments of p and records it as one mul_mat_q_cm.
func recordBlocks(r *Recorder, p *Products) error {
	if p.empty() {
		return nil
	}
	a, up := p.first(), uint64(0)
	c := mulMatCheck(p.Type, &a)
	c.residual(p)
	if p.GLU {
		up = p.Of[1].W
		c.address("W1", up)
	}
	if c.err != nil {
		return c.err
	}
	return mulMatBlocks(r, p.Type, &a, p.Residual, p.ResidualStride, up)
}

// Bounds for the choice of where weights are decoded, for types whose blocks don't begin on 16 bytes.
const (
	mostWithin = 2048  // with up to this many rows of weights, decoding within the product is faster
	longWithin = 16384 // with longer rows it is faster too: few such rows, decoded, fit in memory at a time, too few to keep a device busy
)

// fasterDecodedWithin reports whether a product with weights of m rows of k values is faster if its own kernel decodes them than if a kernel before
// it does. It is if the matrix is small, its rows are long, or its blocks begin on 16 bytes: other blocks take three times the loads. The two ways
// sum in different orders, so the choice must not depend on the number of rows of X or on free memory: results would differ.
func fasterDecodedWithin(t gguf.Type, m, k uint32) bool {
	return m <= mostWithin || k > longWithin || t.BlockBytes()%16 == 0
}

// usualGroups counts the workgroups that make m x n outputs by tiles of the usual size.
func usualGroups(m, n uint32) uint64 {
	s, a := OwnCMTile(n), shaders.MulMatCMArgs{M: m, N: n}
	return a.Workgroups(s.BM, s.BN)
}

// fewTiles reports whether m x n outputs are too few tiles of the usual size to keep a large device busy.
func fewTiles(m, n uint32) bool { return 4*usualGroups(m, n) <= enoughGroups }

// blocksChoice is the pipeline of mul_mat_q_cm for n rows of X and m rows of quantised weights.
func blocksChoice(r *Recorder, t gguf.Type, m, n uint32) choice {
	s := r.Override.CMTile
	switch {
	case s != (CMTile{}):
	case r.k.can.matrix < 16:
		s = softCMTile
		s.Halves, s.Wide = true, true
	default:
		s = ownBlocksCMTile(m, n)
		if tuned := r.k.tuned.Load().cmTile(n); tuned != (CMTile{}) && !fewTiles(m, n) {
			tuned.Halves, tuned.Wide = true, true
			s = tuned
		}
	}
	return choice{op: "mul_mat", variant: shaders.BlocksCM, typed: true, typ: t, cmTile: r.k.cmTile(s, sharedGrid(t))}
}

// ownBlocksCMTile is the program's own choice: small tiles for a product of few outputs. The products of keys and values run at the same time as
// the larger one of queries, and should not take as long.
func ownBlocksCMTile(m, n uint32) CMTile {
	s := OwnCMTile(n)
	if fewTiles(m, n) {
		s = smallCMTile
	}
	s.Halves, s.Wide = true, true
	return s
}

// mulMatBlocks multiplies quantised weights by X in tiles and adds the residual. If up, a second matrix like W, is not 0, Dst is instead
// silu(X·Wᵀ) * X·Upᵀ.
func mulMatBlocks(r *Recorder, t gguf.Type, a *shaders.MulMatArgs, residual uint64, stride uint32, up uint64) error {
	x, scales, err := tileX(r, a)
	if err != nil {
		return err
	}
	args := shaders.MulMatCMArgs{W: a.W, X: x, Scales: scales, Dst: a.Dst, Residual: residual, M: a.M, K: a.K, N: a.N, DstStride: a.DstStride, ResidualStride: stride}
	c, matrices := check{choice: blocksChoice(r, t, a.M, a.N)}, uint32(1)
	args.Grids = c.grids(r)
	bytes := float64(a.M) * rowBytes(t, a.K)
	var touched touch
	touched.read(span{a.W, a.W + uint64(bytes)})
	touched.cmProduct(&args)
	if up != 0 {
		c.choice, matrices, args.Residual = gatesChoice(r, t, a.M, a.N), 2, up
		touched.read(span{up, up + uint64(bytes)})
	}
	m, n, k, of := float64(a.M), float64(a.N), float64(a.K), float64(matrices)
	return record(r, &c, &args, args.Workgroups(c.cmTile.BM/matrices, c.cmTile.BN), &touched,
		cost{bytes: of*bytes + 2*k*n + 4*m*n, flops: 2 * of * m * n * k})
}

// gatesChoice is the pipeline of mul_mat_q_cm that computes gate and up, of m rows each, for n rows of X.
func gatesChoice(r *Recorder, t gguf.Type, m, n uint32) choice {
	c := blocksChoice(r, t, 2*m, n)
	c.glu = shaders.GLUFloats
	return c
}

// cmProduct adds the memory that a product by cooperative matrices reads and writes, except the weights.
func (t *touch) cmProduct(a *shaders.MulMatCMArgs) {
	t.read(span{a.X, a.X + uint64(shaders.TilesBytes(a.N, a.K))})
	t.read(f32s(a.Scales, 1, a.N, 0))
	if a.Residual != 0 {
		t.read(f32s(a.Residual, a.N, a.M, a.ResidualStride))
	}
	t.write(f32s(a.Dst, a.N, a.M, a.DstStride))
}
