package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// ExpertProducts are the products of (row, expert) pairs, see [shaders.MulMatIDArgs]: Dst is X times the matrix of the pair's expert, whose
// address is in Table. If Up is not 0, it is a second such table: Dst is silu(X times the matrix in Table) * (X times the matrix in Up).
type ExpertProducts struct {
	Type    gguf.Type // type of all matrices
	Up      uint64    // address of the second table; 0: there is none
	Experts uint32    // number of entries of each table
	shaders.MulMatIDArgs
}

// rows is the number of rows of X.
func (p *ExpertProducts) rows() uint32 { return (p.Count-1)/p.Used + 1 }

// byExpert reports whether int8 products use pairs sorted by expert. With an average of at most two pairs for each expert sorting is not worth it: most
// columns of a tile would be idle, and the second pair finds the weights in the device's cache.
func (p *ExpertProducts) byExpert() bool { return p.Tiles != 0 && p.Count > 2*p.Experts }

// cols is how many pairs a workgroup of an int8 product computes.
func (p *ExpertProducts) cols() uint32 {
	if p.byExpert() {
		return shaders.ExpertCols
	}
	return 1
}

// bytesExperts multiplies X in int8 by quantised weights of experts, pair by pair or by tiles of an expert's pairs.
var bytesExperts = variant[ExpertProducts]{
	Rule: Rule{
		Op: "mul_mat_vec_id", Variant: shaders.Int8, When: "decode, without cooperative matrices prompts too; weights in blocks, rows of whole blocks of 32; gates too",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"mul_mat_vec_id_int8", "quantize_q8"},
	},
	unfit:  unfitBytesExperts,
	record: recordBytesExperts,
}

// unfitBytesExperts says why [bytesExperts] can't record p, "" if it can.
func unfitBytesExperts(r *Recorder, p *ExpertProducts) string {
	switch {
	case !r.prefersInt8():
		return "prompts go by cooperative matrices, or have no memory for X in bytes"
	case teamVariants[p.Type] != shaders.Int8:
		return "another type of weights"
	case p.K%q8Block != 0:
		return "rows are no whole blocks of 32"
	case p.Up == 0 && r.k.tuned.Load().prefersFP32(p.Type, p.K):
		return "float32 was faster when tuned"
	case p.empty():
		return ""
	case shaders.Q8Size(p.rows(), p.K) > r.q8Room():
		return "there is no memory for X in bytes"
	case !r.usable(choice{op: "quantize_q8"}),
		!r.usable(idChoice(r, p.Type, gluOfExperts(r, p), p.cols(), p.M, p.K)):
		return failedTest
	}
	return ""
}

// empty reports whether p has no outputs.
func (p *ExpertProducts) empty() bool {
	return p.Count == 0 || p.Used == 0 || p.M == 0 || p.Experts == 0
}

// gluOfExperts is the GLU constant for p: NoGLU if there is no gate, GLUBytes if the gated output can be stored as int8 too, else GLUFloats.
func gluOfExperts(r *Recorder, p *ExpertProducts) uint32 {
	switch {
	case p.Up == 0:
		return shaders.NoGLU
	case p.M%q8Block == 0 && p.DstStride == p.M && shaders.Q8Size(p.Count, p.M) <= r.q8Room():
		return shaders.GLUBytes
	}
	return shaders.GLUFloats
}

// idChoice is the pipeline of int8 products of cols pairs at a time with matrices of m rows of k values.
func idChoice(r *Recorder, t gguf.Type, glu, cols, m, k uint32) choice {
	return choice{op: "mul_mat_vec_id", variant: shaders.Int8, typed: true, typ: t, cols: cols, glu: glu, tile: r.k.idTile(r.Override.Tile, t, glu, m, k/q8Block)}
}

// recordBytesExperts records p as one int8 mul_mat_vec_id. Before that it quantises X, and sorts the pairs by expert if [ExpertProducts.byExpert], unless the
// result of either is in memory already. A gated output is stored as int8 too if there is memory for it.
func recordBytesExperts(r *Recorder, p *ExpertProducts) error {
	if p.M == 0 || p.Count == 0 || p.First >= p.Last {
		return nil
	}
	glu := gluOfExperts(r, p)
	a := shaders.MulMatTeamIDArgs{
		W0: p.Table, W1: p.Up, Dst0: p.Dst, IDs: p.IDs,
		M0: p.M, K: p.K, Blocks: p.Count, Used: p.Used, DstStride: p.DstStride, First: p.First, Last: p.Last,
	}
	if p.byExpert() {
		a.Pairs, a.Tiles = p.Pairs, p.Tiles
		a.Blocks = shaders.ExpertTiles(p.Count, p.Experts, shaders.ExpertCols)
		if err := sortPairs(r, p, shaders.ExpertCols); err != nil {
			return err
		}
	}
	var err error
	if a.X, a.S, err = r.int8X(p.X, p.rows(), p.K, p.XStride); err != nil {
		return err
	}
	var to *q8
	if glu == shaders.GLUBytes {
		to = r.q8Slot(p.Dst, p.Count, p.M, p.DstStride, a.X)
		a.Dst1, a.Dst2 = to.q, to.sums
	}
	if err := MulMatTeamID(r, p.Type, glu, a, p.Count, p.Experts); err != nil {
		return err
	}
	if to != nil {
		to.valid = true
	}
	return nil
}

// MulMatTeamID records one int8 mul_mat_vec_id in teams ([Tile]), pair by pair or, if a.Tiles is not 0, by tiles of pairs sorted by expert. glu is the
// GLU constant, see [shaders.MulMatTeamIDArgs]; pairs is the number of pairs, experts the number of entries of each table.
func MulMatTeamID(r *Recorder, t gguf.Type, glu uint32, a shaders.MulMatTeamIDArgs, pairs, experts uint32) error {
	if a.M0 == 0 || a.Blocks == 0 || a.First >= a.Last {
		return nil
	}
	cols := uint32(1)
	if a.Tiles != 0 {
		cols = shaders.ExpertCols
	}
	c := check{choice: choice{op: "mul_mat_vec_id", variant: shaders.Int8, typed: true, typ: t, cols: cols, glu: glu}}
	checkTeamID(&c, glu, &a, experts)
	a.Grids = c.grids(r)
	if c.err != nil {
		return c.err
	}
	c.choice = idChoice(r, t, glu, cols, a.M0, a.K)
	if c.shape(c.tile, glu, cols, r.k.dev.Physical.Limits.MaxWorkgroupInvocations); c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice)
	if err != nil {
		return err
	}
	rows, matrices := (pairs-1)/a.Used+1, 1.0
	if glu != shaders.NoGLU {
		matrices = 2
	}
	share := (1 - r.Rows.Absent) * float64(a.Last-a.First) / float64(experts)
	m, n, k := matrices*float64(a.M0), share*float64(pairs), float64(a.K)
	passes := share * float64(min(pairs, a.Blocks))
	co := cost{bytes: passes*m*rowBytes(t, a.K) + n*(1.25*k+4*m), flops: 2 * m * n * k}
	var touched touch
	touched.read(q8Bytes(a.X, rows, a.K))
	touched.read(q8Scales(a.S, rows, a.K))
	for _, table := range []uint64{a.W0, a.W1} {
		if table != 0 {
			touched.read(span{table, table + 8*uint64(experts)})
		}
	}
	if a.Tiles != 0 {
		touched.read(f32s(a.Pairs, 1, pairs, 0))
		touched.read(f32s(a.Tiles, a.Blocks, 4, 4))
	} else {
		touched.read(f32s(a.IDs, 1, pairs, 0))
	}
	touched.write(f32s(a.Dst0, pairs, a.M0, a.DstStride))
	if glu == shaders.GLUBytes {
		touched.write(q8Bytes(a.Dst1, pairs, a.M0))
		touched.write(q8Scales(a.Dst2, pairs, a.M0))
	}
	return dispatch(r, &c, b, &a, a.Workgroups(c.tile.outputs(glu)), &touched, co)
}

// checkTeamID checks addresses and strides of a mul_mat_vec_id in teams.
func checkTeamID(c *check, glu uint32, a *shaders.MulMatTeamIDArgs, experts uint32) {
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.multiple("K", a.K, q8Block)
	c.positive("Used", a.Used)
	c.positive("experts", experts)
	c.atMost("Last", a.Last, experts)
	c.atMost("GLU", glu, shaders.GLUBytes)
	c.address("X", a.X)
	c.address("S", a.S)
	c.table("W0", a.W0)
	c.floats("Dst0", a.Dst0, a.DstStride)
	c.stride("DstStride", a.DstStride, a.M0)
	if a.Tiles != 0 {
		c.words("Pairs", a.Pairs)
		c.address("Tiles", a.Tiles)
	} else {
		c.words("IDs", a.IDs)
	}
	if glu != shaders.NoGLU {
		c.table("W1", a.W1)
	}
	if glu == shaders.GLUBytes {
		c.multiple("M0", a.M0, q8Block)
		c.address("Dst1", a.Dst1)
		c.address("Dst2", a.Dst2)
	}
}
