package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// vecExperts multiplies pair by pair in float32.
var vecExperts = variant[ExpertProducts]{
	Rule: Rule{Op: "mul_mat_vec_id", Variant: shaders.FP32, When: "pairs that are not sorted by expert: up to 8 rows"},
	unfit: func(r *Recorder, p *ExpertProducts) string {
		switch {
		case p.Up != 0:
			return "gates are multiplied apart"
		case p.Tiles != 0:
			return "pairs are sorted by expert"
		}
		return ""
	},
	record: mulMatID,
}

// matExperts reads an expert once for [shaders.ExpertCols] of its pairs, in float32; it gives the bits of [vecExperts].
var matExperts = variant[ExpertProducts]{
	Rule: Rule{Op: "mul_mat_id", Variant: shaders.FP32},
	unfit: func(r *Recorder, p *ExpertProducts) string {
		if p.Up != 0 {
			return "gates are multiplied apart"
		}
		return ""
	},
	record: mulMatID,
}

// mulMatID records p by a float32 kernel: mul_mat_vec_id for unsorted pairs, mul_mat_id for pairs sorted by expert.
func mulMatID(r *Recorder, p *ExpertProducts) error {
	t, a, experts := p.Type, p.MulMatIDArgs, p.Experts
	if a.M == 0 || a.Count == 0 || a.First >= a.Last {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_id", typed: true, typ: t, whole: a.K%8 == 0 && a.XStride%4 == 0}}
	var touched touch
	passes := float64(a.Count)
	if a.Tiles != 0 {
		c.cols = shaders.ExpertCols
		c.words("Pairs", a.Pairs)
		c.address("Tiles", a.Tiles)
		a.Blocks = shaders.ExpertTiles(a.Count, experts, shaders.ExpertCols)
		passes = min(passes, float64(a.Blocks))
		if err := sortPairs(r, p, shaders.ExpertCols); err != nil {
			return err
		}
		touched.read(f32s(a.Pairs, 1, a.Count, 0))
		touched.read(f32s(a.Tiles, a.Blocks, 4, 4))
	} else {
		c.op, a.Blocks = "mul_mat_vec_id", a.Count
		c.words("IDs", a.IDs)
		touched.read(f32s(a.IDs, 1, a.Count, 0))
	}
	c.experts(t, &a, experts)
	a.Grids = c.grids(r)
	if c.err != nil {
		return c.err
	}
	b, err := r.get(c.choice)
	if err != nil {
		return err
	}
	touched.read(span{a.Table, a.Table + 8*uint64(experts)})
	touched.read(f32s(a.X, (a.Count-1)/a.Used+1, a.K, a.XStride))
	touched.write(f32s(a.Dst, a.Count, a.M, a.DstStride))
	rows, _ := b.tile()
	share := (1 - r.Rows.Absent) * float64(a.Last-a.First) / float64(experts)
	m, n, k := float64(a.M), share*float64(a.Count), float64(a.K)
	co := cost{bytes: share*passes*m*rowBytes(t, a.K) + 4*n*(k+m), flops: 2 * m * n * k}
	return dispatch(r, &c, b, &a, a.Workgroups(rows), &touched, co)
}

// experts checks the arguments that all products with experts have.
func (c *check) experts(t gguf.Type, a *shaders.MulMatIDArgs, experts uint32) {
	c.table("Table", a.Table)
	c.floats("X", a.X, a.XStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.positive("Used", a.Used)
	c.positive("experts", experts)
	c.atMost("Last", a.Last, experts)
	c.stride("XStride", a.XStride, a.K)
	c.stride("DstStride", a.DstStride, a.M)
}
