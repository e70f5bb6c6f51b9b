package kernels

import (
	"leat/shaders"
)

// GroupExperts sorts pairs by their experts, in tiles of a.Cols; 0: [shaders.ExpertCols].
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

// SortsPairs reports whether pairs of n rows and their experts should be sorted by expert: for cooperative matrices, and where an expert has
// several. The bits of other kernels do not depend on it.
func SortsPairs(r *Recorder, n uint32) bool {
	return r.Role == Prompt && (r.k.matrix > 0 || n > shaders.FewRows)
}

// SumExperts sums up what each row's experts made, by their weights, and adds it to what is there.
func SumExperts(r *Recorder, a shaders.SumExpertsArgs) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	c := check{choice: choice{op: "sum_experts"}}
	c.words("Y", a.Y)
	c.words("Weights", a.Weights)
	c.words("Dst", a.Dst)
	c.positive("Used", a.Used)
	c.stride("DstStride", a.DstStride, a.Cols)
	n := float64(a.Rows) * float64(a.Used) * float64(a.Cols)
	var t touch
	t.read(f32s(a.Y, a.Rows*a.Used, a.Cols, a.Cols))
	t.read(f32s(a.Weights, a.Rows, a.Used, a.Used))
	if a.Residual != 0 {
		c.words("Residual", a.Residual)
		t.read(f32s(a.Residual, a.Rows, a.Cols, a.DstStride))
	}
	t.write(f32s(a.Dst, a.Rows, a.Cols, a.DstStride))
	return record(r, &c, &a, a.Workgroups(), &t, cost{4 * n, 2 * n})
}

// ExpertsThere looks whether all experts of the pairs have addresses, of at most [shaders.MaxExperts]. Where it says so the device
// alone knows: who touched those places before, or does later, puts a barrier between.
func ExpertsThere(r *Recorder, a shaders.ExpertsThereArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: "experts_there"}}
	c.table("There", a.There)
	c.words("IDs", a.IDs)
	var t touch
	t.read(there(a.There))
	t.read(f32s(a.IDs, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{bytes: 16 * float64(a.Count)})
}

// looks checks the table in which a choice of experts is looked up, if it is.
func (c *check) looks(at uint64, rows uint32, t *touch) {
	if at == 0 {
		return
	}
	c.table("There", at)
	c.most("Rows", rows, 1)
	t.read(there(at))
}

// there is the table that is looked at for experts.
func there(at uint64) span { return span{at, at + 8*(shaders.ThereHead+shaders.MaxExperts)} }
