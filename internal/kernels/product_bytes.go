package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// unfitTeam says why a variant of mul_mat_vec in teams (see [Tile]) can't, or should not, record p, "" if it can.
func unfitTeam(r *Recorder, p *Products, variant string) string {
	switch {
	case !hasTeam(variant, p.Type):
		return "another type of weights"
	case !p.takesScales(variant):
		return "scales beside weights of another type than NVFP4, or with biases"
	case !r.prefersInt8():
		return "prompts go by cooperative matrices, or have no memory for X in bytes"
	case !p.GLU && r.k.tuned.Load().prefersFP32(p.Type, p.K):
		return "float32 was faster when tuned"
	case variant == shaders.Wide && (p.K%8 != 0 || p.XStride%4 != 0):
		return "rows are no multiple of 8 values"
	case variant != shaders.Wide && p.K%q8Block != 0:
		return "rows are no whole blocks of 32"
	case variant != shaders.Wide && shaders.Q8Size(p.N, p.K) > r.q8Room():
		return "there is no memory for X in bytes"
	case variant != shaders.Wide && !r.usable(choice{op: "quantize_q8"}):
		return failedTest
	}
	if p.empty() {
		return ""
	}
	c := teamChoice(r, variant, p.Type, gluOf(r, p), p.N, p.outputs(), p.K)
	if !r.usable(c) {
		return failedTest
	}
	return ""
}

// hasTeam reports whether there is a mul_mat_vec in teams of a variant for weights of type t.
func hasTeam(variant string, t gguf.Type) bool {
	return teamTypes[teamType{variant, t}]
}

// gluOf is the GLU constant for p: NoGLU if there is no gate, GLUBytes if the gated output can be stored as int8 too, else GLUFloats.
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

// outRows is how many values products with matrices of m0, m1 and m2 rows compute from a row of X. With a gate, one row of gate and one of up make one
// value.
func outRows(glu, m0, m1, m2 uint32) uint32 {
	if glu == shaders.NoGLU {
		return m0 + m1 + m2
	}
	return m0
}

// teamChoice is the pipeline of a variant of mul_mat_vec in teams, for n rows of X of k values and outputs of m values.
func teamChoice(r *Recorder, variant string, t gguf.Type, glu, n, m, k uint32) choice {
	tile, cols := r.Override.Tile, vecCols(min(n, shaders.FewRows))
	if variant == shaders.Straight {
		if tile, cols = straightTile(tile, k), min(cols, straightCols); tile.Rows*cols*tile.Lanes > maxTileSums {
			cols = 1
		}
		return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: tile}
	}
	if variant == shaders.Persistent {
		return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: persistentTile(tile, glu, k/persistentPart)}
	}
	if tile == (Tile{}) {
		tile = r.k.tuned.Load().tile(t, isGated(glu), k)
	}
	return choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: cols, glu: glu, tile: r.k.vecTile(tile, variant, t, glu, m, k)}
}

// TeamVariant is the variant of mul_mat_vec in teams for weights of type t in rows of cols values that is used on the device if it passes its self-test;
// "": there is none for the type.
func (k *Kernels) TeamVariant(t gguf.Type, cols uint32) string {
	switch {
	case k.can.straight && fitsStraight(t, cols):
		return shaders.Straight
	case k.can.longs && hasTeam(shaders.Longs, t):
		return shaders.Longs
	}
	return teamVariants[t]
}

// teamVariants has, by the type of the weights, the variant of mul_mat_vec in teams that needs the least of a device: Int8 or Wide.
var teamVariants = findTeamVariants()

// teamTypes has the variants of mul_mat_vec in the shaders' table with the types of weights that they are for.
var teamTypes = findTeamTypes()

type teamType struct {
	variant string
	t       gguf.Type
}

func findTeamTypes() map[teamType]bool {
	m := map[teamType]bool{}
	for _, k := range shaders.Kernels() {
		if k.Op == "mul_mat_vec" {
			m[teamType{k.Variant, k.Type}] = true
		}
	}
	return m
}

// findTeamVariants finds [teamVariants] in the shaders' table.
func findTeamVariants() map[gguf.Type]string {
	m := map[gguf.Type]string{}
	for _, k := range shaders.Kernels() {
		if k.Op == "mul_mat_vec" && (k.Variant == shaders.Int8 || k.Variant == shaders.Wide) {
			m[k.Type] = k.Variant
		}
	}
	return m
}

// recordTeam records p as one mul_mat_vec in teams of a variant. If the variant reads X as int8, it first quantises X, unless that is in memory already.
func recordTeam(r *Recorder, p *Products, variant string) error {
	a := shaders.MulMatTeamArgs{
		W0: p.Of[0].W, W1: p.Of[1].W, W2: p.Of[2].W, Bias0: p.Of[0].biasOrScale(), Bias1: p.Of[1].biasOrScale(), Bias2: p.Of[2].biasOrScale(),
		Dst0: p.Of[0].Dst, Dst1: p.Of[1].Dst, Dst2: p.Of[2].Dst, X: p.X, Residual: p.Residual,
		M0: p.Of[0].M, M1: p.Of[1].M, M2: p.Of[2].M, K: p.K, N: p.N, XStride: p.XStride, DstStride: p.DstStride, ResidualStride: p.ResidualStride,
	}
	glu := gluOf(r, p)
	if variant != shaders.Wide {
		var err error
		if a.X, a.S, err = r.int8X(p.X, p.N, p.K, p.XStride); err != nil {
			return err
		}
	}
	var to *q8
	if glu == shaders.GLUBytes && !p.empty() {
		to = r.q8Slot(a.Dst0, p.N, a.M0, a.DstStride, a.X)
		a.Dst1, a.Dst2 = to.q, to.sums
	}
	if err := MulMatTeam(r, variant, p.Type, glu, a); err != nil {
		return err
	}
	if to != nil {
		to.valid = true
	}
	return nil
}

// MulMatTeam records one mul_mat_vec in teams of a variant. glu is the GLU constant, see [shaders.MulMatTeamArgs].
func MulMatTeam(r *Recorder, variant string, t gguf.Type, glu uint32, a shaders.MulMatTeamArgs) error {
	return mulMatTeam(r, variant, t, glu, persistentGroups, a)
}

// mulMatTeam is MulMatTeam; groups bounds the workgroups of mul_mat_vec_persistent.
func mulMatTeam(r *Recorder, variant string, t gguf.Type, glu, groups uint32, a shaders.MulMatTeamArgs) error {
	if a.M0 == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: variant, typed: true, typ: t, cols: vecCols(min(a.N, shaders.FewRows)), glu: glu}}
	c.positive("K", a.K)
	c.blocks("K", a.K)
	checkTeam(&c, variant, glu, &a)
	if at := c.grids(r); at != 0 && !a.SetGrids(at) {
		c.require(false, "XStride", a.XStride, "Memory.Grids and S less than 32 GiB apart, each on 16 bytes")
	}
	if c.err != nil {
		return c.err
	}
	m := a.M0 + a.M1 + a.M2
	c.choice = teamChoice(r, variant, t, glu, a.N, outRows(glu, a.M0, a.M1, a.M2), a.K)
	workgroups := teamWorkgroups(&c, glu, groups, &a, r.k.dev.Physical.Limits.MaxWorkgroupInvocations)
	if c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice)
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

// teamWorkgroups checks the tile of c, a mul_mat_vec in teams: groups of lanes that share a row's sum. It returns the number of workgroups for the
// arguments a. glu is the kernel's GLU constant, lanes the most lanes that a workgroup may have, groups the most workgroups of mul_mat_vec_persistent.
func teamWorkgroups(c *check, glu, groups uint32, a *shaders.MulMatTeamArgs, lanes uint32) uint64 {
	if c.variant == shaders.Persistent {
		if checkPersistent(c, c.tile, glu, a.K, lanes); c.err != nil {
			return 0
		}
		return persistentWorkgroups(a.Workgroups(glu != shaders.NoGLU, persistentOutputs(c.tile, glu), c.cols), uint64(groups))
	}
	if c.shape(c.tile, glu, c.cols, lanes); c.err != nil {
		return 0
	}
	n := a.Workgroups(glu != shaders.NoGLU, c.tile.outputs(glu), c.cols)
	if c.variant == shaders.Straight {
		checkStraight(c, c.tile, a.K, n)
	}
	return n
}

// checkTeam checks addresses and strides of a mul_mat_vec in teams.
func checkTeam(c *check, variant string, glu uint32, a *shaders.MulMatTeamArgs) {
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
		internal  bool // the output is not stored
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
	c.atMost("GLU", glu, shaders.GLUBytes)
	if isGated(glu) {
		if a.M1 != a.M0 || a.M2 != 0 {
			c.require(false, "M1", a.M1, fmt.Sprintf("M0, %d, for gates and what they let through", a.M0))
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

// teamTouch is the memory that a mul_mat_vec in teams reads and writes.
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
	for i, m := range [3]Matrix{{W: a.W0, Bias: a.Bias0, Dst: a.Dst0, M: a.M0}, {W: a.W1, Bias: a.Bias1, Dst: a.Dst1, M: a.M1}, {W: a.W2, Bias: a.Bias2, Dst: a.Dst2, M: a.M2}} {
		if m.M == 0 {
			continue
		}
		touched.read(span{m.W, m.W + uint64(float64(m.M)*rowBytes(t, a.K))})
		if m.Bias != 0 {
			touched.read(f32s(m.Bias&^1, 1, m.M, 0))
		}
		if i > 0 && glu == shaders.NoGLU {
			touched.write(f32s(m.Dst, a.N, m.M, m.M))
		}
	}
	return touched
}
