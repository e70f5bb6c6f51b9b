package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// TopKMoE chooses each row's experts and weighs them: a few lanes hold their scores where the device can, to the same bits.
func TopKMoE(r *Recorder, a shaders.TopKMoEArgs) error {
	if HoldsScores(r, a.Experts) && r.usable(heldChoice(r.k.dev.Physical, a.Experts), shaders.TopKMoEHeld) {
		return TopKMoEVariant(r, shaders.Held, a)
	}
	return TopKMoEVariant(r, shaders.FP32, a)
}

// HoldsScores reports whether the lanes of TopKMoE can hold the scores of so many experts.
func HoldsScores(r *Recorder, experts uint32) bool {
	return experts > 0 && heldChoice(r.k.dev.Physical, experts).per <= shaders.MaxPer && lacksSubgroups(r.k) == ""
}

// heldChoice is of lanes that should be one subgroup.
func heldChoice(p *vk.PhysicalDevice, experts uint32) choice {
	lanes := min(shaders.HeldLanes, max(minSubgroup, uint32(p.Limits.Subgroup)))
	return choice{op: "topk_moe", variant: shaders.Held, lanes: lanes, per: (max(1, experts) + lanes - 1) / lanes}
}

// TopKMoEVariant is TopKMoE by the variant FP32 or Held.
func TopKMoEVariant(r *Recorder, variant string, a shaders.TopKMoEArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c, find := check{choice: choice{op: "topk_moe"}}, shaders.TopKMoE
	if variant == shaders.Held {
		c.choice, find = heldChoice(r.k.dev.Physical, a.Experts), shaders.TopKMoEHeld
		c.most("Experts", a.Experts, shaders.MaxPer*c.lanes)
	}
	c.words("X", a.X)
	c.words("IDs", a.IDs)
	c.words("Weights", a.Weights)
	c.chooses(&a)
	n := float64(a.Rows) * float64(a.Experts)
	var t touch
	t.read(f32s(a.X, a.Rows, a.Experts, a.Experts))
	if a.Bias != 0 {
		c.address("Bias", a.Bias)
		t.read(f32s(a.Bias, 1, a.Experts, 0))
	}
	c.looks(a.There, a.Rows, &t)
	t.write(f32s(a.IDs, a.Rows, a.Used, a.Used))
	t.write(f32s(a.Weights, a.Rows, a.Used, a.Used))
	return record(r, &c, find, &a, a.Workgroups(), &t, cost{4 * n, 8 * n})
}

// chooses checks how experts are chosen.
func (c *check) chooses(a *shaders.TopKMoEArgs) {
	c.positive("Experts", a.Experts)
	c.most("Experts", a.Experts, shaders.MaxExperts)
	c.positive("Used", a.Used)
	c.most("Used", a.Used, a.Experts)
	c.most("Gating", a.Gating&^shaders.GateNormalised, shaders.GateLate)
	if a.Groups > 1 {
		c.groups(a)
	}
}

// groups demands groups of one size, and open ones with as many experts as are used.
func (c *check) groups(a *shaders.TopKMoEArgs) {
	c.multiple("Experts", a.Experts, a.Groups)
	c.positive("GroupsUsed", a.GroupsUsed)
	c.most("GroupsUsed", a.GroupsUsed, a.Groups)
	c.positive("GroupBest", a.GroupBest)
	c.most("GroupBest", a.GroupBest, 2)
	if least := (uint64(a.Used)*uint64(a.Groups) + uint64(a.Experts) - 1) / uint64(a.Experts); uint64(a.GroupsUsed) < least {
		c.that(false, "GroupsUsed", a.GroupsUsed, fmt.Sprintf("at least %d: these groups have fewer than %d experts", least, a.Used))
	}
}

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
	err := record(r, &c, shaders.GroupExperts, &a, a.Workgroups(), &t, cost{bytes: 8 * float64(a.Count) * float64(a.Experts)})
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

// MulMatID multiplies each pair's row of X by the weights of its expert, one of so many: with Tiles by mul_mat_id, which reads an
// expert once for [shaders.ExpertCols] pairs; where Tiles is 0 by mul_mat_vec_id, pair by pair. Both give the same bits. It sets a.Blocks.
// Pairs and Tiles, of [shaders.ExpertTiles] by ExpertCols, are places for the pairs sorted by expert: the recorder does that at need.
//
// Rows are multiplied as bytes or as halves where [TakesExperts] says so.
func MulMatID(r *Recorder, t gguf.Type, a shaders.MulMatIDArgs, experts uint32) error {
	if a.M == 0 || a.Count == 0 || a.First >= a.Last {
		return nil
	}
	if p := (ExpertProducts{Type: t, Experts: experts, MulMatIDArgs: a}); TakesExperts(r, &p) {
		return MultiplyExperts(r, &p)
	}
	c := check{choice: choice{op: "mul_mat_id", typed: true, typ: t, whole: a.K%8 == 0 && a.XStride%4 == 0}}
	find := func() (*shaders.Kernel, error) { return shaders.MulMatID(t) }
	var touched touch
	passes := float64(a.Count)
	if a.Tiles != 0 {
		c.cols = shaders.ExpertCols
		c.words("Pairs", a.Pairs)
		c.address("Tiles", a.Tiles)
		a.Blocks = shaders.ExpertTiles(a.Count, experts, shaders.ExpertCols)
		passes = min(passes, float64(a.Blocks))
		if err := sortPairs(r, &ExpertProducts{Experts: experts, MulMatIDArgs: a}, shaders.ExpertCols); err != nil {
			return err
		}
		touched.read(f32s(a.Pairs, 1, a.Count, 0))
		touched.read(f32s(a.Tiles, a.Blocks, 4, 4))
	} else {
		c.op, a.Blocks = "mul_mat_vec_id", a.Count
		find = func() (*shaders.Kernel, error) { return shaders.MulMatVecID(t) }
		c.words("IDs", a.IDs)
		touched.read(f32s(a.IDs, 1, a.Count, 0))
	}
	c.experts(t, &a, experts)
	if c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice, find)
	if err != nil {
		return err
	}
	touched.read(span{a.Table, a.Table + 8*uint64(experts)})
	touched.read(f32s(a.X, (a.Count-1)/a.Used+1, a.K, a.XStride))
	touched.write(f32s(a.Dst, a.Count, a.M, a.DstStride))
	rows, _ := b.tile()
	share := (1 - r.Absent) * float64(a.Last-a.First) / float64(experts)
	m, n, k := float64(a.M), share*float64(a.Count), float64(a.K)
	co := cost{bytes: share*passes*m*rowBytes(t, a.K) + 4*n*(k+m), flops: 2 * m * n * k}
	return dispatch(r, &c, b, &a, a.Workgroups(rows), &touched, co)
}

func (c *check) experts(t gguf.Type, a *shaders.MulMatIDArgs, experts uint32) {
	c.table("Table", a.Table)
	c.floats("X", a.X, a.XStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.positive("Used", a.Used)
	c.positive("experts", experts)
	c.most("Last", a.Last, experts)
	c.stride("XStride", a.XStride, a.K)
	c.stride("DstStride", a.DstStride, a.M)
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
	return record(r, &c, shaders.SumExperts, &a, a.Workgroups(), &t, cost{4 * n, 2 * n})
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
	return record(r, &c, shaders.ExpertsThere, &a, a.Workgroups(), &t, cost{bytes: 16 * float64(a.Count)})
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
