package conform

import (
	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// idSum sums up what a row's experts make of the row's pairs, and adds it to what is there.
func idSum(t gguf.Type, s idShape, tile kernels.Tile) Case {
	return Case{Kernel: typed("mul_mat_vec_id_sum", t), Shape: s.String() + tileName(tile), MaxNMSE: nmseRounded, build: func(j *job) error {
		table, w, err := j.expertWeights(t, s)
		if err != nil {
			return err
		}
		ids := j.chosen(s.rows, s.used, s.experts)
		x, weights := j.normal(len(ids), s.k, 0), j.normal(s.rows, s.used, 0)
		y, before := shape(len(ids), s.m, 0), j.normal(s.rows, s.m, s.gap)
		if err := ref.MulMatID(t, y, w, ref.QuantizeQ8(x).Mat(), ids, 1, 0, s.experts); err != nil {
			return err
		}
		want, dst := shape(s.rows, s.m, s.gap), j.mat(before)
		ref.SumExperts(want, before, y, weights)
		j.sums("dst", dst, want, float64(s.k*s.used))
		room := j.alloc(int(2 * shaders.Q8Size(uint32(len(ids)), uint32(s.k))))
		j.spare = append(j.spare, room)
		a := shaders.MulMatIDSumArgs{
			Table: table, X: j.addr(j.mat(x)), IDs: j.addr(j.uint32s(ids)), Weights: j.addr(j.mat(weights)), Dst: j.addr(dst), Residual: j.addr(dst),
			M: uint32(s.m), K: uint32(s.k), N: uint32(s.rows), Used: uint32(s.used), DstStride: uint32(want.Stride), ResidualStride: uint32(want.Stride),
		}
		j.record = func(r *kernels.Recorder) error {
			r.Tile, r.Few, r.Q8 = tile, true, kernels.Scratch{Address: j.addr(room), Bytes: int64(room.n)}
			return r.ExpertSum(t, a, uint32(s.experts))
		}
		return nil
	}}
}

// idSumProofs are [teamProofs] for what is summed up over experts.
func idSumProofs(v *kernels.Variant) []Case {
	const used = 3
	block := max(32, v.Row.Type.BlockSize())
	k := (32*int(v.Tile.Team*(2*v.Tile.Unroll+1))/used + block) / block * block
	m := int(v.Outputs())
	return []Case{
		idSum(v.Row.Type, idShape{m: m + 3, k: k, rows: 2, used: used, experts: 4}, v.Tile),
		idSum(v.Row.Type, idShape{m: 3, k: block, rows: 3, used: 2, experts: 3, absent: true}, v.Tile),
	}
}
