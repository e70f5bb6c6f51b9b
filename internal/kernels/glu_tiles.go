package kernels

import (
	"leat/shaders"
)

// tilesGLU also stores its output as tiles of float16, for the products that follow.
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
