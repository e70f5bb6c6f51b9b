package kernels

import (
	"leat/shaders"
)

// tilesNorm also stores its output as tiles of float16, for the products that follow.
var tilesNorm = variant[Norm]{
	Rule: Rule{
		Op: "rms_norm", Variant: "tiles", When: "prompts; weights are multiplied by the output, rows of 64 values or more in whole runs of 4, memory for them in halves",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"tile_f16_norm"},
	},
	unfit: func(r *Recorder, a *Norm) string {
		switch {
		case !a.Multiplied:
			return "no product reads the output"
		case !a.plain():
			return notPlain
		case a.XStride%4 != 0:
			return "rows are no whole runs of 4"
		}
		return unfitTileRows(r, shaders.Norm, a.Rows, a.Cols, a.DstStride)
	},
	record: func(r *Recorder, a *Norm) error {
		return makeTiles(r, shaders.Norm, shaders.TileF16WideArgs{X: a.X, W: a.W, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
	},
}
