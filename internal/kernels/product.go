package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// Matrix is one of the matrices of [Products].
type Matrix struct {
	W, Bias, Dst uint64 // addresses: weights (M, K), bias (M) or 0, output (N, M)
	Scale        uint64 // address of one number that the product is multiplied by before the bias is added; 0: none
	M            uint32 // number of rows of W; 0: there is no such matrix
}

// Products are Dst (N, M) = X (N, K) · Wᵀ + Bias, of up to three matrices of one type that share X. The residual is added to the first
// output. Strides are in values from row to row. Only the first output has a stride; the rows of the others are contiguous.
type Products struct {
	Type                      gguf.Type // type of all matrices
	X                         uint64    // address of X
	N, K, XStride             uint32    // rows, columns and stride of X
	Of                        [3]Matrix // the matrices; those with M 0 are left out
	DstStride, ResidualStride uint32    // strides of the first output and of the residual
	Residual                  uint64    // address of the residual; 0: none
	GLU                       bool      // the only output is that of the first matrix: silu(first product) * second product
}

// productVariants are the ways to record [Products], the best first.
var productVariants = []*variant[Products]{&persistentProduct, &straightProduct, &longsProduct, &int8Product, &wideProduct, &blocksProduct, &tilesProduct, &vecProduct, &matProduct}

// Multiply records products by the first variant that fits. done is false, and nothing is recorded, if no variant computes them as one. For a single
// matrix without bias, scale, residual and GLU one always does.
func Multiply(r *Recorder, p *Products) (done bool, err error) {
	r.args.products = *p
	return recordBy(r, productVariants, &r.args.products)
}

// MulMat multiplies by weights of type t: Dst (N, M) = X (N, K) · Wᵀ.
func MulMat(r *Recorder, t gguf.Type, a shaders.MulMatArgs) error {
	_, err := Multiply(r, &Products{Type: t, X: a.X, N: a.N, K: a.K, XStride: a.XStride, Of: [3]Matrix{{W: a.W, Dst: a.Dst, M: a.M}}, DstStride: a.DstStride})
	return err
}

// ProductVariant is the variant by which [Multiply] would record p; "": none computes the products as one.
func ProductVariant(r *Recorder, p *Products) string {
	r.args.products = *p
	if v := choose(r, productVariants, &r.args.products); v != nil {
		return v.Variant
	}
	return ""
}

// empty reports whether products have no output.
func (p *Products) empty() bool { return p.N == 0 || p.Of[0].M == 0 }

// outputs is how many values p computes from a row of X. With GLU, gate and up make one value.
func (p *Products) outputs() uint32 {
	if p.GLU {
		return p.Of[0].M
	}
	return p.Of[0].M + p.Of[1].M + p.Of[2].M
}

// single reports whether there is one matrix, or with GLU two, without a bias or a scale.
func (p *Products) single() bool {
	return (p.Of[1].M == 0 || p.GLU) && p.Of[2].M == 0 && p.Of[0].Bias|p.Of[1].Bias == 0 && !p.scaled()
}

// scaled reports whether a product has a scale.
func (p *Products) scaled() bool { return p.Of[0].Scale|p.Of[1].Scale|p.Of[2].Scale != 0 }

// takesScales reports whether a variant of mul_mat_vec in teams multiplies p by its scales, or has none to multiply by.
func (p *Products) takesScales(variant string) bool {
	for i := range p.Of {
		if m := &p.Of[i]; m.Scale != 0 && (m.Bias != 0 || p.Type != gguf.NVFP4 || variant != shaders.Int8) {
			return false
		}
	}
	return true
}

// biasOrScale is the Bias of m in [shaders.MulMatTeamArgs].
func (m *Matrix) biasOrScale() uint64 {
	if m.Scale != 0 {
		return m.Scale + 1
	}
	return m.Bias
}

// first is the product with the first matrix alone.
func (p *Products) first() shaders.MulMatArgs {
	return shaders.MulMatArgs{W: p.Of[0].W, X: p.X, Dst: p.Of[0].Dst, M: p.Of[0].M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride}
}

// residual checks the residual of p, if there is one.
func (c *check) residual(p *Products) {
	if p.Residual != 0 {
		c.floats("residual", p.Residual, p.ResidualStride)
		c.stride("residual's stride", p.ResidualStride, p.Of[0].M)
	}
}
