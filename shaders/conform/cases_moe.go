package conform

import (
	"encoding/binary"
	"fmt"

	"leat/gguf"
	"leat/gguf/quant"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

func moeCases() []Case {
	var cases []Case
	for _, c := range []struct {
		r    ref.Router
		rows int
	}{
		{ref.Router{Experts: 8, Used: 2, Normalise: true, Scale: 1}, 5},
		{ref.Router{Experts: 60, Used: 4, Scale: 1}, 33},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 17},
		{ref.Router{Experts: 512, Used: 10, Normalise: true, Scale: 1}, 3},
		{ref.Router{Experts: 1, Used: 1, Scale: 1}, 2},
		{ref.Router{Experts: 128, Used: 8, Normalise: true, Scale: 1}, 1},
		{ref.Router{Experts: 60, Used: 4, Late: true, Scale: 1}, 1},
		{ref.Router{Experts: 260, Used: 200, Sigmoid: true, Scale: 1}, 1}, // more than there are lanes
		{ref.Router{Experts: 32, Used: 4, Late: true, Scale: 1}, 7},
		{ref.Router{Experts: 256, Used: 8, Sigmoid: true, Normalise: true, Scale: 2.5, Groups: 8, GroupsUsed: 4, GroupBest: 2, Bias: []float32{}}, 9},
		{ref.Router{Experts: 6, Used: 2, Sigmoid: true, Scale: 1, Groups: 6, GroupsUsed: 3, GroupBest: 2}, 9},
		{ref.Router{Experts: 160, Used: 6, Scale: 16, Groups: 8, GroupsUsed: 3, GroupBest: 1}, 9},
		{ref.Router{Experts: 1024, Used: 16, Sigmoid: true, Normalise: true, Scale: 1, Bias: []float32{}}, 2},
		{ref.Router{Experts: 100, Used: 100, Normalise: true, Scale: 1}, 3},
	} {
		cases = append(cases, topK(c.r, c.rows))
		if c.r.Experts <= shaders.MaxPer*shaders.HeldLanes {
			cases = append(cases, topKHeld(c.r, c.rows))
		}
	}
	cases = append(cases,
		sumExperts(1, 1, 7, 0, false), sumExperts(5, 2, 256, 0, true), sumExperts(33, 8, 172, 4, true),
		groupExperts(1, 1, 0), groupExperts(2, 8, 0), groupExperts(64, 8, 0), groupExperts(1000, 60, 0), groupExperts(1001, 60, 3), groupExperts(4096, 128, 0), groupExperts(300, 1024, 0),
	)
	for _, t := range quant.Types() {
		k := rowLengths(t)[2]
		cases = append(cases,
			mulMatID(t, idShape{m: 65, k: k, rows: 1, used: 8, experts: 16}),
			mulMatID(t, idShape{m: 7, k: 1024, rows: 5, used: 3, experts: 4, gap: 4}),
			mulMatID(t, idShape{m: 100, k: k, rows: 33, used: 2, experts: 6, tiles: true}),
			mulMatID(t, idShape{m: 7, k: 1024, rows: 70, used: 1, experts: 3, gap: 4, first: 1, last: 2, tiles: true}),
			mulMatIDSameBits(t, 36, k),
		)
	}
	for _, tiles := range []bool{false, true} {
		cases = append(cases, mulMatID(gguf.Q4_K, idShape{m: 20, k: 512, rows: 12, used: 2, experts: 3, tiles: tiles, absent: true}))
	}
	return append(cases, mulMatID(gguf.F16, idShape{m: 9, k: 37, rows: 9, used: 2, experts: 5, gap: 3, tiles: true}))
}

// topK chooses among scores of which some are equal. A bias that is empty is made here.
func topK(r ref.Router, rows int) Case {
	return Case{Kernel: "topk_moe", Shape: routerShape(&r, rows), MaxNMSE: nmseCurved, build: func(j *job) error {
		a := topKArgs(j, r, rows)
		j.record = func(rec *kernels.Recorder) error {
			return all(lookupArgs(j, a), func(a shaders.TopKMoEArgs) error { return kernels.TopKMoEVariant(rec, shaders.FP32, a) })
		}
		return nil
	}}
}

// topKHeld does it by both variants, where the device's subgroups have lanes enough: to the same bits.
func topKHeld(r ref.Router, rows int) Case {
	return Case{Kernel: "topk_moe_held", Shape: routerShape(&r, rows), MaxNMSE: nmseCurved, build: func(j *job) error {
		a := topKArgs(j, r, rows)
		plain, out := a, ref.NewMat(rows, r.Used)
		ids, weights := j.alloc(4*rows*r.Used), j.space(out)
		plain.IDs, plain.Weights, plain.There = j.addr(ids), j.addr(weights), 0
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

func routerShape(r *ref.Router, rows int) string {
	return fmt.Sprintf("rows=%d experts=%d used=%d sigmoid=%t late=%t groups=%d bias=%t", rows, r.Experts, r.Used, r.Sigmoid, r.Late, r.Groups, r.Bias != nil)
}

// topKArgs are the arguments of a choice among random scores, and what must come of it: IDs, then Weights.
func topKArgs(j *job, r ref.Router, rows int) shaders.TopKMoEArgs {
	x := j.normal(rows, r.Experts, 0)
	x.Row(0)[r.Experts-1] = x.Row(0)[0]
	a := topKArgsOf(j, r, x)
	a.X = j.addr(j.mat(x))
	return a
}

// topKArgsOf is topK among scores that are elsewhere. A lone row's experts are looked up in two tables, of which j.lacks lacks one.
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
	ids, weights := make([]uint32, rows*r.Used), ref.NewMat(rows, r.Used)
	ref.TopKMoE(&r, ids, weights, x)
	idSpan, weightSpan := j.alloc(4*len(ids)), j.space(weights)
	j.exact("ids", idSpan, words(ids))
	j.output("weights", weightSpan, weights)
	a.IDs, a.Weights = j.addr(idSpan), j.addr(weightSpan)
	if rows == 1 {
		a.There = newAddressTable(j, r.Experts, ids, -1)
		j.lacks = newAddressTable(j, r.Experts, ids, r.Used-1)
	}
	return a
}

// lookupArgs are a choice with each of the tables that it is looked up in.
func lookupArgs(j *job, a shaders.TopKMoEArgs) []shaders.TopKMoEArgs {
	if a.There == 0 {
		return []shaders.TopKMoEArgs{a}
	}
	b := a
	b.There = j.lacks
	return []shaders.TopKMoEArgs{a, b}
}

func gating(r *ref.Router) uint32 {
	switch {
	case r.Late:
		return shaders.GateLate
	case r.Sigmoid:
		return shaders.GateSigmoid
	}
	return shaders.GateSoftMax
}

func words(v []uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// chosenExperts makes random experts for rows, different ones for each; one expert gets none.
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

// groupExperts sorts pairs whose experts' numbers stand behind `before` others, at any multiple of 4 bytes.
func groupExperts(pairs, experts, before int) Case {
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

// idShape is a product with experts. Where last is 0 all of them take part.
type idShape struct {
	m, k, rows, used, experts, gap, first, last int
	tiles                                       bool // by expert; else pair by pair
	absent                                      bool // the last expert's address is 0
}

func (s idShape) String() string {
	name := fmt.Sprintf("M=%d K=%d rows=%d used=%d experts=%d gap=%d first=%d", s.m, s.k, s.rows, s.used, s.experts, s.gap, s.first)
	if s.absent {
		name += " one absent"
	}
	return name
}

// newExpertWeights makes matrices of type t, in turn on 16 bytes and not quite, and the table of their addresses.
func newExpertWeights(j *job, t gguf.Type, s idShape) (table uint64, w [][]byte, err error) {
	var addrs []uint64
	for range s.experts {
		at, b, err := j.weights(t, s.m, s.k, 1)
		if err != nil {
			return 0, nil, err
		}
		addrs, w = append(addrs, j.addr(at)), append(w, b)
	}
	if s.absent {
		addrs[s.experts-1], w[s.experts-1] = 0, nil
	}
	return j.addr(j.uint64s(addrs)), w, nil
}

// mulMatIDArgs are the arguments for pairs whose experts are ids, and where group_experts leaves what the tiles are made of.
func mulMatIDArgs(j *job, s idShape, ids []uint32) (a shaders.MulMatIDArgs, g shaders.GroupExpertsArgs) {
	a = shaders.MulMatIDArgs{
		M: uint32(s.m), K: uint32(s.k), Count: uint32(len(ids)), Used: uint32(s.used), First: uint32(s.first), Last: uint32(s.last),
		XStride: uint32(s.k + s.gap), DstStride: uint32(s.m + s.gap), IDs: j.addr(j.uint32s(ids)),
	}
	if s.last == 0 {
		a.Last = uint32(s.experts)
	}
	if !s.tiles {
		return a, g
	}
	tiles := shaders.ExpertTiles(a.Count, uint32(s.experts), shaders.ExpertCols)
	pairs, tileSpan := j.alloc(4*len(ids)), j.alloc(shaders.TileBytes*int(tiles))
	j.spare = append(j.spare, pairs, tileSpan)
	a.Pairs, a.Tiles = j.addr(pairs), j.addr(tileSpan)
	g = shaders.GroupExpertsArgs{IDs: a.IDs, Pairs: a.Pairs, Tiles: a.Tiles, Count: a.Count, Experts: uint32(s.experts)}
	return a, g
}

// mulMatID multiplies pairs with the weights of their experts; the rows of pairs that take no part stay as they are.
func mulMatID(t gguf.Type, s idShape) Case {
	op := "mul_mat_vec_id"
	if s.tiles {
		op = "mul_mat_id"
	}
	return Case{Kernel: typed(op, t), Shape: s.String(), MaxNMSE: nmseLinear, build: func(j *job) error {
		table, w, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		ids := chosenExperts(j, s.rows, s.used, s.experts)
		x := j.normal(s.rows, s.k, s.gap)
		a, g := mulMatIDArgs(j, s, ids)
		untouched := j.normal(len(ids), s.m, s.gap)
		dst := j.mat(untouched)
		if err := ref.MulMatID(t, untouched, w, x, ids, s.used, s.first, int(a.Last)); err != nil {
			return err
		}
		j.sums("dst", dst, untouched, float64(s.k))
		a.Table, a.X, a.Dst = table, j.addr(j.mat(x)), j.addr(dst)
		j.record = func(r *kernels.Recorder) error {
			if s.tiles {
				if err := kernels.GroupExperts(r, g); err != nil {
					return err
				}
			}
			return kernels.MulMatID(r, t, a, uint32(s.experts))
		}
		return nil
	}}
}

// mulMatIDSameBits multiplies pairs one by one, by expert, and each with mul_mat: one value, to the bit.
func mulMatIDSameBits(t gguf.Type, m, k int) Case {
	s := idShape{m: m, k: k, rows: 21, used: 2, experts: 4, tiles: true}
	return Case{Kernel: typed("mul_mat_id", t), Shape: fmt.Sprintf("same bits M=%d K=%d", m, k), MaxNMSE: nmseLinear, build: func(j *job) error {
		table, _, err := newExpertWeights(j, t, s)
		if err != nil {
			return err
		}
		ids := chosenExperts(j, s.rows, s.used, s.experts)
		x := j.normal(s.rows, s.k, s.gap)
		a, g := mulMatIDArgs(j, s, ids)
		want := shape(len(ids), s.m, s.gap)
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
			if err := kernels.MulMatID(r, t, a, uint32(s.experts)); err != nil {
				return err
			}
			if err := kernels.MulMatID(r, t, one, uint32(s.experts)); err != nil {
				return err
			}
			for p, id := range ids {
				w := binary.LittleEndian.Uint64(j.bytesAt(table+8*uint64(id), 8))
				err := kernels.MulMat(r, t, mulMatArgs(w, a.X+4*uint64(p/s.used)*uint64(a.XStride), j.addr(plain)+4*uint64(p)*uint64(a.DstStride), s.m, s.k, 1, int(a.XStride), int(a.DstStride)))
				if err != nil {
					return err
				}
			}
			return nil
		}
		return nil
	}}
}

func sumExperts(rows, used, cols, gap int, residual bool) Case {
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
