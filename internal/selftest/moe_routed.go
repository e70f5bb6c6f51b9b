package selftest

import (
	"fmt"
	"math"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// TopKRouted tests topk_moe_routed, twice; the scores of the first and the last expert are equal. With same it also tests that rms_norm_q8, mul_mat_vec_wide and
// topk_moe give the same bits. tile zero: the device's own.
func TopKRouted(t gguf.Type, router ref.Router, rows, cols int, tile kernels.Tile, same bool) Case {
	name := fmt.Sprintf("cols=%d %s", cols, routerShape(&router, rows))
	if tile != (kernels.Tile{}) {
		name += fmt.Sprintf(" %v", tile)
	}
	return Case{Kernel: typed("topk_moe_routed", t), Shape: name, MaxNMSE: nmseRounded, build: func(j *job) error {
		a, err := routedArgs(j, t, router, rows, cols)
		if err != nil {
			return err
		}
		runs := []shaders.TopKMoERoutedArgs{a, a} // the second run checks that the counters are 0 again
		if a.Residents != 0 {
			runs[1].Residents = j.lacks
		}
		prepare := func(r *kernels.Recorder) { r.Rows.Role, r.Override.Tile = kernels.Decode, tile }
		var apart func(*kernels.Recorder) error
		if same {
			apart = recordApart(j, t, &a)
		}
		j.record = func(r *kernels.Recorder) error {
			prepare(r)
			err := all(runs, func(a shaders.TopKMoERoutedArgs) error { return kernels.TopKMoERouted(r, t, a) })
			if err != nil || apart == nil {
				return err
			}
			return apart(r)
		}
		return nil
	}}
}

// routedArgs makes a random router, adds the wanted outputs to the job, and returns the arguments of topk_moe_routed.
func routedArgs(j *job, t gguf.Type, router ref.Router, rows, cols int) (a shaders.TopKMoERoutedArgs, err error) {
	const eps = 1e-5
	x, w, normed, scores := j.normal(rows, cols, 0), j.normal(1, cols, 0), shape(rows, cols, 0), shape(rows, router.Experts, 0)
	n, err := t.RowBytes(int64(cols))
	if err != nil {
		return a, err
	}
	weights := make([]byte, int(n)*router.Experts)
	if err := quant.RandomBlocks(t, weights, j.rng, float32(2/math.Sqrt(float64(cols)))); err != nil {
		return a, err
	}
	copy(weights[len(weights)-int(n):], weights[:n])
	ref.RMSNorm(normed, x, w.Data, eps)
	if err := ref.MulMat(t, scores, weights, normed); err != nil {
		return a, err
	}
	a = shaders.TopKMoERoutedArgs{X: j.addr(j.mat(x)), W: j.addr(j.mat(w)), Router: j.addr(j.data(weights)), Rows: uint32(rows), Cols: uint32(cols), Eps: eps}
	choice := topKArgsOf(j, router, scores)
	a.Bias, a.IDs, a.Weights, a.Residents = choice.Bias, choice.IDs, choice.Weights, choice.Residents
	a.Experts, a.Used, a.Gating, a.Scale = choice.Experts, choice.Used, choice.Gating, choice.Scale
	a.Groups, a.GroupsUsed, a.GroupBest = choice.Groups, choice.GroupsUsed, choice.GroupBest
	dst, score, bytes, counters := j.space(normed), j.space(scores), j.alloc(int(shaders.Q8Size(a.Rows, a.Cols))), j.alloc(4*rows)
	clear(j.at(counters))
	j.exact("counters", counters, make([]byte, counters.n))
	j.output("dst", dst, normed)
	j.output("scores", score, scores)
	sums := int(shaders.Q8Sums(0, a.Rows, a.Cols))
	j.wants = append(j.wants, want8(ref.QuantizeQ8(normed), span{bytes.off, sums}, span{bytes.off + sums, bytes.n - sums})...)
	a.Dst, a.Scores, a.Bytes, a.Counters = j.addr(dst), j.addr(score), j.addr(bytes), j.addr(counters)
	return a, nil
}

// recordApart returns a function that records the op of a as separate kernels, and wants the same bits from both.
func recordApart(j *job, t gguf.Type, a *shaders.TopKMoERoutedArgs) func(*kernels.Recorder) error {
	at := func(address uint64) int {
		for _, w := range j.wants {
			if j.addr(w.at) == address {
				return w.at.off
			}
		}
		return 0
	}
	rows, cols, experts, used := int(a.Rows), int(a.Cols), int(a.Experts), int(a.Used)
	normed, scores, weights := shape(rows, cols, 0), shape(rows, experts, 0), shape(rows, used, 0)
	dst, score, share, ids, bytes := j.space(normed), j.space(scores), j.space(weights), j.alloc(4*rows*used), j.alloc(int(shaders.Q8Size(a.Rows, a.Cols)))
	j.same("dst", dst, span{at(a.Dst), dst.n}, normed)
	j.same("scores", score, span{at(a.Scores), score.n}, scores)
	j.same("weights", share, span{at(a.Weights), share.n}, weights)
	j.sameBytes("ids", ids, span{at(a.IDs), ids.n})
	j.sameBytes("bytes", span{bytes.off, rows * cols}, span{at(a.Bytes), rows * cols})
	sums := int(shaders.Q8Sums(0, a.Rows, a.Cols))
	j.sameBytes("sums", span{bytes.off + sums, rows * cols / 4}, span{at(a.Bytes) + sums, rows * cols / 4})
	norm := shaders.RMSNormQ8Args{X: a.X, W: a.W, Dst: j.addr(dst), Q: j.addr(bytes), S: j.addr(bytes) + uint64(sums), Rows: a.Rows, Cols: a.Cols, XStride: a.Cols, DstStride: a.Cols, Eps: a.Eps}
	product := shaders.MulMatTeamArgs{W0: a.Router, X: norm.Dst, Dst0: j.addr(score), M0: a.Experts, K: a.Cols, N: a.Rows, XStride: a.Cols, DstStride: a.Experts}
	choice := shaders.TopKMoEArgs{X: product.Dst0, Bias: a.Bias, IDs: j.addr(ids), Weights: j.addr(share), Rows: a.Rows, Experts: a.Experts, Used: a.Used,
		Gating: a.Gating, Groups: a.Groups, GroupsUsed: a.GroupsUsed, Scale: a.Scale, GroupBest: a.GroupBest}
	return func(r *kernels.Recorder) error {
		if err := kernels.RMSNormQ8(r, norm); err != nil {
			return err
		}
		if err := kernels.MulMatTeam(r, shaders.Wide, t, shaders.NoGLU, product); err != nil {
			return err
		}
		return kernels.TopKMoEVariant(r, shaders.FP32, choice)
	}
}

// routedProofs returns the proofs of a pipeline of topk_moe_routed: with rows so long that each lane has as much as it can hold, and shorter ones; with several
// workgroups, and one.
func routedProofs(v *kernels.Variant) []Case {
	run := int(v.Tile.Lanes) * 4
	teams := int(v.Tile.Lanes / v.Tile.Team)
	return []Case{
		TopKRouted(v.Row.Type, ref.Router{Experts: 2*teams + 1, Used: min(8, 2*teams), Normalise: true, Scale: 1}, 3, int(v.Per)*run, v.Tile, false),
		TopKRouted(v.Row.Type, ref.Router{Experts: max(2, teams), Used: 2, Sigmoid: true, Scale: 2, Bias: []float32{}}, 2, int(v.Per-1)*run+32, v.Tile, false),
		TopKRouted(v.Row.Type, ref.Router{Experts: 4 * teams, Used: 2, Late: true, Scale: 1, Groups: 4, GroupsUsed: 2, GroupBest: 2}, 1, int(v.Per)*run, v.Tile, false),
	}
}

// routedTests has the entry of topk_moe_routed.
var routedTests = table{"topk_moe_routed": {proofs: routedProofs, quick: func(k *shaders.Kernel) []Case {
	cases := []Case{TopKRouted(k.Type, plainRouter, 1, 2048, kernels.Tile{}, true)}
	if k.Type == gguf.F32 {
		cases = append(cases, TopKRouted(k.Type, groupedRouter, 3, 1024, kernels.Tile{}, true))
	}
	return cases
}}}
