package kernels

import (
	"cmp"

	"leat/gguf"
	"leat/shaders"
)

// vecProduct reads each weight once for up to 8 rows of X, in float32.
var vecProduct = variant[Products]{
	Rule: Rule{Op: "mul_mat_vec", Variant: shaders.FP32, When: "up to 8 rows, one matrix"},
	unfit: func(r *Recorder, p *Products) string {
		if p.N > shaders.FewRows {
			return "more than 8 rows"
		}
		return unfitPlain(p)
	},
	record: func(r *Recorder, p *Products) error { return mulMatFP32(r, p) },
}

// matProduct multiplies any number of rows in float32, by tiles of outputs; it gives the bits of [vecProduct].
var matProduct = variant[Products]{
	Rule:   Rule{Op: "mul_mat", Variant: shaders.FP32, When: "one matrix"},
	unfit:  func(r *Recorder, p *Products) string { return unfitPlain(p) },
	record: func(r *Recorder, p *Products) error { return mulMatFP32(r, p) },
}

// matTile is how many rows and columns of the output a workgroup of mul_mat makes.
const matTile = 8

// unfitPlain says why the float32 kernels can't record p, "" if they can.
func unfitPlain(p *Products) string {
	if !p.single() || p.GLU || p.Residual != 0 {
		return "several matrices, a bias, a scale, a residual or gates"
	}
	return ""
}

// mulMatFP32 records a product with one matrix, without bias, residual or gate, by a float32 kernel: mul_mat_vec for up to 8 rows of X, else mul_mat. It
// uses [TunedOutputs] if there are any.
func mulMatFP32(r *Recorder, p *Products) error {
	if p.empty() {
		return nil
	}
	t, a := p.Type, p.first()
	c := mulMatCheck(t, &a)
	tuned := r.k.tuned.Load().fp32Outputs(c.op, t)
	if c.rows = tuned.Rows; c.cols == 0 {
		c.rows, c.cols = cmp.Or(tuned.Rows, matTile), cmp.Or(tuned.Cols, matTile)
	}
	a.Grids = c.grids(r)
	if c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice)
	if err != nil {
		return err
	}
	rows, cols := b.tile()
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	passes := float64((a.N + cols - 1) / cols)
	co := cost{bytes: passes*m*rowBytes(t, a.K) + 4*n*(k+m), flops: 2 * m * n * k}
	var touched touch
	touched.read(span{a.W, a.W + uint64(m*rowBytes(t, a.K))})
	touched.read(f32s(a.X, a.N, a.K, a.XStride))
	touched.write(f32s(a.Dst, a.N, a.M, a.DstStride))
	return dispatch(r, &c, b, &a, a.Workgroups(rows, cols), &touched, co)
}

// mulMatCheck checks the arguments of a mul_mat or mul_mat_vec.
func mulMatCheck(t gguf.Type, a *shaders.MulMatArgs) check {
	c := check{choice: choice{op: "mul_mat", typed: true, typ: t, whole: a.K%8 == 0 && a.XStride%4 == 0}}
	if c.cols = vecCols(a.N); c.cols > 0 {
		c.op = "mul_mat_vec"
	}
	c.address("W", a.W)
	c.floats("X", a.X, a.XStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.stride("XStride", a.XStride, a.K)
	c.stride("DstStride", a.DstStride, a.M)
	return c
}

// vecCols is the constant NUM_COLS of mul_mat_vec for n rows of X; 0: n is more than 8, so mul_mat is used.
func vecCols(n uint32) uint32 {
	for _, cols := range []uint32{1, 2, 4, 8} {
		if n <= cols {
			return cols
		}
	}
	return 0
}
