package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/shaders"
	"leat/shaders/gpu"
	"leat/shaders/ref"
)

// nmseTiles allows what rounding to halves costs, the row's power of two aside.
const nmseTiles = 2e-7

// tileCases bring rows into tiles, as they are or as they are made. Each demands that a row's largest value comes to
// 256 … 512, that the padding is 0, and that the floats beside are right.
func tileCases() []Case {
	var cases []Case
	for _, variant := range []string{shaders.Wide, shaders.Norm, shaders.SiLU, shaders.GeLU} {
		for _, cols := range []int{4, 64, 100, 252, 1028, 4096} {
			cases = append(cases, tileRows(variant, 3, cols, 4, 1), tileRows(variant, 131, cols, 0, 1))
		}
		cases = append(cases, tileRows(variant, 5, 256, 8, 1e-20), tileRows(variant, 5, 256, 8, 1e4))
		if variant == shaders.Norm || variant == shaders.SiLU {
			cases = append(cases, owedRows(variant, 70, 256, 128))
		}
	}
	return cases
}

func tileRows(variant string, rows, cols, gap int, size float32) Case {
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
			j.record = func(r *gpu.Recorder) error { return r.TileF16Wide(variant, a) }
			return nil
		},
	}
}

// owedRows brings rows into tiles for a product with weights (m, cols), then reads them as floats, which were not stored until
// then; once what they are made of is overwritten they can't be read any more.
func owedRows(variant string, rows, cols, m int) Case {
	return Case{
		Kernel: "tile_f16_" + variant, Shape: fmt.Sprintf("owed rows=%d cols=%d M=%d", rows, cols, m), MaxNMSE: nmseHalf,
		build: func(j *job) error {
			weights, w, err := j.weights(gguf.F16, m, cols, 1)
			if err != nil {
				return err
			}
			const eps = 1e-6
			x, by, made, want := j.normal(rows, cols, 0), j.normal(rows, cols, 0), shape(rows, cols, 0), shape(rows, m, 0)
			if variant == shaders.Norm {
				ref.RMSNorm(made, x, by.Row(0), eps)
			} else {
				for r := range rows {
					ref.SwiGLU(made.Row(r), x.Row(r), by.Row(r))
				}
			}
			if err := ref.MulMat(gguf.F16, want, w, made); err != nil {
				return err
			}
			n, k := uint32(rows), uint32(cols)
			bytes := shaders.ScratchBytes(n, k, 2*shaders.TilesBytes(uint32(m), k)+256)
			spare, dst, out, twice := j.alloc(int(bytes)), j.space(made), j.space(want), j.space(made)
			j.spare = append(j.spare, spare)
			j.output("floats", dst, made)
			j.sums("product", out, want, float64(cols))
			j.output("what read them", twice, ref.Mat{Rows: rows, Cols: cols, Stride: made.Stride, Data: doubled(made.Data)})
			in, ids, row := j.mat(x), j.alloc(4), j.alloc(4*cols)
			j.spare = append(j.spare, in, row) // overwritten in the end
			clear(j.at(ids))
			elsewhere := shaders.GetRowsArgs{Table: j.addr(weights), IDs: j.addr(ids), Dst: j.addr(row), Rows: 1, Cols: k}
			source, other := j.addr(in), j.addr(j.mat(by))
			product := mulMatArgs(j.addr(weights), j.addr(dst), j.addr(out), m, cols, rows, cols, m)
			read := shaders.AddArgs{A: j.addr(dst), B: j.addr(dst), Dst: j.addr(twice), Count: n * k, BCols: n * k}
			j.record = func(r *gpu.Recorder) error {
				r.Scratch = gpu.Scratch{Address: j.addr(spare), Bytes: bytes}
				bring := func() error {
					if variant == shaders.Norm {
						return r.RMSNormMultiplied(shaders.RMSNormArgs{X: source, W: other, Dst: j.addr(dst), Rows: n, Cols: k, XStride: k, DstStride: k, Eps: eps})
					}
					return r.SwiGLUMultiplied(shaders.GLUArgs{Gate: source, Up: other, Dst: j.addr(dst), Count: n * k}, n, k)
				}
				stored := false
				r.Told = func(op string, _, _ float64) { stored = stored || op == "rms_norm" || op == "swiglu" }
				if err := errors.Join(bring(), r.MulMat(gguf.F16, product)); err != nil {
					return err
				}
				owed := !stored
				if err := r.Add(read); err != nil {
					return err
				}
				if !owed { // the device has no tiles
					return nil
				}
				if !stored {
					return errors.New("what was read is not stored")
				}
				overwrite := shaders.AddArgs{A: j.addr(twice), B: j.addr(twice), Dst: source, Count: n * k, BCols: n * k}
				if err := errors.Join(bring(), r.Finish(), r.Add(overwrite), r.GetRows(gguf.F16, elsewhere)); err != nil {
					return err
				}
				var gone *gpu.ArgError
				if err := r.Add(read); !errors.As(err, &gone) {
					return fmt.Errorf("floats that can't be made any more are read: %v", err)
				}
				return nil
			}
			return nil
		},
	}
}

func doubled(v []float32) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = 2 * v[i]
	}
	return out
}

// tilesIn reads rows out of tiles and their scales, and checks what no value shows.
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
