package kernels

import (
	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// mostSummed is how many chunks the kernel can tell the expert of.
const mostSummed = 1 << 18

// sumTile is tile for products that are summed up over experts: so many chunks in all. A lane should have all of a row's, or
// a half or a third of them, under way at once.
func (r *Recorder) sumTile(of gguf.Type, m, chunks uint32) Tile {
	t, k := r.Tile, r.k
	if k.dev.Physical.Type == vk.CPU {
		return k.tile(t, of, shaders.NoGLU, m, chunks)
	}
	if t.Team == 0 {
		t.Team = 32
	}
	if t.Lanes == 0 {
		t.Lanes = max(128, t.Team)
	}
	if t.Rows == 0 {
		t.Rows = 1
	}
	if each := chunks / t.Team; t.Unroll == 0 {
		t.Unroll = max(1, min(4, each))
		for _, n := range [...]uint32{6, 5, 4, 3} {
			if each >= n && each%n == 0 {
				t.Unroll = n
				break
			}
		}
	}
	return k.tile(t, of, shaders.NoGLU, m, chunks)
}

func (r *Recorder) sumChoice(t gguf.Type, a *shaders.MulMatIDSumArgs) choice {
	return choice{op: "mul_mat_vec_id", variant: shaders.Sum, typed: true, typ: t, cols: 1, tile: r.sumTile(t, a.M, a.Used*(a.K/q8Block))}
}

// TakesExpertSum reports whether the device and the recorder's memory allow [Recorder.ExpertSum]; [Recorder.MulMatID] and
// [Recorder.SumExperts] are always there.
func (r *Recorder) TakesExpertSum(t gguf.Type, a *shaders.MulMatIDSumArgs) bool {
	return r.Few && r.inBytes() && teamVariants[t] == shaders.Int8 && a.K > 0 && a.K%q8Block == 0 && a.Used > 0 && a.Used <= shaders.MaxSummed && a.Used*(a.K/q8Block) <= mostSummed &&
		shaders.Q8Size(a.N*a.Used, a.K) <= r.q8Room() && r.usable(choice{op: "quantize_q8"}, shaders.QuantizeQ8) &&
		r.usable(r.sumChoice(t, a), func() (*shaders.Kernel, error) { return shaders.MulMatVecIDSum(t) })
}

// ExpertSum records products with experts, summed up by weight, that the recorder [Recorder.TakesExpertSum]. a.X is floats: it is brought
// into bytes at need, and a.S set. The table has so many experts.
func (r *Recorder) ExpertSum(t gguf.Type, a shaders.MulMatIDSumArgs, experts uint32) error {
	if a.M == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec_id", variant: shaders.Sum, typed: true, typ: t}}
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.multiple("K", a.K, q8Block)
	c.positive("Used", a.Used)
	c.most("Used", a.Used, shaders.MaxSummed)
	c.most("Used * K / 32", a.Used*(a.K/q8Block), mostSummed)
	c.positive("experts", experts)
	c.table("Table", a.Table)
	c.address("X", a.X)
	c.address("IDs", a.IDs)
	c.address("Weights", a.Weights)
	c.address("Dst", a.Dst)
	c.stride("DstStride", a.DstStride, a.M)
	if a.Residual != 0 {
		c.address("Residual", a.Residual)
		c.stride("ResidualStride", a.ResidualStride, a.M)
	}
	if c.err != nil {
		return c.err
	}
	c.choice = r.sumChoice(t, &a)
	if c.shape(c.tile, shaders.NoGLU, 1, r.k.dev.Physical.Limits.MaxWorkgroupInvocations); c.err != nil {
		return c.err
	}
	pairs := a.N * a.Used
	var err error
	if a.X, a.S, err = r.wholeBytesOf("mul_mat_vec_id", a.X, pairs, a.K, a.K); err != nil {
		return err
	}
	m, n, k := float64(a.M), float64(pairs), float64(a.K)
	co := cost{bytes: n*m*rowBytes(t, a.K) + 1.25*n*k + 8*m*float64(a.N), flops: 2 * m * n * k}
	var touched touch
	touched.read(q8Bytes(a.X, pairs, a.K))
	touched.read(q8Scales(a.S, pairs, a.K))
	touched.read(span{a.Table, a.Table + 8*uint64(experts)})
	touched.read(f32s(a.IDs, 1, pairs, 0))
	touched.read(f32s(a.Weights, 1, pairs, 0))
	if a.Residual != 0 {
		touched.read(f32s(a.Residual, a.N, a.M, a.ResidualStride))
	}
	touched.write(f32s(a.Dst, a.N, a.M, a.DstStride))
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.MulMatVecIDSum(t) }, &a, a.Workgroups(c.tile.outputs(shaders.NoGLU)), &touched, co)
}
