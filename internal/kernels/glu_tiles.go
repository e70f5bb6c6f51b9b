package kernels

import (
	"leat/shaders"
)

// tilesGLU also stores its output as tiles of float16, for the products that follow.
var tilesGLU = variant[GatedRows]{
	Rule: Rule{
		Op: "swiglu", Variant: "tiles", When: "prompts; weights are multiplied by the output, rows of 64 values or more in whole runs of 4, memory for them in halves",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"tile_f16_swiglu", "tile_f16_geglu"},
	},
	unfit: func(r *Recorder, a *GatedRows) string {
		switch {
		case a.Act != SiLU && a.Act != GELU:
			return "tiles are made by swiglu and geglu alone"
		case a.Count != a.Rows*a.Cols:
			return "rows are apart"
		}
		return unfitTileRows(r, tileVariant(a.Act), a.Rows, a.Cols, a.Cols)
	},
	record: func(r *Recorder, a *GatedRows) error {
		return makeTiles(r, tileVariant(a.Act), shaders.TileF16WideArgs{X: a.Gate, W: a.Up, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.Cols, DstStride: a.Cols})
	},
}

// tileVariant is the variant of tile_f16 that gates by silu or gelu.
func tileVariant(act Act) string {
	if act == GELU {
		return shaders.GeLU
	}
	return shaders.SiLU
}
