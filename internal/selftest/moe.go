package selftest

import (
	"encoding/binary"
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// TopK tests topk_moe, which chooses experts for rows by their scores; two scores are equal. Of r.Bias and r.Scales, an empty one, not nil, is replaced by random
// values.
func TopK(r ref.Router, rows int) Case {
	return Case{Kernel: "topk_moe", Shape: routerShape(&r, rows), MaxNMSE: nmseCurved, build: func(j *job) error {
		a := topKArgs(j, r, rows)
		j.record = func(rec *kernels.Recorder) error {
			return all(lookupArgs(j, a), func(a shaders.TopKMoEArgs) error { return kernels.TopKMoEVariant(rec, shaders.FP32, a) })
		}
		return nil
	}}
}

// TopKHeld tests that topk_moe_held, if the device's subgroups have enough lanes for it, gives the same bits as topk_moe.
func TopKHeld(r ref.Router, rows int) Case {
	return Case{Kernel: "topk_moe_held", Shape: routerShape(&r, rows), MaxNMSE: nmseCurved, build: func(j *job) error {
		a := topKArgs(j, r, rows)
		plain, out := a, ref.NewMat(rows, r.Used)
		ids, weights := j.alloc(4*rows*r.Used), j.space(out)
		plain.IDs, plain.Weights, plain.Residents = j.addr(ids), j.addr(weights), 0
		j.sameBytes("ids", ids, span{j.wants[0].at.off, ids.n})
		j.same("weights", weights, j.wants[1].at, out)
		j.record = func(rec *kernels.Recorder) error {
			if err := kernels.TopKMoEVariant(rec, shaders.FP32, plain); err != nil {
				return err
			}
			variant := shaders.FP32
			if kernels.HoldsScores(rec, a.Experts) {
				variant = shaders.Held
			}
			return all(lookupArgs(j, a), func(a shaders.TopKMoEArgs) error { return kernels.TopKMoEVariant(rec, variant, a) })
		}
		return nil
	}}
}

// routerShape is the part of a case's name that describes a router and its number of rows.
func routerShape(r *ref.Router, rows int) string {
	return fmt.Sprintf("rows=%d experts=%d used=%d sigmoid=%t late=%t sparse=%t groups=%d bias=%t scales=%t", rows, r.Experts, r.Used, r.Sigmoid, r.Late, r.Sparse, r.Groups, r.Bias != nil, r.Scales != nil)
}

// topKArgs makes random scores, adds the wanted outputs (ids, then weights) to the job, and returns the arguments of topk_moe.
func topKArgs(j *job, r ref.Router, rows int) shaders.TopKMoEArgs {
	x := j.normal(rows, r.Experts, 0)
	x.Row(0)[r.Experts-1] = x.Row(0)[0]
	a := topKArgsOf(j, r, x)
	a.X = j.addr(j.mat(x))
	return a
}

// topKArgsOf is topKArgs for given scores x; the caller sets X, the address of the scores. For a single row it also makes two tables in which the kernel looks
// up the chosen experts: a.Residents has all of them, the table at j.lacks lacks one.
func topKArgsOf(j *job, r ref.Router, x ref.Mat) shaders.TopKMoEArgs {
	rows := x.Rows
	a := shaders.TopKMoEArgs{
		Rows: uint32(rows), Experts: uint32(r.Experts), Used: uint32(r.Used), Gating: gating(&r), Scale: r.Scale,
		Groups: uint32(r.Groups), GroupsUsed: uint32(r.GroupsUsed), GroupBest: uint32(r.GroupBest),
	}
	if r.Normalise {
		a.Gating |= shaders.GateNormalised
	}
	if r.Bias != nil {
		bias := j.normal(1, r.Experts, 0)
		r.Bias = bias.Data
		a.Bias = j.addr(j.mat(bias))
	}
	if r.Scales != nil {
		scales := j.normal(1, r.Experts, 0)
		r.Scales = scales.Data
		a.Scales = j.addr(j.mat(scales))
	}
	ids, weights := make([]uint32, rows*r.Used), ref.NewMat(rows, r.Used)
	ref.TopKMoE(&r, ids, weights, x)
	idSpan, weightSpan := j.alloc(4*len(ids)), j.space(weights)
	j.exact("ids", idSpan, words(ids))
	j.output("weights", weightSpan, weights)
	a.IDs, a.Weights = j.addr(idSpan), j.addr(weightSpan)
	if rows == 1 {
		a.Residents = newAddressTable(j, r.Experts, ids, -1)
		j.lacks = newAddressTable(j, r.Experts, ids, r.Used-1)
	}
	return a
}

// lookupArgs returns the arguments a once for each table in which the chosen experts are looked up: a.Residents, and j.lacks.
func lookupArgs(j *job, a shaders.TopKMoEArgs) []shaders.TopKMoEArgs {
	if a.Residents == 0 {
		return []shaders.TopKMoEArgs{a}
	}
	b := a
	b.Residents = j.lacks
	return []shaders.TopKMoEArgs{a, b}
}

// gating is the kernels' number for a router's gating.
func gating(r *ref.Router) uint32 {
	switch {
	case r.Late:
		return shaders.GateLate
	case r.Sparse:
		return shaders.GateSparse
	case r.Sigmoid:
		return shaders.GateSigmoid
	}
	return shaders.GateSoftMax
}

// words returns the bytes of uint32 values, little-endian.
func words(v []uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// chosenExperts chooses used random experts for each row, all different. No row gets expert experts/2, if there are more than used.
func chosenExperts(j *job, rows, used, experts int) []uint32 {
	var ids []uint32
	for range rows {
		perm := j.rng.Perm(experts)
		if used < experts && perm[used] != experts/2 {
			for k := range used {
				if perm[k] == experts/2 {
					perm[k] = perm[used]
				}
			}
		}
		for _, e := range perm[:used] {
			ids = append(ids, uint32(e))
		}
	}
	return ids
}

// GroupExperts tests group_experts, which sorts (row, expert) pairs by expert. In memory the experts' ids come behind as many other values as before
// says, so they can begin at any multiple of 4 bytes.
func GroupExperts(pairs, experts, before int) Case {
	return Case{Kernel: "group_experts", Shape: fmt.Sprintf("pairs=%d experts=%d behind %d", pairs, experts, before), MaxNMSE: nmseExact, build: func(j *job) error {
		ids := chosenExperts(j, pairs, 1, experts)
		sorted, tiles := ref.GroupExperts(ids, experts, shaders.ExpertCols)
		flat := make([]uint32, 0, 4*len(tiles))
		for _, t := range tiles {
			flat = append(flat, t[0], t[1], t[2], 0)
		}
		if n := shaders.ExpertTiles(uint32(pairs), uint32(experts), shaders.ExpertCols); int(n) != len(tiles) {
			return fmt.Errorf("group_experts: found %d tiles, ExpertTiles says %d", len(tiles), n)
		}
		to, tileSpan := j.alloc(4*len(sorted)), j.alloc(4*len(flat))
		j.exact("pairs", to, words(sorted))
		j.exact("tiles", tileSpan, words(flat))
		a := shaders.GroupExpertsArgs{IDs: j.addr(j.uint32s(append(make([]uint32, before), ids...))) + uint64(4*before), Pairs: j.addr(to), Tiles: j.addr(tileSpan), Count: uint32(pairs), Experts: uint32(experts)}
		j.record = func(r *kernels.Recorder) error { return kernels.GroupExperts(r, a) }
		return nil
	}}
}

// IDShape is the shape of a case of products with experts: M and K are the rows and columns of a matrix, Gap is the number of values between rows of X and of
// the result, First and Last are the experts that take part, without Last itself; Last 0: all experts from First on.
type IDShape struct {
	M, K, Rows, Used, Experts, Gap, First, Last int  // Used experts of each row, of Experts in all
	Tiles                                       bool // the pairs are sorted by expert; false: they are computed one by one
	Absent                                      bool // the last expert's address is 0
}

// String is the part of a case's name that describes the shape.
func (s IDShape) String() string {
	name := fmt.Sprintf("M=%d K=%d rows=%d used=%d experts=%d gap=%d first=%d", s.M, s.K, s.Rows, s.Used, s.Experts, s.Gap, s.First)
	if s.Absent {
		name += " one absent"
	}
	return name
}

// newExpertWeights makes a matrix of type t for each expert, and the table of their addresses. With s.Absent the last expert has none.
func newExpertWeights(j *job, t gguf.Type, s IDShape) (table uint64, w [][]byte, err error) {
	var addrs []uint64
	for range s.Experts {
		at, b, err := j.weights(t, s.M, s.K, 1)
		if err != nil {
			return 0, nil, err
		}
		addrs, w = append(addrs, j.addr(at)), append(w, b)
	}
	if s.Absent {
		addrs[s.Experts-1], w[s.Experts-1] = 0, nil
	}
	return j.addr(j.uint64s(addrs)), w, nil
}

// mulMatIDArgs returns the arguments of a product for pairs whose experts are ids and, with s.Tiles, those of the group_experts that sorts the pairs. The
// caller sets Table, X and Dst.
func mulMatIDArgs(j *job, s IDShape, ids []uint32) (a shaders.MulMatIDArgs, g shaders.GroupExpertsArgs) {
	a = shaders.MulMatIDArgs{
		M: uint32(s.M), K: uint32(s.K), Count: uint32(len(ids)), Used: uint32(s.Used), First: uint32(s.First), Last: uint32(s.Last),
		XStride: uint32(s.K + s.Gap), DstStride: uint32(s.M + s.Gap), IDs: j.addr(j.uint32s(ids)),
	}
	if s.Last == 0 {
		a.Last = uint32(s.Experts)
	}
	if !s.Tiles {
		return a, g
	}
	tiles := shaders.ExpertTiles(a.Count, uint32(s.Experts), shaders.ExpertCols)
	pairs, tileSpan := j.alloc(4*len(ids)), j.alloc(shaders.TileBytes*int(tiles))
	j.spare = append(j.spare, pairs, tileSpan)
	a.Pairs, a.Tiles = j.addr(pairs), j.addr(tileSpan)
	g = shaders.GroupExpertsArgs{IDs: a.IDs, Pairs: a.Pairs, Tiles: a.Tiles, Count: a.Count, Experts: uint32(s.Experts)}
	return a, g
}

// MulMatID tests mul_mat_id (with s.Tiles) or mul_mat_vec_id. Pairs whose expert is outside the range of s, or absent from the table, are not computed: their
// rows of the result, which are random at first, must stay as they are.
func MulMatID(t gguf.Type, s IDShape) Case {
	op := "mul_mat_vec_id"
	if s.Tiles {
		op = "mul_mat_id"
	}
	return Case{Kernel: typed(op, t), Shape: s.String(), MaxNMSE: nmseLinear, build: func(j *job) error {
		table, w, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		ids := chosenExperts(j, s.Rows, s.Used, s.Experts)
		x := j.normal(s.Rows, s.K, s.Gap)
		a, g := mulMatIDArgs(j, s, ids)
		untouched := j.normal(len(ids), s.M, s.Gap)
		dst := j.mat(untouched)
		if err := ref.MulMatID(t, untouched, w, x, ids, s.Used, s.First, int(a.Last)); err != nil {
			return err
		}
		j.sums("dst", dst, untouched, float64(s.K))
		a.Table, a.X, a.Dst = table, j.addr(j.mat(x)), j.addr(dst)
		j.record = func(r *kernels.Recorder) error {
			if s.Tiles {
				if err := kernels.GroupExperts(r, g); err != nil {
					return err
				}
			}
			return kernels.MulMatID(r, t, a, uint32(s.Experts))
		}
		return nil
	}}
}

// MulMatIDSameBits tests that (row, expert) pairs have the same bits multiplied one by one, sorted by expert, and each by mul_mat.
func MulMatIDSameBits(t gguf.Type, m, k int) Case {
	s := IDShape{M: m, K: k, Rows: 21, Used: 2, Experts: 4, Tiles: true}
	return Case{Kernel: typed("mul_mat_id", t), Shape: fmt.Sprintf("same bits M=%d K=%d", m, k), MaxNMSE: nmseLinear, build: func(j *job) error {
		table, _, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		ids := chosenExperts(j, s.Rows, s.Used, s.Experts)
		x := j.normal(s.Rows, s.K, s.Gap)
		a, g := mulMatIDArgs(j, s, ids)
		want := shape(len(ids), s.M, s.Gap)
		tiled, single, plain := j.space(want), j.space(want), j.space(want)
		j.same("pair by pair", single, tiled, want)
		j.same("mul_mat", plain, tiled, want)
		a.Table, a.X, a.Dst = table, j.addr(j.mat(x)), j.addr(tiled)
		one := a
		one.Pairs, one.Tiles, one.Dst = 0, 0, j.addr(single)
		j.record = func(r *kernels.Recorder) error {
			if err := kernels.GroupExperts(r, g); err != nil {
				return err
			}
			if err := kernels.MulMatID(r, t, a, uint32(s.Experts)); err != nil {
				return err
			}
			if err := kernels.MulMatID(r, t, one, uint32(s.Experts)); err != nil {
				return err
			}
			for p, id := range ids {
				w := binary.LittleEndian.Uint64(j.bytesAt(table+8*uint64(id), 8))
				err := kernels.MulMat(r, t, mulMatArgs(w, a.X+4*uint64(p/s.Used)*uint64(a.XStride), j.addr(plain)+4*uint64(p)*uint64(a.DstStride), s.M, s.K, 1, int(a.XStride), int(a.DstStride)))
				if err != nil {
					return err
				}
			}
			return nil
		}
		return nil
	}}
}

// PairScale tests pair_scale, which multiplies each row by the weights of the experts that it uses.
func PairScale(rows, used, cols int) Case {
	return Case{Kernel: "pair_scale", Shape: fmt.Sprintf("rows=%d used=%d cols=%d", rows, used, cols), MaxNMSE: nmseLinear, build: func(j *job) error {
		x, weights, want := j.normal(rows, cols, 0), j.normal(rows, used, 0), ref.NewMat(rows*used, cols)
		ref.PairScale(want, x, weights)
		dst := j.space(want)
		j.output("dst", dst, want)
		a := shaders.PairScaleArgs{X: j.addr(j.mat(x)), Weights: j.addr(j.mat(weights)), Dst: j.addr(dst), Rows: uint32(rows), Used: uint32(used), Cols: uint32(cols)}
		j.record = func(r *kernels.Recorder) error { return kernels.PairScale(r, a) }
		return nil
	}}
}

// PlainSum tests sum_experts without weights.
func PlainSum(rows, used, cols int) Case {
	return Case{Kernel: "sum_experts", Shape: fmt.Sprintf("rows=%d used=%d cols=%d plain", rows, used, cols), MaxNMSE: nmseLinear, build: func(j *job) error {
		y, ones, before := j.normal(rows*used, cols, 0), ref.NewMat(rows, used), j.normal(rows, cols, 0)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		want, dst := ref.NewMat(rows, cols), j.mat(before)
		ref.SumExperts(want, before, y, ones)
		j.sums("dst", dst, want, float64(used))
		a := shaders.SumExpertsArgs{Y: j.addr(j.mat(y)), Residual: j.addr(dst), Dst: j.addr(dst), Rows: uint32(rows), Used: uint32(used), Cols: uint32(cols), DstStride: uint32(cols)}
		j.record = func(r *kernels.Recorder) error { return kernels.SumExperts(r, a) }
		return nil
	}}
}

// SumExperts tests sum_experts, which sums the outputs of each row's experts by their weights. With residual it adds them to the destination. gap is the number
// of values between rows.
func SumExperts(rows, used, cols, gap int, residual bool) Case {
	return Case{Kernel: "sum_experts", Shape: fmt.Sprintf("rows=%d used=%d cols=%d gap=%d residual=%t", rows, used, cols, gap, residual), MaxNMSE: nmseLinear, build: func(j *job) error {
		y, weights, want := j.normal(rows*used, cols, 0), j.normal(rows, used, 0), shape(rows, cols, gap)
		dst, before := j.space(want), shape(rows, cols, gap)
		if residual {
			before = j.normal(rows, cols, gap)
			dst = j.mat(before)
		}
		ref.SumExperts(want, before, y, weights)
		j.sums("dst", dst, want, float64(used))
		a := shaders.SumExpertsArgs{Y: j.addr(j.mat(y)), Weights: j.addr(j.mat(weights)), Dst: j.addr(dst), Rows: uint32(rows), Used: uint32(used), Cols: uint32(cols), DstStride: uint32(cols + gap)}
		if residual {
			a.Residual = a.Dst
		}
		j.record = func(r *kernels.Recorder) error { return kernels.SumExperts(r, a) }
		return nil
	}}
}

// moeTests has the entries of the ops of a mixture of experts in float32.
var moeTests = table{
	"topk_moe": {quick: func(*shaders.Kernel) []Case {
		return []Case{TopK(plainRouter, 17), TopK(groupedRouter, 9), TopK(scaledRouter, 5)}
	}},
	"topk_moe_held": {
		quick: func(*shaders.Kernel) []Case {
			return []Case{TopKHeld(plainRouter, 17), TopKHeld(ref.Router{Experts: 32, Used: 4, Late: true, Scale: 1}, 7), TopKHeld(scaledRouter, 5)}
		},
		proofs: heldProofs,
	},
	"group_experts": {quick: func(*shaders.Kernel) []Case { return []Case{GroupExperts(1000, 60, 0)} }},
	"sum_experts":   {quick: func(*shaders.Kernel) []Case { return []Case{SumExperts(33, 8, 172, 4, true), PlainSum(5, 2, 172)} }},
	"pair_scale":    {quick: func(*shaders.Kernel) []Case { return []Case{PairScale(33, 3, 172)} }},
	"mul_mat_vec_id": {quick: func(k *shaders.Kernel) []Case {
		return []Case{MulMatID(k.Type, IDShape{M: 7, K: 1024, Rows: 5, Used: 3, Experts: 4, Gap: 4})}
	}},
	"mul_mat_id": {quick: func(k *shaders.Kernel) []Case {
		return []Case{MulMatID(k.Type, IDShape{M: 7, K: 1024, Rows: 70, Used: 1, Experts: 3, Gap: 4, First: 1, Last: 2, Tiles: true})}
	}},
}

// Routers of the quick cases.
var (
	// plainRouter is like those of most models.
	plainRouter = ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}
	// scaledRouter has a factor of each expert's weight, as Gemma 4's.
	scaledRouter = ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1, Scales: []float32{}}
	// groupedRouter chooses groups of experts first, as DeepSeek-V3 does.
	groupedRouter = ref.Router{Experts: 256, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}}
)

// heldProofs returns the proofs of a pipeline of topk_moe_held: with as many experts as the lanes hold, and one less; with each gating; with several rows, and
// one.
func heldProofs(v *kernels.Variant) []Case {
	n := int(v.Lanes * v.Per)
	return []Case{TopKHeld(ref.Router{Experts: n, Used: min(8, n), Normalise: true, Scale: 1}, 9),
		TopKHeld(ref.Router{Experts: n - 1, Used: min(5, n-1), Sigmoid: true, Scale: 2, Bias: []float32{}}, 9),
		TopKHeld(ref.Router{Experts: n, Used: min(8, n/2), Sigmoid: true, Normalise: true, Scale: 1, Groups: 4, GroupsUsed: 2, GroupBest: 2, Bias: []float32{}}, 5),
		TopKHeld(ref.Router{Experts: n, Used: min(8, n), Scale: 1}, 1),
		TopKHeld(ref.Router{Experts: n - 1, Used: 3, Late: true, Scale: 1}, 5)}
}
