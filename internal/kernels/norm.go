package kernels

import (
	"leat/shaders"
)

// Norm is an RMS norm of rows.
type Norm struct {
	Multiplied bool // products with weights read the output
	shaders.RMSNormArgs
}

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

// RMSNorm normalises rows of X (Rows, Cols) into Dst, which may be X.
func RMSNorm(r *Recorder, a shaders.RMSNormArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "rms_norm", rowLanes: a.RowLanes()}}
	c.floats("X", a.X, a.XStride)
	c.address("W", a.W)
	c.floats("Dst", a.Dst, a.DstStride)
	c.stride("XStride", a.XStride, a.Cols)
	c.stride("DstStride", a.DstStride, a.Cols)
	if !(a.Eps >= 0) {
		c.require(false, "Eps", a.Eps, "0 or more")
	}
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.read(f32s(a.W, 1, a.Cols, 0))
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(c.rowLanes), &t, cost{8 * n, 4 * n})
}
