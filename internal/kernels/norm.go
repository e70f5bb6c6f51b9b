package kernels

import (
	"cmp"

	"leat/shaders"
)

// Norm is an RMS norm of rows.
type Norm struct {
	Multiplied bool // products with weights read the output
	shaders.RMSNormArgs
}

// plain reports whether all rows have the same weights and Scale is 1. The variants that prepare the output for products need that.
func (a *Norm) plain() bool { return a.W != 0 && a.Heads <= 1 && (a.Scale == 0 || a.Scale == 1) }

// notPlain says why a variant that prepares products does not fit a norm that is not plain.
const notPlain = "rows have no weights, or more than these"

// normVariants are the ways to record a [Norm], the best first. All but the last also store the output in the format that products read.
var normVariants = []*variant[Norm]{&bytesNorm, &tilesNorm, &plainNorm}

// NormRows records a norm by the first variant that fits.
func NormRows(r *Recorder, a Norm) error {
	r.args.norm = a
	_, err := recordBy(r, normVariants, &r.args.norm)
	return err
}

// plainNorm is [RMSNorm].
var plainNorm = variant[Norm]{
	Rule:   Rule{Op: "rms_norm", Variant: shaders.FP32},
	record: func(r *Recorder, a *Norm) error { return RMSNorm(r, a.RMSNormArgs) },
}

// RMSNorm normalises rows of X (Rows, Cols) into Dst, which may be X. A Scale or Heads of 0 is 1.
func RMSNorm(r *Recorder, a shaders.RMSNormArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	a.Scale, a.Heads = cmp.Or(a.Scale, 1), cmp.Or(a.Heads, 1)
	c := check{choice: choice{op: "rms_norm", rowLanes: a.RowLanes()}}
	var t touch
	checkNormed(&c, &t, a.X, a.Dst, a.Rows, a.Cols, a.XStride, a.DstStride, a.Eps)
	checkHeadWeights(&c, &t, "W", a.W, a.Heads, a.Cols)
	n := float64(a.Rows) * float64(a.Cols)
	return record(r, &c, &a, a.Workgroups(c.rowLanes), &t, cost{8 * n, 4 * n})
}

// LayerNorm normalises rows of X (Rows, Cols) into Dst, which may be X: to a mean of 0 and a variance of 1. Heads of 0 are 1.
func LayerNorm(r *Recorder, a shaders.NormArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	a.Heads = cmp.Or(a.Heads, 1)
	c := check{choice: choice{op: "norm", rowLanes: a.RowLanes()}}
	var t touch
	checkNormed(&c, &t, a.X, a.Dst, a.Rows, a.Cols, a.XStride, a.DstStride, a.Eps)
	checkHeadWeights(&c, &t, "W", a.W, a.Heads, a.Cols)
	checkHeadWeights(&c, &t, "B", a.B, a.Heads, a.Cols)
	n := float64(a.Rows) * float64(a.Cols)
	return record(r, &c, &a, a.Workgroups(c.rowLanes), &t, cost{8 * n, 7 * n})
}

// checkNormed checks the rows that a norm reads and writes, and adds them to t.
func checkNormed(c *check, t *touch, x, dst uint64, rows, cols, xStride, dstStride uint32, eps float32) {
	c.floats("X", x, xStride)
	c.floats("Dst", dst, dstStride)
	c.stride("XStride", xStride, cols)
	c.stride("DstStride", dstStride, cols)
	if !(eps >= 0) {
		c.require(false, "Eps", eps, "0 or more")
	}
	t.read(f32s(x, rows, cols, xStride))
	t.write(f32s(dst, rows, cols, dstStride))
}

// checkHeadWeights checks the address of weights (heads, cols), 0 where there are none, and adds a read of them.
func checkHeadWeights(c *check, t *touch, what string, at uint64, heads, cols uint32) {
	if at == 0 {
		return
	}
	c.address(what, at)
	t.read(f32s(at, heads, cols, cols))
}
