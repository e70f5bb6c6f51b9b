package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// Decoding is where the weights of products in halves are decoded.
type Decoding uint8

// Where weights are decoded: as the matrix decides; into memory before the product; in the product.
const (
	DecodeByShape Decoding = iota
	DecodeBefore
	DecodeWithin
)

// blocksProduct is [tilesProduct] whose weights are decoded on their way into the product.
var blocksProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat", Variant: shaders.BlocksCM,
		When:  "as cm, rows of whole blocks of 32: weights Q4_K, Q5_K and others whose blocks begin on 16 bytes; of others matrices of up to 2048 rows. Gates too, without a bias",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"mul_mat_q_cm", "tile_f16"},
	},
	unfit:  unfitBlocks,
	record: recordBlocks,
}

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
	case r.Decoding == DecodeBefore:
		return "weights are to be decoded before"
	case r.Decoding == DecodeByShape && !worthDecoding(t, m):
		return "a large matrix of such blocks is decoded faster before the product"
	case p.GLU && (p.Residual != 0 || c.split.WM%32 != 0):
		return "gates with a residual, or too small a tile"
	case !r.usable(c):
		return failedTest
	}
	return ""
}

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

// mostWithin is the most rows of weights in blocks that don't begin on 16 bytes for which decoding within the product is faster.
const mostWithin = 2048

// worthDecoding reports whether weights are read faster in blocks: where the matrix is small, as the product then needs not wait for what
// runs beside it, and of types whose blocks begin on 16 bytes; others take three times the loads. The two ways sum in other orders, so
// neither the rows of X nor the memory may decide.
func worthDecoding(t gguf.Type, m uint32) bool { return m <= mostWithin || t.BlockBytes()%16 == 0 }

// usualGroups counts the workgroups that make m x n outputs by tiles of the usual size.
func usualGroups(m, n uint32) uint64 {
	s, a := OwnSplit(n), shaders.MulMatCMArgs{M: m, N: n}
	return a.Workgroups(s.BM, s.BN)
}

// fewTiles says that outputs of m x n, by tiles of the usual size, would leave much of a large device idle.
func fewTiles(m, n uint32) bool { return 4*usualGroups(m, n) <= enoughGroups }

// blocksChoice is the product of n rows in tiles with m rows of weights in blocks.
func blocksChoice(r *Recorder, t gguf.Type, m, n uint32) choice {
	s := r.Split
	switch {
	case s != (Split{}):
	case r.k.matrix < 16:
		s = softSplit
		s.Halves, s.Wide = true, true
	default:
		s = ownBlocksSplit(m, n)
		if tuned := r.k.tuned.Load().split(n); tuned != (Split{}) && !fewTiles(m, n) {
			tuned.Halves, tuned.Wide = true, true
			s = tuned
		}
	}
	return choice{op: "mul_mat", variant: shaders.BlocksCM, typed: true, typ: t, split: r.k.split(s)}
}

// ownBlocksSplit is what the program chooses by itself: small tiles where there would be few of them. Such products run beside
// larger ones (keys and values beside queries), and should not take as long.
func ownBlocksSplit(m, n uint32) Split {
	s := OwnSplit(n)
	if fewTiles(m, n) {
		s = smallSplit
	}
	s.Halves, s.Wide = true, true
	return s
}

// mulMatBlocks multiplies weights as they are stored, in blocks, by X in tiles. With up, another matrix like W, it is gated, and nothing is added.
func mulMatBlocks(r *Recorder, t gguf.Type, a *shaders.MulMatArgs, residual uint64, stride uint32, up uint64) error {
	x, scales, err := bringX(r, a)
	if err != nil {
		return err
	}
	args := shaders.MulMatCMArgs{W: a.W, X: x, Scales: scales, Dst: a.Dst, Residual: residual, M: a.M, K: a.K, N: a.N, DstStride: a.DstStride, ResidualStride: stride}
	c, matrices := check{choice: blocksChoice(r, t, a.M, a.N)}, uint32(1)
	bytes := float64(a.M) * rowBytes(t, a.K)
	var touched touch
	touched.read(span{a.W, a.W + uint64(bytes)})
	touched.product(&args)
	if up != 0 {
		c.choice, matrices, args.Residual = gatesChoice(r, t, a.M, a.N), 2, up
		touched.read(span{up, up + uint64(bytes)})
	}
	m, n, k, of := float64(a.M), float64(a.N), float64(a.K), float64(matrices)
	return record(r, &c, &args, args.Workgroups(c.split.BM/matrices, c.split.BN), &touched,
		cost{bytes: of*bytes + 2*k*n + 4*m*n, flops: 2 * of * m * n * k})
}

// gatesChoice is the product of n rows in tiles with m rows each of two matrices.
func gatesChoice(r *Recorder, t gguf.Type, m, n uint32) choice {
	c := blocksChoice(r, t, 2*m, n)
	c.glu = shaders.GLUFloats
	return c
}

// product adds what a product of cooperative matrices touches beside the weights.
func (t *touch) product(a *shaders.MulMatCMArgs) {
	t.read(span{a.X, a.X + uint64(shaders.TilesBytes(a.N, a.K))})
	t.read(f32s(a.Scales, 1, a.N, 0))
	if a.Residual != 0 {
		t.read(f32s(a.Residual, a.N, a.M, a.ResidualStride))
	}
	t.write(f32s(a.Dst, a.N, a.M, a.DstStride))
}
