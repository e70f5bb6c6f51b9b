package kernels

import (
	"fmt"
	"math"

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
	Norm                      Norm   // of the first Dst, which has no other beside it; see [Recorder.Folds]
}

// Norm is an RMSNorm whose output exists as bytes alone, and is divided by the root of the mean in the products that take it:
// all that read it must be [Products] of a type that has bytes for X, with the X, N, K and XStride = K that are given here.
type Norm struct {
	W   uint64 // weights; 0: there is no norm
	X   uint64 // memory that stands for the output; nothing is written there
	Eps float32
}

// Folds reports whether the device and the recorder's memory allow the Norm of products of so many columns: of any few rows.
func (r *Recorder) Folds(cols uint32) bool {
	return r.Role == Decode && r.k.few && cols > 0 && cols%(4*q8Block) == 0 && shaders.NormedSize(shaders.FewRows, cols) <= r.q8Room() && int64(cols)/q8Block*4 <= r.Counters.Bytes
}

// Takes reports whether the device and the recorder's memory allow [Recorder.Products]; [Recorder.MulMat] and the other
// plain ops are always there.
func (r *Recorder) Takes(p *Products) bool {
	variant := r.variantOf(p)
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
	c := r.teamChoice(variant, p.Type, r.gluOf(p), p.N, outRows(r.gluOf(p), p.Of[0].M, p.Of[1].M, p.Of[2].M), p.K)
	ok := r.usable(c, func() (*shaders.Kernel, error) { return shaders.MulMatVecVariant(variant, p.Type) })
	if !ok && variant == shaders.Straight {
		r.k.straight.Store(false)
		return r.Takes(p)
	}
	if !ok && variant == shaders.Persistent {
		r.k.persistent.Store(false)
		return r.Takes(p)
	}
	if !ok && variant == shaders.Longs {
		r.k.longs.Store(false)
		return r.Takes(p)
	}
	return ok
}

// gluOf is how products are gated: their output goes into bytes as well where there is room.
func (r *Recorder) gluOf(p *Products) uint32 {
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
func (r *Recorder) teamChoice(variant string, t gguf.Type, glu, n, m, k uint32) choice {
	tile, cols := r.Tile, vecCols(min(n, shaders.FewRows))
	if variant == shaders.Straight {
		if tile, cols = straightTile(tile, k), min(cols, straightCols); tile.Rows*cols*tile.Lanes > maxTileSums {
			cols = 1
		}
		return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: tile}
	}
	if variant == shaders.Persistent {
		return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: r.k.persistentTile(tile, glu, k/persistentPart)}
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
func (r *Recorder) team(t gguf.Type, cols uint32) string {
	v := r.k.Team(t, cols)
	if v == shaders.Straight && r.Tile != (Tile{}) {
		return shaders.Longs
	}
	return v
}

// variantOf is the variant that [Recorder.Products] records.
func (r *Recorder) variantOf(p *Products) string {
	v, glu := r.team(p.Type, p.K), r.gluOf(p)
	if v != shaders.Wide && v != "" && pairs(glu) && r.Tile == (Tile{}) && r.k.tuned.Load().tile(p.Type, true, p.K) == (Tile{}) && r.k.persists(p.Type, glu, p.K) {
		return shaders.Persistent
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

// Products records products that [Recorder.Takes]. X is brought into bytes at need.
func (r *Recorder) Products(p *Products) error {
	a := shaders.MulMatTeamArgs{
		W0: p.Of[0].W, W1: p.Of[1].W, W2: p.Of[2].W, Bias0: p.Of[0].Bias, Bias1: p.Of[1].Bias, Bias2: p.Of[2].Bias,
		Dst0: p.Of[0].Dst, Dst1: p.Of[1].Dst, Dst2: p.Of[2].Dst, X: p.X, Residual: p.Residual,
		M0: p.Of[0].M, M1: p.Of[1].M, M2: p.Of[2].M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride, ResidualStride: p.ResidualStride,
	}
	variant, glu, normed := r.variantOf(p), r.gluOf(p), false
	if variant != shaders.Wide {
		from, err := r.bytesOf(p.X, p.N, p.K, p.XStride)
		if err != nil {
			return err
		}
		a.X, a.S, normed = from.q, from.sums, from.normed
		if normed && variant == shaders.Persistent {
			variant = r.team(p.Type, p.K)
		}
	}
	var to *q8
	if p.Norm.W != 0 {
		return r.productNormed(p, variant, normed, &a)
	}
	if glu == shaders.GLUBytes && p.N > 0 && a.M0 > 0 {
		to = r.q8Slot(a.Dst0, p.N, a.M0, a.DstStride, a.X)
		a.Dst1, a.Dst2 = to.q, to.sums
	}
	if err := r.mulMatTeam(variant, p.Type, glu, normed, a); err != nil {
		return err
	}
	if to != nil {
		to.there = true
	}
	return nil
}

// productNormed records the product a, whose output goes into the bytes of a norm as well.
func (r *Recorder) productNormed(p *Products, variant string, normed bool, a *shaders.MulMatTeamArgs) error {
	if p.N == 0 || a.M0 == 0 {
		return nil
	}
	if !r.Folds(a.M0) || normed || p.N > shaders.FewRows || p.GLU || a.M1|a.M2 != 0 {
		return &ArgError{"mul_mat_vec", "Norm of a Dst of values", a.M0, "a multiple of 128 that is alone, of few rows, of no norm itself, and Q8 and Counters for it"}
	}
	to := r.q8Slot(p.Norm.X, p.N, a.M0, a.M0, a.X)
	a.W1, a.Dst1, a.Dst2, a.Bias1, a.M1 = p.Norm.W, to.q, to.sums, r.Counters.Address, math.Float32bits(p.Norm.Eps)
	if err := r.mulMatTeam(variant, p.Type, shaders.NormBytes, normed, *a); err != nil {
		return err
	}
	to.there, to.normed = true, true
	return nil
}

// MulMatTeam records one mul_mat_vec in teams, of a variant; see [shaders.MulMatTeamArgs] for glu.
func (r *Recorder) MulMatTeam(variant string, t gguf.Type, glu uint32, a shaders.MulMatTeamArgs) error {
	return r.mulMatTeam(variant, t, glu, false, a)
}

// MulMatNormed is MulMatTeam of an X that one of [shaders.NormBytes] has left: it takes the norm's part that is left to do.
func (r *Recorder) MulMatNormed(variant string, t gguf.Type, glu uint32, a shaders.MulMatTeamArgs) error {
	return r.mulMatTeam(variant, t, glu, true, a)
}

func (r *Recorder) mulMatTeam(variant string, t gguf.Type, glu uint32, normed bool, a shaders.MulMatTeamArgs) error {
	if a.M0 == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: vecCols(min(a.N, shaders.FewRows)), glu: glu, normed: normed}}
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.team(variant, glu, &a)
	if normed || glu == shaders.NormBytes {
		c.most("N", a.N, shaders.FewRows)
	}
	if normed {
		c.multiple("K", a.K, 4*q8Block)
	}
	if c.err != nil {
		return c.err
	}
	m := a.M0
	if glu != shaders.NormBytes {
		m += a.M1 + a.M2
	}
	c.choice = r.teamChoice(variant, t, glu, a.N, outRows(glu, a.M0, a.M1, a.M2), a.K)
	c.choice.normed = normed
	if most := r.k.dev.Physical.Limits.MaxWorkgroupInvocations; variant == shaders.Persistent {
		c.persistentShape(c.tile, glu, a.K/persistentPart, most)
	} else {
		c.shape(c.tile, glu, c.cols, most)
	}
	if c.err != nil {
		return c.err
	}
	var workgroups uint64
	if variant == shaders.Persistent {
		workgroups = r.persistentWorkgroups(a.Workgroups(glu != shaders.NoGLU, persistentOutputs(c.tile, glu), c.cols))
	} else {
		workgroups = a.Workgroups(glu != shaders.NoGLU, c.tile.outputs(glu), c.cols)
	}
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
	if normed {
		touched.read(squares(a.S, a.N, a.K))
	}
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
	m1 := a.M1
	if glu == shaders.NormBytes {
		m1 = 1 // W1 and Dst1 are addresses there too
		c.address("Bias1", a.Bias1)
		c.multiple("DstStride", a.DstStride, 4)
		if !(math.Float32frombits(a.M1) >= 0) || a.M2 != 0 {
			c.that(false, "M1", a.M1, "the bits of eps, 0 or more, and no third matrix")
		}
	}
	for _, m := range [...]struct {
		w, dst    string // whole names: putting them together would allocate, for each product
		of, to    uint64
		m, stride uint32
		internal  bool // stays in the kernel
	}{{"W0", "Dst0", a.W0, a.Dst0, a.M0, a.DstStride, false}, {"W1", "Dst1", a.W1, a.Dst1, m1, a.M1, glu == shaders.GLUFloats}, {"W2", "Dst2", a.W2, a.Dst2, a.M2, a.M2, glu == shaders.GLUFloats}} {
		if m.m == 0 {
			continue
		}
		c.address(m.w, m.of)
		if !m.internal {
			c.floats(m.dst, m.to, m.stride)
		}
	}
	c.stride("DstStride", a.DstStride, a.M0)
	c.most("GLU", glu, shaders.NormBytes)
	if pairs(glu) {
		if a.M1 != a.M0 || a.M2 != 0 {
			c.that(false, "M1", a.M1, fmt.Sprintf("M0, %d, for gates and what they let through", a.M0))
		}
	}
	if glu == shaders.GLUBytes || glu == shaders.NormBytes {
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
	if glu == shaders.GLUBytes || glu == shaders.NormBytes {
		touched.write(q8Bytes(a.Dst1, a.N, a.M0))
		touched.write(q8Scales(a.Dst2, a.N, a.M0))
	}
	of := 3
	if glu == shaders.NormBytes {
		touched.read(f32s(a.W1, 1, a.M0, 0))
		touched.write(f32s(a.Bias1, 1, a.M0/q8Block, 0))
		touched.write(squares(a.Dst2, a.N, a.M0))
		of = 1
	}
	for i, m := range [3]Matrix{{a.W0, a.Bias0, a.Dst0, a.M0}, {a.W1, a.Bias1, a.Dst1, a.M1}, {a.W2, a.Bias2, a.Dst2, a.M2}} {
		if i >= of {
			break
		}
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
