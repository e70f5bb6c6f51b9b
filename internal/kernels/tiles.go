package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// unfitTileRows says why a kernel can't store its output rows as tiles of float16 too, "" if it can.
func unfitTileRows(r *Recorder, variant string, rows, cols, stride uint32) string {
	switch {
	case r.Rows.Role != Prompt:
		return "rows to decode"
	case cols < tileStep || (cols|stride)%4 != 0 || runsPerLane(r, cols) > shaders.MaxPer:
		return "rows are short, too long, or no whole runs of 4"
	case shaders.ScratchBytes(rows, cols, 0) > r.Memory.Tiles.Bytes:
		return "there is no memory for rows in halves"
	case !tileF16Usable(r, variant, cols):
		return failedTest
	}
	return ""
}

// tileF16Choice is the pipeline of a tile_f16 variant, which converts rows of cols values to tiles of float16.
func tileF16Choice(r *Recorder, variant string, cols uint32) choice {
	return choice{op: "tile_f16", variant: variant, lanes: normLanes(r), per: runsPerLane(r, cols)}
}

// tileF16Usable reports whether the kernel of [tileF16Choice], which converts rows of X to tiles of float16, has not failed its self-test, see
// [Recorder.usable].
func tileF16Usable(r *Recorder, variant string, cols uint32) bool {
	return r.usable(tileF16Choice(r, variant, cols))
}

// makeTiles records a kernel that writes its output to Dst and, as tiles, to [Memory.Tiles].
func makeTiles(r *Recorder, variant string, a shaders.TileF16WideArgs) error {
	a.Tiles = r.Memory.Tiles.Address
	a.Scales = a.Tiles + uint64(shaders.TilesBytes(a.Rows, a.Cols))
	if err := TileF16Wide(r, variant, a); err != nil {
		return err
	}
	r.tiles.setX(f32s(a.Dst, a.Rows, a.Cols, a.DstStride), a.Rows, a.Cols, a.DstStride)
	return nil
}

// setX notes that the tiles now hold X at x: n rows of k values, stride values apart.
func (t *tiles) setX(x span, n, k, stride uint32) {
	t.x, t.n, t.k, t.s = x, n, k, stride
	t.next = 0 // the ring, which follows X, begins at another address now
}

// tileX converts X to tiles of float16, unless [Memory.Tiles] holds it already. It returns the addresses of the tiles and of the rows' scales.
func tileX(r *Recorder, a *shaders.MulMatArgs) (x, scales uint64, err error) {
	x = r.Memory.Tiles.Address
	scales = x + uint64(shaders.TilesBytes(a.N, a.K))
	want := f32s(a.X, a.N, a.K, a.XStride)
	if r.tiles.x == want && r.tiles.n == a.N && r.tiles.k == a.K && r.tiles.s == a.XStride {
		return x, scales, nil
	}
	if (a.K|a.XStride)%4 == 0 && runsPerLane(r, a.K) <= shaders.MaxPer && tileF16Usable(r, shaders.Wide, a.K) {
		err = TileF16Wide(r, shaders.Wide, shaders.TileF16WideArgs{X: a.X, Tiles: x, Scales: scales, Rows: a.N, Cols: a.K, XStride: a.XStride})
	} else {
		err = TileF16(r, shaders.TileF16Args{X: a.X, Dst: x, Scales: scales, N: a.N, K: a.K, XStride: a.XStride})
	}
	r.tiles.setX(want, a.N, a.K, a.XStride)
	return x, scales, err
}

// TileF16 converts rows of X to tiles of float16.
func TileF16(r *Recorder, a shaders.TileF16Args) error {
	if a.N == 0 || a.K == 0 {
		return nil
	}
	c := check{choice: choice{op: "tile_f16"}}
	c.floats("X", a.X, a.XStride)
	c.address("Dst", a.Dst)
	c.address("Scales", a.Scales)
	c.stride("XStride", a.XStride, a.K)
	var t touch
	t.read(f32s(a.X, a.N, a.K, a.XStride))
	t.write(span{a.Dst, a.Dst + uint64(shaders.TilesBytes(a.N, a.K))})
	t.write(f32s(a.Scales, 1, a.N, 0))
	n := float64(a.N) * float64(a.K)
	return record(r, &c, &a, a.Workgroups(), &t, cost{10 * n, n})
}

// TileF16Wide converts rows of X, of a multiple of 4 values, to tiles of float16. Some variants apply a norm or a gate first and also write
// Dst, see [shaders.TileF16WideArgs].
func TileF16Wide(r *Recorder, variant string, a shaders.TileF16WideArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: tileF16Choice(r, variant, a.Cols)}
	c.address("X", a.X)
	c.address("Tiles", a.Tiles)
	c.address("Scales", a.Scales)
	c.multiple("Cols", a.Cols, 4)
	c.atMost("Cols", a.Cols, shaders.MaxPer*c.lanes*4)
	c.stride("XStride", a.XStride, a.Cols)
	c.multiple("XStride", a.XStride, 4)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	n := float64(a.Rows) * float64(a.Cols)
	co := cost{6 * n, n}
	if variant != shaders.Wide {
		c.address("W", a.W)
		c.address("Dst", a.Dst)
		c.stride("DstStride", a.DstStride, a.Cols)
		c.multiple("DstStride", a.DstStride, 4)
		if !(a.Eps >= 0) {
			c.require(false, "Eps", a.Eps, "0 or more")
		}
		rows := a.Rows
		if variant == shaders.Norm {
			rows = 1
		}
		t.read(f32s(a.W, rows, a.Cols, a.XStride))
		t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
		co.bytes += 4*n + 4*float64(rows)*float64(a.Cols)
	}
	t.write(span{a.Tiles, a.Tiles + uint64(shaders.TilesBytes(a.Rows, a.Cols))})
	t.write(f32s(a.Scales, 1, a.Rows, 0))
	return record(r, &c, &a, a.Workgroups(), &t, co)
}

// DequantF16 decodes weights of type t into tiles of float16. W must be a multiple of 2.
func DequantF16(r *Recorder, t gguf.Type, a shaders.DequantF16Args) error {
	if a.M == 0 || a.K == 0 {
		return nil
	}
	c := check{choice: dequantChoice(t)}
	c.require(a.W != 0 && a.W%2 == 0, "W", a.W, "a multiple of 2, not 0")
	c.address("Dst", a.Dst)
	c.blocks("K", a.K)
	a.Grids = c.grids(r)
	bytes := float64(a.M) * rowBytes(t, a.K)
	var touched touch
	touched.read(span{a.W, a.W + uint64(bytes)})
	touched.write(span{a.Dst, a.Dst + uint64(shaders.TilesBytes(a.M, a.K))})
	return record(r, &c, &a, a.Workgroups(t), &touched, cost{bytes: bytes + 2*float64(a.M)*float64(a.K)})
}
