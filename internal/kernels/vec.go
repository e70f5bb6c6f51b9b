package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// Matrix is one of the matrices of [Products]: W (M, K), its Bias (M) or 0, where its product goes.
type Matrix struct {
	W, Bias, Dst uint64
	M            uint32
}

// Products are Dst (N, M) = X (N, K) · Wᵀ + Bias + Residual, of up to three matrices of one type that share X; those of
// no rows are not there. Strides are of the first Dst and of the residual, which is added to it; the other outputs' rows
// stand one behind another.
type Products struct {
	Type                      gguf.Type
	X                         uint64
	N, K, XStride             uint32
	Of                        [3]Matrix
	DstStride, ResidualStride uint32
	Residual                  uint64 // 0: none
	GLU                       bool   // the first Dst is silu(first product) * second, and there is no other
}

// Takes reports whether the device and the recorder's memory allow [Multiply]; [MulMat] and the other
// plain ops are always there.
func Takes(r *Recorder, p *Products) bool {
	variant := teamVariant(r, p.Type, p.K)
	if !r.inBytes() || variant == "" || !p.GLU && r.k.tuned.Load().plain(p.Type, p.K) {
		return false
	}
	if variant == shaders.Wide {
		if p.K%8 != 0 || p.XStride%4 != 0 {
			return false
		}
	} else if p.K%q8Block != 0 || shaders.Q8Size(p.N, p.K) > r.q8Room() || !r.usable(choice{op: "quantize_q8"}, shaders.QuantizeQ8) {
		return false
	}
	if p.N == 0 || p.Of[0].M == 0 {
		return true
	}
	c := teamChoice(r, variant, p.Type, gluOf(r, p), p.N, outRows(gluOf(r, p), p.Of[0].M, p.Of[1].M, p.Of[2].M), p.K)
	ok := r.usable(c, func() (*shaders.Kernel, error) { return shaders.MulMatVecVariant(variant, p.Type) })
	if !ok && variant == shaders.Straight {
		r.k.straight.Store(false)
		return Takes(r, p)
	}
	if !ok && variant == shaders.Longs {
		r.k.longs.Store(false)
		return Takes(r, p)
	}
	return ok
}

// gluOf is how products are gated: their output goes into bytes as well where there is room.
func gluOf(r *Recorder, p *Products) uint32 {
	m := p.Of[0].M
	switch {
	case !p.GLU:
		return shaders.NoGLU
	case m%q8Block == 0 && p.DstStride == m && shaders.Q8Size(p.N, m) <= r.q8Room():
		return shaders.GLUBytes
	}
	return shaders.GLUFloats
}

// outRows is how many values products make of a row of X: gates and what they let through make one.
func outRows(glu, m0, m1, m2 uint32) uint32 {
	if glu == shaders.NoGLU {
		return m0 + m1 + m2
	}
	return m0
}

// teamChoice is the pipeline of n rows times a matrix of k values a row, whose outputs have m values.
func teamChoice(r *Recorder, variant string, t gguf.Type, glu, n, m, k uint32) choice {
	tile, cols := r.Tile, vecCols(min(n, shaders.FewRows))
	if variant == shaders.Straight {
		if tile, cols = straightTile(tile, k), min(cols, straightCols); tile.Rows*cols*tile.Lanes > maxTileSums {
			cols = 1
		}
		return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: tile}
	}
	if tile == (Tile{}) {
		tile = r.k.tuned.Load().tile(t, pairs(glu), k)
	}
	return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: r.k.vecTile(tile, variant, t, glu, m, k)}
}

// Team is the variant of mul_mat_vec in teams for weights of type t in rows of so many values; "": there is none.
func (k *Kernels) Team(t gguf.Type, cols uint32) string {
	switch v := teamVariants[t]; {
	case v != shaders.Int8 || !k.longs.Load():
		return v
	case k.straightens(t, cols):
		return shaders.Straight
	}
	return shaders.Longs
}

// team is [Kernels.Team]; with a tile of the recorder's it is a variant that takes any.
func teamVariant(r *Recorder, t gguf.Type, cols uint32) string {
	v := r.k.Team(t, cols)
	if v == shaders.Straight && r.Tile != (Tile{}) {
		return shaders.Longs
	}
	return v
}

// teamVariants are the mul_mat_vec in teams that need the least, by the type of the weights.
var teamVariants = findTeamVariants()

func findTeamVariants() map[gguf.Type]string {
	m := map[gguf.Type]string{}
	for _, k := range shaders.Kernels() {
		if k.Op == "mul_mat_vec" && (k.Variant == shaders.Int8 || k.Variant == shaders.Wide) {
			m[k.Type] = k.Variant
		}
	}
	return m
}

// Products records products that [Takes]. X is brought into bytes at need.
func Multiply(r *Recorder, p *Products) error {
	a := shaders.MulMatTeamArgs{
		W0: p.Of[0].W, W1: p.Of[1].W, W2: p.Of[2].W, Bias0: p.Of[0].Bias, Bias1: p.Of[1].Bias, Bias2: p.Of[2].Bias,
		Dst0: p.Of[0].Dst, Dst1: p.Of[1].Dst, Dst2: p.Of[2].Dst, X: p.X, Residual: p.Residual,
		M0: p.Of[0].M, M1: p.Of[1].M, M2: p.Of[2].M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride, ResidualStride: p.ResidualStride,
	}
	variant, glu := teamVariant(r, p.Type, p.K), gluOf(r, p)
	if variant != shaders.Wide {
		var err error
		if a.X, a.S, err = r.bytesOf(p.X, p.N, p.K, p.XStride); err != nil {
			return err
		}
	}
	var to *q8
	if glu == shaders.GLUBytes && p.N > 0 && a.M0 > 0 {
		to = r.q8Slot(a.Dst0, p.N, a.M0, a.DstStride, a.X)
		a.Dst1, a.Dst2 = to.q, to.sums
	}
	if err := MulMatTeam(r, variant, p.Type, glu, a); err != nil {
		return err
	}
	if to != nil {
		to.there = true
	}
	return nil
}

// MulMatTeam records one mul_mat_vec in teams, of a variant; see [shaders.MulMatTeamArgs] for glu.
func MulMatTeam(r *Recorder, variant string, t gguf.Type, glu uint32, a shaders.MulMatTeamArgs) error {
	if a.M0 == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: vecCols(min(a.N, shaders.FewRows)), glu: glu}}
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.team(variant, glu, &a)
	if c.err != nil {
		return c.err
	}
	m := a.M0 + a.M1 + a.M2
	c.choice = teamChoice(r, variant, t, glu, a.N, outRows(glu, a.M0, a.M1, a.M2), a.K)
	if c.shape(c.tile, glu, c.cols, r.k.dev.Physical.Limits.MaxWorkgroupInvocations); c.err != nil {
		return c.err
	}
	workgroups := a.Workgroups(glu != shaders.NoGLU, c.tile.outputs(glu), c.cols)
	if variant == shaders.Straight {
		if c.straight(c.tile, a.K, workgroups); c.err != nil {
			return c.err
		}
	}
	b, err := r.get(c.choice, func() (*shaders.Kernel, error) { return shaders.MulMatVecVariant(variant, t) })
	if err != nil {
		return err
	}
	rows, n, k := float64(m), float64(a.N), float64(a.K)
	passes := float64((a.N + c.cols - 1) / c.cols)
	co := cost{bytes: passes*rows*rowBytes(t, a.K) + 4*n*(k+rows), flops: 2 * rows * n * k}
	touched := teamTouch(variant, t, glu, &a)
	if variant == shaders.Straight {
		straight := a.Straight()
		return dispatch(r, &c, b, &straight, workgroups, &touched, co)
	}
	return dispatch(r, &c, b, &a, workgroups, &touched, co)
}

// team checks addresses and strides.
func (c *check) team(variant string, glu uint32, a *shaders.MulMatTeamArgs) {
	c.address("X", a.X)
	if variant != shaders.Wide {
		c.address("S", a.S)
	} else {
		c.stride("XStride", a.XStride, a.K)
		c.multiple("XStride", a.XStride, 4)
		c.multiple("K", a.K, 8)
	}
	for _, m := range [...]struct {
		w, dst    string // whole names: putting them together would allocate, for each product
		of, to    uint64
		m, stride uint32
		internal  bool // stays in the kernel
	}{{"W0", "Dst0", a.W0, a.Dst0, a.M0, a.DstStride, false}, {"W1", "Dst1", a.W1, a.Dst1, a.M1, a.M1, glu == shaders.GLUFloats}, {"W2", "Dst2", a.W2, a.Dst2, a.M2, a.M2, glu == shaders.GLUFloats}} {
		if m.m == 0 {
			continue
		}
		c.address(m.w, m.of)
		if !m.internal {
			c.floats(m.dst, m.to, m.stride)
		}
	}
	c.stride("DstStride", a.DstStride, a.M0)
	c.most("GLU", glu, shaders.GLUBytes)
	if pairs(glu) {
		if a.M1 != a.M0 || a.M2 != 0 {
			c.that(false, "M1", a.M1, fmt.Sprintf("M0, %d, for gates and what they let through", a.M0))
		}
	}
	if glu == shaders.GLUBytes {
		c.multiple("M0", a.M0, q8Block)
		c.address("Dst2", a.Dst2)
	}
	if a.Residual != 0 {
		c.stride("ResidualStride", a.ResidualStride, a.M0)
	}
}

// teamTouch is what a mul_mat_vec in teams reads and writes.
func teamTouch(variant string, t gguf.Type, glu uint32, a *shaders.MulMatTeamArgs) (touched touch) {
	if variant != shaders.Wide {
		touched.read(q8Bytes(a.X, a.N, a.K))
		touched.read(q8Scales(a.S, a.N, a.K))
	} else {
		touched.read(f32s(a.X, a.N, a.K, a.XStride))
	}
	if a.Residual != 0 {
		touched.read(f32s(a.Residual, a.N, a.M0, a.ResidualStride))
	}
	touched.write(f32s(a.Dst0, a.N, a.M0, a.DstStride))
	if glu == shaders.GLUBytes {
		touched.write(q8Bytes(a.Dst1, a.N, a.M0))
		touched.write(q8Scales(a.Dst2, a.N, a.M0))
	}
	for i, m := range [3]Matrix{{a.W0, a.Bias0, a.Dst0, a.M0}, {a.W1, a.Bias1, a.Dst1, a.M1}, {a.W2, a.Bias2, a.Dst2, a.M2}} {
		if m.M == 0 {
			continue
		}
		touched.read(span{m.W, m.W + uint64(float64(m.M)*rowBytes(t, a.K))})
		if m.Bias != 0 {
			touched.read(f32s(m.Bias, 1, m.M, 0))
		}
		if i > 0 && glu == shaders.NoGLU {
			touched.write(f32s(m.Dst, a.N, m.M, m.M))
		}
	}
	return touched
}
