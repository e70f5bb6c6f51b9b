package kernels

import "leat/shaders"

// Norm is [shaders.RMSNormArgs]; Multiplied says that products with weights read its output.
type Norm struct {
	Multiplied bool
	shaders.RMSNormArgs
}

// normVariants are the ways to record a [Norm], the best first: those before the plain one bring its output into what products take.
var normVariants = []*variant[Norm]{&bytesNorm, &tilesNorm, &plainNorm}

// NormRows records a norm by the first variant that fits.
func NormRows(r *Recorder, a Norm) error {
	r.asked.norm = a
	_, err := recordBy(r, normVariants, &r.asked.norm)
	return err
}

// bytesNorm leaves its output as bytes too.
var bytesNorm = variant[Norm]{
	Rule: Rule{
		Op: "rms_norm", Variant: shaders.Q8, When: "decode, without cooperative matrices prompts too; weights are multiplied by the output, rows of whole blocks of 32",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"rms_norm_q8"},
	},
	unfit: func(r *Recorder, a *Norm) string {
		switch {
		case !a.Multiplied:
			return "no product reads the output"
		case !r.inBytes():
			return "prompts go by cooperative matrices, or have no memory for bytes"
		case a.Rows == 0 || a.Cols%q8Block != 0 || (a.XStride|a.DstStride)%4 != 0 || runsPerLane(r, a.Cols) > shaders.MaxPer:
			return "rows are no whole blocks of 32, or too long"
		case shaders.Q8Size(a.Rows, a.Cols) > r.q8Room():
			return "there is no memory for bytes"
		case !r.usable(normChoice(r, a.Cols)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Norm) error {
		to := r.q8Slot(a.Dst, a.Rows, a.Cols, a.DstStride, 0)
		err := RMSNormQ8(r, shaders.RMSNormQ8Args{X: a.X, W: a.W, Dst: a.Dst, Q: to.q, S: to.sums,
			Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
		if err == nil {
			to.there = true
		}
		return err
	},
}

// tilesNorm leaves its output in tiles of halves too.
var tilesNorm = variant[Norm]{
	Rule: Rule{
		Op: "rms_norm", Variant: "tiles", When: "prompts; weights are multiplied by the output, rows of 64 values or more in whole runs of 4, memory for them in halves",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"tile_f16_norm"},
	},
	unfit: func(r *Recorder, a *Norm) string {
		switch {
		case !a.Multiplied:
			return "no product reads the output"
		case a.XStride%4 != 0:
			return "rows are no whole runs of 4"
		}
		return unfitTileRows(r, shaders.Norm, a.Rows, a.Cols, a.DstStride)
	},
	record: func(r *Recorder, a *Norm) error {
		return makeTiles(r, shaders.Norm, shaders.TileF16WideArgs{X: a.X, W: a.W, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
	},
}

// plainNorm is [RMSNorm].
var plainNorm = variant[Norm]{
	Rule:   Rule{Op: "rms_norm", Variant: shaders.FP32},
	record: func(r *Recorder, a *Norm) error { return RMSNorm(r, a.RMSNormArgs) },
}

// GatedRows is silu(Gate) * Up of rows, side by side, that products with weights read.
type GatedRows struct {
	Rows, Cols uint32
	shaders.GLUArgs
}

// gluVariants are the ways to record [GatedRows], the best first.
var gluVariants = []*variant[GatedRows]{&tilesGLU, &plainGLU}

// SwiGLURows records gated rows by the first variant that fits.
func SwiGLURows(r *Recorder, a GatedRows) error {
	r.asked.glu = a
	_, err := recordBy(r, gluVariants, &r.asked.glu)
	return err
}

// tilesGLU leaves its output in tiles of halves too.
var tilesGLU = variant[GatedRows]{
	Rule: Rule{
		Op: "swiglu", Variant: "tiles", When: "prompts; weights are multiplied by the output, rows of 64 values or more in whole runs of 4, memory for them in halves",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"tile_f16_swiglu"},
	},
	unfit: func(r *Recorder, a *GatedRows) string {
		if a.Count != a.Rows*a.Cols {
			return "rows are apart"
		}
		return unfitTileRows(r, shaders.SiLU, a.Rows, a.Cols, a.Cols)
	},
	record: func(r *Recorder, a *GatedRows) error {
		return makeTiles(r, shaders.SiLU, shaders.TileF16WideArgs{X: a.Gate, W: a.Up, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.Cols, DstStride: a.Cols})
	},
}

// plainGLU is [SwiGLU].
var plainGLU = variant[GatedRows]{
	Rule:   Rule{Op: "swiglu", Variant: shaders.FP32},
	record: func(r *Recorder, a *GatedRows) error { return SwiGLU(r, a.GLUArgs) },
}
