package selftest

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// nmseTiles allows for the rounding to float16. Dividing a row by a power of 2 costs nothing.
const nmseTiles = 2e-7

// TileRows tests a variant of tile_f16, which converts rows to tiles of float16, after a norm or a gate for some variants. The values are multiplied by size; gap
// is the number of values between rows.
func TileRows(variant string, rows, cols, gap int, size float32) Case {
	return Case{
		Kernel: "tile_f16_" + variant, Shape: fmt.Sprintf("rows=%d cols=%d gap=%d size=%g", rows, cols, gap, size), MaxNMSE: nmseTiles,
		build: func(j *job) error {
			x, made := j.normal(rows, cols, gap), shape(rows, cols, 2*gap)
			w := j.normal(rows, cols, gap)
			for i := range x.Data {
				x.Data[i] *= size
			}
			const eps = 1e-6
			switch variant {
			case shaders.Wide:
				made = x
			case shaders.Norm:
				w = j.normal(1, cols, 0)
				ref.RMSNorm(made, x, w.Data, eps)
			default:
				act := map[string]func(dst, gate, up []float32){shaders.SiLU: ref.SwiGLU, shaders.GeLU: ref.GeGLU}[variant]
				for r := range rows {
					act(made.Row(r), x.Row(r), w.Row(r))
				}
			}
			dst, tiles, scales := j.space(made), j.alloc(int(shaders.TilesBytes(uint32(rows), uint32(cols)))), j.alloc(4*rows)
			a := shaders.TileF16WideArgs{X: j.addr(j.mat(x)), Tiles: j.addr(tiles), Scales: j.addr(scales),
				Rows: uint32(rows), Cols: uint32(cols), XStride: uint32(x.Stride)}
			if variant == shaders.Wide {
				j.spare = append(j.spare, dst)
			} else {
				a.W, a.Dst, a.DstStride, a.Eps = j.addr(j.mat(w)), j.addr(dst), uint32(made.Stride), eps
				j.output("dst", dst, made)
			}
			j.wants = append(j.wants, want{name: "tiles", at: tiles, mat: made, decode: func(got []byte) (ref.Mat, error) {
				return tilesIn(got[tiles.off:tiles.off+tiles.n], got[scales.off:scales.off+scales.n], rows, cols)
			}}, want{name: "scales", at: scales, any: true})
			j.record = func(r *kernels.Recorder) error { return kernels.TileF16Wide(r, variant, a) }
			return nil
		},
	}
}

// tilesIn computes rows from tiles and their scales. It also checks that each scale is a power of 2 of the right size, and that the tiles have zeros after the
// last column.
func tilesIn(b, scales []byte, rows, cols int) (ref.Mat, error) {
	m := shape(rows, cols, 0)
	across := (cols + 63) / 64 * 2
	for r := range rows {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*r:]))
		if frac, _ := math.Frexp(float64(scale)); frac != 0.5 {
			return m, fmt.Errorf("row %d times %g, which is no power of two,", r, scale)
		}
		top := 0.0
		for i := range across * 32 {
			at := (r/shaders.TileRows*across+i/32)*shaders.TileRows*32 + r%shaders.TileRows*32 + i%32
			v := quant.F16ToF32(binary.LittleEndian.Uint16(b[2*at:]))
			if i < cols {
				m.Row(r)[i] = v * scale
				top = max(top, math.Abs(float64(v)))
			} else if v != 0 {
				return m, fmt.Errorf("column %d of row %d, behind the last, is %g", i, r, v)
			}
		}
		if !(top >= 255 && top <= 512) {
			return m, fmt.Errorf("row %d, whose largest value is %g in tiles,", r, top)
		}
	}
	return m, nil
}

// tileTests has the entries of tile_f16's variants.
var tileTests = table{
	"tile_f16_wide":   {quick: func(k *shaders.Kernel) []Case { return []Case{TileRows(k.Variant, 131, 1028, 0, 1)} }, proofs: tileProofs},
	"tile_f16_geglu":  {quick: func(k *shaders.Kernel) []Case { return []Case{TileRows(k.Variant, 131, 1028, 0, 1)} }, proofs: tileProofs},
	"tile_f16_norm":   {quick: quickTiles, proofs: tileProofs},
	"tile_f16_swiglu": {quick: quickTiles, proofs: tileProofs},
}

// quickTiles returns quick cases of tile_f16's variants: a few short rows, and many long ones.
func quickTiles(k *shaders.Kernel) []Case {
	return []Case{TileRows(k.Variant, 3, 100, 4, 1), TileRows(k.Variant, 131, 1028, 0, 1)}
}

// tileProofs returns the proofs of a pipeline of tile_f16: with rows so long that each lane has as much as it can hold, and with shorter ones.
func tileProofs(v *kernels.Variant) []Case {
	run := int(v.Lanes) * 4
	return []Case{TileRows(v.Row.Variant, 5, int(v.Per-1)*run+36, 4, 1), TileRows(v.Row.Variant, 2, int(v.Per)*run, 0, 1)}
}
