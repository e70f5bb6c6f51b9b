package gpu

import (
	"leat/gguf"
	"leat/shaders"
)

// mostDecoded is the most rows of X for which weights are decoded on their way into the product: each BN rows decode them anew,
// and with more it pays to do it once, through memory.
const mostDecoded = 1024

// Decoding is where the weights of products in halves are decoded.
type Decoding uint8

// Where weights are decoded: as the rows of X decide; into memory before the product; in the product.
const (
	DecodeByRows Decoding = iota
	DecodeBefore
	DecodeWithin
)

// decodes reports whether products of n rows of k values that go in halves read weights of type t in blocks.
func (r *Recorder) decodes(t gguf.Type, n, k uint32) bool {
	return r.Decoding != DecodeBefore && (n <= mostDecoded || r.Decoding == DecodeWithin) && k%q8Block == 0 && teamVariants[t] == shaders.Int8 &&
		r.usable(r.blocksChoice(t, n), func() (*shaders.Kernel, error) { return shaders.MulMatQCM(t) })
}

// blocksChoice is the product of n rows in tiles with weights in blocks.
func (r *Recorder) blocksChoice(t gguf.Type, n uint32) choice {
	s := r.Split
	switch {
	case s != (Split{}):
	case r.k.matrix < 16:
		s = softSplit
	default:
		s = OwnSplit(n)
	}
	return choice{op: "mul_mat", variant: shaders.BlocksCM, typed: true, typ: t, split: r.k.split(s)}
}

// mulMatBlocks is mulMatHalves without memory for weights.
func (r *Recorder) mulMatBlocks(t gguf.Type, a *shaders.MulMatArgs, residual uint64, stride uint32) error {
	x := r.Scratch.Address
	scales := x + uint64(shaders.TilesBytes(a.N, a.K))
	if err := r.bringX(a, x, scales); err != nil {
		return err
	}
	args := shaders.MulMatCMArgs{W: a.W, X: x, Scales: scales, Dst: a.Dst, Residual: residual, M: a.M, K: a.K, N: a.N, DstStride: a.DstStride, ResidualStride: stride}
	c := check{choice: r.blocksChoice(t, a.N)}
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	weights := m * rowBytes(t, a.K)
	var touched touch
	touched.read(span{a.W, a.W + uint64(weights)})
	touched.product(&args)
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.MulMatQCM(t) }, &args, args.Workgroups(c.split.BM, c.split.BN), &touched,
		cost{bytes: weights + 2*k*n + 4*m*n, flops: 2 * m * n * k})
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
