package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// Matrix is one of the matrices of [Products]: W (M, K), its Bias (M) or 0, where its product goes.
type Matrix struct {
	W, Bias, Dst uint64
	M            uint32
}

// Products are Dst (N, M) = X (N, K) · Wᵀ + Bias + Residual, of up to three matrices of one type that share X; a matrix
// of no rows is missing. Strides are of the first Dst and of the residual, which is added to it; the rows of the other outputs
// stand one after another.
type Products struct {
	Type                      gguf.Type
	X                         uint64
	N, K, XStride             uint32
	Of                        [3]Matrix
	DstStride, ResidualStride uint32
	Residual                  uint64 // 0: none
	GLU                       bool   // the first Dst is silu(first product) * second product, and there is no other
}

// productVariants are the ways to record [Products], the best first.
var productVariants = []*variant[Products]{&straightProduct, &longsProduct, &int8Product, &wideProduct, &blocksProduct, &tilesProduct, &vecProduct, &matProduct}

// Multiply records products by the first variant that fits them. done is false where none computes them as one: a single matrix
// without bias, residual and GLU always has one.
func Multiply(r *Recorder, p *Products) (done bool, err error) {
	r.asked.products = *p
	return recordBy(r, productVariants, &r.asked.products)
}

// MulMat multiplies by weights of type t: Dst (N, M) = X (N, K) · Wᵀ.
func MulMat(r *Recorder, t gguf.Type, a shaders.MulMatArgs) error {
	_, err := Multiply(r, &Products{Type: t, X: a.X, N: a.N, K: a.K, XStride: a.XStride, Of: [3]Matrix{{W: a.W, Dst: a.Dst, M: a.M}}, DstStride: a.DstStride})
	return err
}

// ProductVariant is the variant that [Multiply] records products by; "": none computes them as one.
func ProductVariant(r *Recorder, p *Products) string {
	r.asked.products = *p
	if v := choose(r, productVariants, &r.asked.products); v != nil {
		return v.Variant
	}
	return ""
}

// empty reports whether products have no output.
func (p *Products) empty() bool { return p.N == 0 || p.Of[0].M == 0 }

// outputs is how many values products make of a row of X: gates and what they let through make one.
func (p *Products) outputs() uint32 {
	if p.GLU {
		return p.Of[0].M
	}
	return p.Of[0].M + p.Of[1].M + p.Of[2].M
}

// single reports whether there is one matrix, or with GLU two, without a bias.
func (p *Products) single() bool {
	return (p.Of[1].M == 0 || p.GLU) && p.Of[2].M == 0 && p.Of[0].Bias|p.Of[1].Bias == 0
}

// first is the product with the first matrix alone.
func (p *Products) first() shaders.MulMatArgs {
	return shaders.MulMatArgs{W: p.Of[0].W, X: p.X, Dst: p.Of[0].Dst, M: p.Of[0].M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
}

// residual checks what a product of halves is added to.
func (c *check) residual(p *Products) {
	if p.Residual != 0 {
		c.floats("residual", p.Residual, p.ResidualStride)
		c.stride("residual's stride", p.ResidualStride, p.Of[0].M)
	}
}
