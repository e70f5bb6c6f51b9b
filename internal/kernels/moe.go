package kernels

import (
	"leat/shaders"
)

// GroupExperts sorts (row, expert) pairs by expert into tiles of at most a.Cols pairs. An a.Cols of 0 means [shaders.ExpertCols].
func GroupExperts(r *Recorder, a shaders.GroupExpertsArgs) error {
	if a.Count == 0 {
		return nil
	}
	if a.Cols == 0 {
		a.Cols = shaders.ExpertCols
	}
	c := check{choice: choice{op: "group_experts"}}
	c.words("IDs", a.IDs)
	c.words("Pairs", a.Pairs)
	c.address("Tiles", a.Tiles)
	c.positive("Experts", a.Experts)
	var t touch
	t.read(f32s(a.IDs, 1, a.Count, 0))
	t.write(f32s(a.Pairs, 1, a.Count, 0))
	t.write(f32s(a.Tiles, shaders.ExpertTiles(a.Count, a.Experts, a.Cols), 4, 4))
	err := record(r, &c, &a, a.Workgroups(), &t, cost{bytes: 8 * float64(a.Count) * float64(a.Experts)})
	if err == nil {
		r.sorted = sortedBy(&a)
	}
	return err
}

// SortsPairs reports whether the (row, expert) pairs of n rows should be sorted by expert: in prompts, if the device has cooperative matrices or
// there are more than [shaders.FewRows] rows. Kernels that also take unsorted pairs give the same bits either way.
func SortsPairs(r *Recorder, n uint32) bool {
	return r.Rows.Role == Prompt && (r.k.can.matrix > 0 || n > shaders.FewRows)
}

// SumExperts writes, for each row, the sum of its experts' outputs Y, weighted if a.Weights is not 0, plus, if a.Residual is not 0, the residual.
func SumExperts(r *Recorder, a shaders.SumExpertsArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "sum_experts"}}
	c.words("Y", a.Y)
	c.words("Dst", a.Dst)
	c.positive("Used", a.Used)
	c.stride("DstStride", a.DstStride, a.Cols)
	n := float64(a.Rows) * float64(a.Used) * float64(a.Cols)
	var t touch
	t.read(f32s(a.Y, a.Rows*a.Used, a.Cols, a.Cols))
	if a.Weights != 0 {
		c.words("Weights", a.Weights)
		t.read(f32s(a.Weights, a.Rows, a.Used, a.Used))
	}
	if a.Residual != 0 {
		c.words("Residual", a.Residual)
		t.read(f32s(a.Residual, a.Rows, a.Cols, a.DstStride))
	}
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(), &t, cost{4 * n, 2 * n})
}

// PairScale writes, for each row and each expert it uses, the row times the expert's weight.
func PairScale(r *Recorder, a shaders.PairScaleArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "pair_scale"}}
	c.words("X", a.X)
	c.words("Weights", a.Weights)
	c.words("Dst", a.Dst)
	c.positive("Used", a.Used)
	n := float64(a.Rows) * float64(a.Used) * float64(a.Cols)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Cols, a.Cols))
	t.read(f32s(a.Weights, a.Rows, a.Used, a.Used))
	t.write(f32s(a.Dst, a.Rows*a.Used, a.Cols, a.Cols))
	return record(r, &c, &a, a.Workgroups(), &t, cost{8 * n, n})
}

// LookupExperts looks up whether all chosen experts a.IDs have an address in the table a.Residents, and writes the answer to memory that the table
// points to. The recorder does not know the memory, so the caller puts barriers between the lookup and other uses of that memory.
func LookupExperts(r *Recorder, a shaders.LookupExpertsArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "lookup_experts"}}
	c.table("Residents", a.Residents)
	c.words("IDs", a.IDs)
	var t touch
	t.read(lookupSpan(a.Residents))
	t.read(f32s(a.IDs, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{bytes: 16 * float64(a.Count)})
}

// lookup checks at, the address of the table in which a router's kernel looks up the experts that it chose, and adds a read of the table to t. 0: the kernel
// looks up none. Only a single row's experts can be looked up.
func (c *check) lookup(at uint64, rows uint32, t *touch) {
	if at == 0 {
		return
	}
	c.table("Residents", at)
	c.atMost("Rows", rows, 1)
	t.read(lookupSpan(at))
}

// lookupSpan is the memory of the table of resident experts at an address, as if it had [shaders.MaxExperts] experts.
func lookupSpan(at uint64) span { return span{at, at + 8*(shaders.ResidentsHead+shaders.MaxExperts)} }
