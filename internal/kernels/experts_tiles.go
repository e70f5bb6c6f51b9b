package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// sorted describes the (row, expert) pairs that group_experts sorted last; the zero value: none.
type sorted struct {
	ids           span   // input: the experts that each row chose
	pairs, tiles  span   // outputs
	experts, cols uint32 // number of experts of a layer, and largest number of pairs in a tile
}

// sortPairs records a group_experts that sorts the pairs of p by expert into tiles of cols pairs, unless the last one sorted the same.
func sortPairs(r *Recorder, p *ExpertProducts, cols uint32) error {
	a := shaders.GroupExpertsArgs{IDs: p.IDs, Pairs: p.Pairs, Tiles: p.Tiles, Count: p.Count, Experts: p.Experts, Cols: cols}
	if r.sorted == sortedBy(&a) {
		return nil
	}
	return GroupExperts(r, a)
}

// sortedBy describes the pairs that group_experts sorts with a.
func sortedBy(a *shaders.GroupExpertsArgs) sorted {
	return sorted{
		ids: f32s(a.IDs, 1, a.Count, 0), pairs: f32s(a.Pairs, 1, a.Count, 0), tiles: f32s(a.Tiles, shaders.ExpertTiles(a.Count, a.Experts, a.Cols), 4, 4),
		experts: a.Experts, cols: a.Cols,
	}
}

// forgetSorted forgets the sorted pairs where t overwrites their input or output.
func (r *Recorder) forgetSorted(t *touch) {
	if s := &r.sorted; anyOverlap([]span{s.ids, s.pairs, s.tiles}, t.writes[:t.nw]) {
		*s = sorted{}
	}
}

// Average numbers of pairs of an expert up to which a workgroup of mul_mat_id_cm computes fewer pairs than TileRows. The number of pairs varies from expert
// to expert. An expert whose pairs need another workgroup has its weights decoded again.
const (
	quarterPairs = shaders.TileRows * 5 / 16 // up to this number a workgroup computes a quarter of TileRows
	halfPairs    = shaders.TileRows * 5 / 8  // up to this number a workgroup computes half of TileRows
)

// idCMTile is the tile of mul_mat_id_cm for a number of pairs spread over a number of experts. The bits of the result do not depend on it.
func idCMTile(r *Recorder, t gguf.Type, pairs, experts uint32) cmTile {
	s := r.Override.CMTile
	if s == (CMTile{}) {
		switch each := pairs / experts; {
		case r.k.can.matrix < 16:
			s = softCMTile
		case each <= quarterPairs:
			s = CMTile{BM: 128, BN: 32, WM: 32, WN: 32}
		case each <= halfPairs:
			s = OwnCMTile(halfTile)
		default:
			s = OwnCMTile(shaders.TileRows)
		}
		s.Halves, s.Wide = true, true
	}
	return r.k.cmTile(s, sharedGrid(t))
}

// softCMTile is for a CPU driver, which would compile larger tiles for minutes.
var softCMTile = CMTile{BM: 64, BN: 64, WM: 32, WN: 16}

// idMatrixChoice is the pipeline of mul_mat_id_cm for weights of type t.
func idMatrixChoice(r *Recorder, t gguf.Type, gated bool, pairs, experts uint32) choice {
	c := choice{op: "mul_mat_id", variant: shaders.CM, typed: true, typ: t, cmTile: idCMTile(r, t, pairs, experts)}
	if r.Override.CMTile == (CMTile{}) && t.BlockBytes()%16 == 0 { // other types were not measured
		c.cmTile.Halves, c.cmTile.Wide = true, true
	}
	if gated {
		c.glu = shaders.GLUFloats
	}
	return c
}

// tilesExperts multiplies X as tiles of float16 by quantised weights of experts, which the kernel decodes, with cooperative matrices.
var tilesExperts = variant[ExpertProducts]{
	Rule: Rule{
		Op: "mul_mat_id", Variant: shaders.CM, When: "prompts; weights in blocks, rows of 64 values or more in whole blocks of 32, memory for X in halves; gates too",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"mul_mat_id_cm", "tile_f16"},
	},
	unfit:  unfitTilesExperts,
	record: expertHalves,
}

// unfitTilesExperts says why [tilesExperts] can't record p, "" if it can.
func unfitTilesExperts(r *Recorder, p *ExpertProducts) string {
	switch {
	case r.prefersInt8():
		return "rows to decode"
	case p.Tiles == 0:
		return "pairs are not sorted by expert"
	case teamVariants[p.Type] != shaders.Int8:
		return "another type of weights"
	case p.K < tileStep || p.K%q8Block != 0:
		return "rows are short, or no whole blocks of 32"
	case p.empty():
		return ""
	case shaders.ScratchBytes(p.rows(), p.K, 0) > r.Memory.Tiles.Bytes:
		return "there is no memory for X in halves"
	case !r.usable(choice{op: "tile_f16"}),
		!r.usable(idMatrixChoice(r, p.Type, p.Up != 0, p.Count, p.Experts)):
		return failedTest
	}
	return ""
}

// expertHalves records p as one mul_mat_id_cm. Before that it sorts the pairs and converts X to tiles, unless the result of either is in memory already.
func expertHalves(r *Recorder, p *ExpertProducts) error {
	if p.M == 0 || p.Count == 0 || p.First >= p.Last {
		return nil
	}
	c := check{choice: idMatrixChoice(r, p.Type, p.Up != 0, p.Count, p.Experts)}
	c.experts(p.Type, &p.MulMatIDArgs, p.Experts)
	c.words("Pairs", p.Pairs)
	c.address("Tiles", p.Tiles)
	grids := c.grids(r)
	if c.err != nil {
		return c.err
	}
	if err := sortPairs(r, p, c.cmTile.BN); err != nil {
		return err
	}
	rows := p.rows()
	x, scales, err := tileX(r, &shaders.MulMatArgs{X: p.X, N: rows, K: p.K, XStride: p.XStride})
	if err != nil {
		return err
	}
	a := shaders.MulMatIDCMArgs{
		W0: p.Table, W1: p.Up, X: x, Scales: scales, Dst: p.Dst, Pairs: p.Pairs, Tiles: p.Tiles, Grids: grids,
		M: p.M, K: p.K, Blocks: shaders.ExpertTiles(p.Count, p.Experts, c.cmTile.BN), Used: p.Used, DstStride: p.DstStride, First: p.First, Last: p.Last,
	}
	outs, matrices := c.cmTile.BM, 1.0
	if p.Up != 0 {
		outs, matrices = outs/2, 2
	}
	share := (1 - r.Rows.Absent) * float64(p.Last-p.First) / float64(p.Experts)
	m, n, k := matrices*float64(p.M), share*float64(p.Count), float64(p.K)
	passes := share * float64(min(p.Count, a.Blocks))
	co := cost{bytes: passes*m*rowBytes(p.Type, p.K) + n*(2*k+4*float64(p.M)), flops: 2 * m * n * k}
	var t touch
	t.read(span{x, x + uint64(shaders.TilesBytes(rows, p.K))})
	t.read(f32s(scales, 1, rows, 0))
	p.readTables(&t)
	t.read(r.sorted.pairs)
	t.read(r.sorted.tiles)
	t.write(f32s(p.Dst, p.Count, p.M, p.DstStride))
	return record(r, &c, &a, a.Workgroups(outs), &t, co)
}

// readTables adds the tables of expert addresses, one or with Up two, to what t reads.
func (p *ExpertProducts) readTables(t *touch) {
	for _, table := range [2]uint64{p.Table, p.Up} {
		if table != 0 {
			t.read(span{table, table + 8*uint64(p.Experts)})
		}
	}
}
