package conform

import (
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// teamIDCases are products with experts in bytes.
func teamIDCases() []Case {
	var cases []Case
	for _, k := range shaders.Kernels() {
		row := &k
		if row.Op != "mul_mat_vec_id" || row.Variant != shaders.Int8 {
			continue
		}
		for _, tiles := range []bool{false, true} {
			cases = append(cases,
				teamID(row, idShape{m: 65, k: 512, rows: 1, used: 8, experts: 16, tiles: tiles}, shaders.NoGLU, kernels.Tile{}),
				teamID(row, idShape{m: 7, k: 768, rows: 19, used: 3, experts: 4, gap: 4, first: 1, last: 3, tiles: tiles}, shaders.NoGLU, kernels.Tile{}),
				teamID(row, idShape{m: 33, k: 256, rows: 5, used: 2, experts: 3, first: 1, last: 2, tiles: tiles}, shaders.GLUFloats, kernels.Tile{}),
				teamID(row, idShape{m: 96, k: 1024, rows: 21, used: 2, experts: 5, tiles: tiles}, shaders.GLUBytes, kernels.Tile{}),
			)
		}
		cases = append(cases, teamIDSameBits(row), teamID(row, idShape{m: 7, k: 1024, rows: 5, used: 3, experts: 4, gap: 4}, shaders.NoGLU, kernels.Tile{}))
	}
	if row, ok := shaders.Lookup("mul_mat_vec_id_int8_q4_k"); ok {
		for _, tiles := range []bool{false, true} {
			cases = append(cases, teamID(row, idShape{m: 20, k: 512, rows: 12, used: 2, experts: 3, tiles: tiles, absent: true}, shaders.NoGLU, kernels.Tile{}),
				teamID(row, idShape{m: 64, k: 512, rows: 12, used: 2, experts: 3, tiles: tiles, absent: true}, shaders.GLUFloats, kernels.Tile{}))
		}
	}
	return cases
}

// newExpertTeam is a product with experts: what the device takes, and what must come of it. Rows of pairs that take no part stay
// as they are.
func newExpertTeam(j *job, row *shaders.Kernel, s idShape, glu uint32) (a shaders.MulMatTeamIDArgs, g shaders.GroupExpertsArgs, want ref.Mat, dst span, err error) {
	ids := chosenExperts(j, s.rows, s.used, s.experts)
	ida, g := mulMatIDArgs(j, s, ids)
	q8 := ref.QuantizeQ8(j.normal(s.rows, s.k, 0))
	q, sums := j.q8(q8)
	a = shaders.MulMatTeamIDArgs{
		X: j.addr(q), S: j.addr(sums), IDs: ida.IDs, Pairs: ida.Pairs, Tiles: ida.Tiles,
		M0: uint32(s.m), K: uint32(s.k), Blocks: ida.Count, Used: uint32(s.used), DstStride: ida.DstStride, First: ida.First, Last: ida.Last,
	}
	if s.tiles {
		a.Blocks = shaders.ExpertTiles(ida.Count, uint32(s.experts), shaders.ExpertCols)
	}
	want = j.normal(len(ids), s.m, s.gap)
	dst = j.mat(want)
	a.Dst0 = j.addr(dst)
	product := func(y ref.Mat) (uint64, [][]byte, error) {
		table, w, err := newExpertWeights(j, row.Type, s)
		if err != nil {
			return 0, nil, err
		}
		return table, w, ref.MulMatID(row.Type, y, w, q8.Mat(), ids, s.used, s.first, int(a.Last))
	}
	if glu == shaders.NoGLU {
		a.W0, _, err = product(want)
		return a, g, want, dst, err
	}
	gate, up := shape(len(ids), s.m, 0), shape(len(ids), s.m, 0)
	var w [][]byte
	if a.W0, w, err = product(gate); err != nil {
		return a, g, want, dst, err
	}
	if a.W1, _, err = product(up); err != nil {
		return a, g, want, dst, err
	}
	for p, id := range ids {
		if int(id) >= s.first && id < a.Last && w[id] != nil {
			ref.SwiGLU(want.Row(p), gate.Row(p), up.Row(p))
		}
	}
	return a, g, want, dst, nil
}

// teamID multiplies pairs with the weights of their experts, in bytes.
func teamID(row *shaders.Kernel, s idShape, glu uint32, tile kernels.Tile) Case {
	name := [...]string{"", "gates ", "gates, bytes "}[glu] + s.String()
	if s.tiles {
		name += " by expert"
	}
	return Case{Kernel: row.Name, Shape: name + tileName(tile), MaxNMSE: [...]float64{nmseLinear, nmseCurved, nmseRounded}[glu], build: func(j *job) error {
		a, g, want, dst, err := newExpertTeam(j, row, s, glu)
		if err != nil {
			return err
		}
		j.sums("dst", dst, want, float64(s.k))
		if glu == shaders.GLUBytes {
			q, sums := j.alloc(want.Rows*s.m), j.alloc(want.Rows*s.m/4)
			j.wants = append(j.wants, want8(ref.QuantizeQ8(want), q, sums)...)
			a.Dst1, a.Dst2 = j.addr(q), j.addr(sums)
		}
		j.record = func(r *kernels.Recorder) error {
			r.Tile = tile
			if s.tiles {
				if err := kernels.GroupExperts(r, g); err != nil {
					return err
				}
			}
			return kernels.MulMatTeamID(r, row.Type, glu, a, uint32(want.Rows), uint32(s.experts))
		}
		return nil
	}}
}

// teamIDSameBits multiplies pairs one by one and by expert: one value, to the bit.
func teamIDSameBits(row *shaders.Kernel) Case {
	s := idShape{m: 36, k: 1024, rows: 21, used: 2, experts: 4, tiles: true}
	return Case{Kernel: row.Name, Shape: "same bits " + s.String(), MaxNMSE: nmseLinear, build: func(j *job) error {
		a, g, want, tiled, err := newExpertTeam(j, row, s, shaders.NoGLU)
		if err != nil {
			return err
		}
		single := j.space(want)
		j.same("pair by pair", single, tiled, want)
		a.Dst0 = j.addr(tiled)
		one := a
		one.Pairs, one.Tiles, one.Blocks, one.Dst0 = 0, 0, uint32(want.Rows), j.addr(single)
		j.record = func(r *kernels.Recorder) error {
			if err := kernels.GroupExperts(r, g); err != nil {
				return err
			}
			return all([]shaders.MulMatTeamIDArgs{a, one}, func(a shaders.MulMatTeamIDArgs) error {
				return kernels.MulMatTeamID(r, row.Type, shaders.NoGLU, a, uint32(want.Rows), uint32(s.experts))
			})
		}
		return nil
	}}
}

// teamIDProofs are [teamProofs] for products with experts.
func teamIDProofs(v *kernels.Variant) []Case {
	block := max(32, v.Row.Type.BlockSize())
	k := (32*int(v.Tile.Team*(2*v.Tile.Unroll+1)) + block) / block * block
	m := int(v.Outputs())
	long, short := m+3, 3
	if v.GLU == shaders.GLUBytes {
		long, short = m+32, 32
	}
	tiles := v.Cols > 1
	return []Case{
		teamID(v.Row, idShape{m: long, k: k, rows: 13, used: 1, experts: 2, tiles: tiles}, v.GLU, v.Tile),
		teamID(v.Row, idShape{m: short, k: block, rows: 5, used: 2, experts: 3, tiles: tiles}, v.GLU, v.Tile),
	}
}
