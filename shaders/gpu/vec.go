package gpu

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// maxVecCols is the most rows of X that mul_mat_vec takes.
const maxVecCols = 8

// QuantizeQ8 turns X (Rows, Cols) into blocks of 32 bytes Q with their scales and sums S.
func (r *Recorder) QuantizeQ8(a shaders.QuantizeQ8Args) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "quantize_q8"}}
	c.address("X", a.X)
	c.address("Q", a.Q)
	c.address("S", a.S)
	c.multiple("Cols", a.Cols, q8Block)
	c.stride("XStride", a.XStride, a.Cols)
	n := float64(a.Rows) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.XStride))
	t.write(q8Bytes(a.Q, a.Rows, a.Cols))
	t.write(q8Scales(a.S, a.Rows, a.Cols))
	return record(r, &c, shaders.QuantizeQ8, &a, a.Workgroups(), &t, cost{5.25 * n, 4 * n})
}

// q8Block is the number of values that share a scale.
const q8Block = 32

func q8Bytes(at uint64, rows, cols uint32) span  { return span{at, at + uint64(rows)*uint64(cols)} }
func q8Scales(at uint64, rows, cols uint32) span { return span{at, at + uint64(rows)*uint64(cols)/4} }

// MulMatInt8 multiplies by weights of type t: Dst (N, M) = X (N, K) · Wᵀ, X as [Recorder.QuantizeQ8] left it, at most 8
// rows. With planar, W is laid out in planes (see [shaders.PlanarFields]).
func (r *Recorder) MulMatInt8(t gguf.Type, planar bool, a shaders.MulMatInt8Args) error {
	if a.M == 0 || a.N == 0 {
		return nil
	}
	variant := shaders.Int8
	if planar {
		variant = shaders.Int8Planar
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: vecCols(a.N), tile: r.Tile}}
	c.address("W", a.W)
	c.address("X", a.X)
	c.address("S", a.S)
	c.address("Dst", a.Dst)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.vec(a.N)
	c.stride("DstStride", a.DstStride, a.M)
	if c.err != nil {
		return c.err
	}
	b, err := r.k.get(c.choice, func() (*shaders.Kernel, error) { return shaders.MulMatVecVariant(variant, t) })
	if err != nil {
		return err
	}
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	co := cost{bytes: m*rowBytes(t, a.K) + n*(1.25*k+4*m), flops: 2 * m * n * k}
	var touched touch
	touched.read(span{a.W, a.W + uint64(m*rowBytes(t, a.K))})
	touched.read(q8Bytes(a.X, a.N, a.K))
	touched.read(q8Scales(a.S, a.N, a.K))
	touched.write(f32s(a.Dst, a.N, a.M, a.DstStride))
	return dispatch(r, &c, b, &a, a.Workgroups(b.constant("NUM_ROWS"), b.constant("NUM_COLS"), b.constant("TEAM")), &touched, co)
}

// MulMatWide is [Recorder.MulMat] for at most 8 rows of X and weights that are not quantised, by 16-byte loads. A row of
// W and the stride of X are multiples of 16 bytes.
func (r *Recorder) MulMatWide(t gguf.Type, a shaders.MulMatArgs) error {
	if a.M == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: shaders.Wide, typed: true, typ: t, cols: vecCols(a.N), tile: r.Tile}}
	c.address("W", a.W)
	c.address("X", a.X)
	c.address("Dst", a.Dst)
	c.positive("K", a.K)
	c.multiple("K", a.K, 8)
	c.vec(a.N)
	c.stride("XStride", a.XStride, a.K)
	c.multiple("XStride", a.XStride, 4)
	c.stride("DstStride", a.DstStride, a.M)
	if c.err != nil {
		return c.err
	}
	b, err := r.k.get(c.choice, func() (*shaders.Kernel, error) { return shaders.MulMatVecVariant(shaders.Wide, t) })
	if err != nil {
		return err
	}
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	co := cost{bytes: m*rowBytes(t, a.K) + 4*n*(k+m), flops: 2 * m * n * k}
	var touched touch
	touched.read(span{a.W, a.W + uint64(m*rowBytes(t, a.K))})
	touched.read(f32s(a.X, a.N, a.K, a.XStride))
	touched.write(f32s(a.Dst, a.N, a.M, a.DstStride))
	return dispatch(r, &c, b, &a, a.TeamWorkgroups(b.constant("NUM_ROWS"), b.constant("NUM_COLS"), b.constant("TEAM")), &touched, co)
}

func (c *check) vec(n uint32) {
	c.that(n <= maxVecCols, "N", n, fmt.Sprintf("at most %d", maxVecCols))
	t := c.tile
	c.that(t.Rows <= maxTeamRows, "Tile.Rows", t.Rows, fmt.Sprintf("at most %d", maxTeamRows))
	c.that(t.Unroll <= maxUnroll, "Tile.Unroll", t.Unroll, fmt.Sprintf("at most %d", maxUnroll))
	c.that(t.Team&(t.Team-1) == 0 && t.Team <= shaders.MaxTeam, "Tile.Team", t.Team, fmt.Sprintf("a power of 2, at most %d", shaders.MaxTeam))
}

// What the registers of a lane hold without spilling, with room.
const (
	maxTeamRows = 8
	maxUnroll   = 8
)
