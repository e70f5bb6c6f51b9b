package selftest

import (
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// newExpertTeam makes a product of int8 rows with their experts or, by glu, the SwiGLU of two such products. It returns the arguments, those of the
// group_experts that sorts the pairs, the wanted result, and its buffer. Rows of pairs whose experts take no part must not change.
func newExpertTeam(j *job, row *shaders.Kernel, s IDShape, glu uint32) (a shaders.MulMatTeamIDArgs, g shaders.GroupExpertsArgs, want ref.Mat, dst span, err error) {
	ids := chosenExperts(j, s.Rows, s.Used, s.Experts)
	ida, g := mulMatIDArgs(j, s, ids)
	q8 := ref.QuantizeQ8(j.normal(s.Rows, s.K, 0))
	q, sums := j.q8(q8)
	a = shaders.MulMatTeamIDArgs{
		X: j.addr(q), S: j.addr(sums), IDs: ida.IDs, Pairs: ida.Pairs, Tiles: ida.Tiles,
		M0: uint32(s.M), K: uint32(s.K), Blocks: ida.Count, Used: uint32(s.Used), DstStride: ida.DstStride, First: ida.First, Last: ida.Last,
	}
	if s.Tiles {
		a.Blocks = shaders.ExpertTiles(ida.Count, uint32(s.Experts), shaders.ExpertCols)
	}
	want = j.normal(len(ids), s.M, s.Gap)
	dst = j.mat(want)
	a.Dst0 = j.addr(dst)
	product := func(y ref.Mat) (uint64, [][]byte, error) {
		table, w, err := newExpertWeights(j, row.Type, s)
		if err != nil {
			return 0, nil, err
		}
		return table, w, ref.MulMatID(row.Type, y, w, q8.Mat(), ids, s.Used, s.First, int(a.Last))
	}
	if glu == shaders.NoGLU {
		a.W0, _, err = product(want)
		return a, g, want, dst, err
	}
	gate, up := shape(len(ids), s.M, 0), shape(len(ids), s.M, 0)
	var w [][]byte
	if a.W0, w, err = product(gate); err != nil {
		return a, g, want, dst, err
	}
	if a.W1, _, err = product(up); err != nil {
		return a, g, want, dst, err
	}
	for p, id := range ids {
		if int(id) >= s.First && id < a.Last && w[id] != nil {
			ref.SwiGLU(want.Row(p), gate.Row(p), up.Row(p))
		}
	}
	return a, g, want, dst, nil
}

// VecID tests mul_mat_vec_id_int8, a product of (row, expert) pairs. glu is one of shaders.NoGLU, GLUFloats and GLUBytes. tile zero: the device's own.
func VecID(row *shaders.Kernel, s IDShape, glu uint32, tile kernels.Tile) Case {
	name := [...]string{"", "gates ", "gates, bytes "}[glu] + s.String()
	if s.Tiles {
		name += " by expert"
	}
	return Case{Kernel: row.Name, Shape: name + tileName(tile), MaxNMSE: [...]float64{nmseLinear, nmseCurved, nmseRounded}[glu], build: func(j *job) error {
		a, g, want, dst, err := newExpertTeam(j, row, s, glu)
		if err != nil {
			return err
		}
		j.sums("dst", dst, want, float64(s.K))
		if glu == shaders.GLUBytes {
			q, sums := j.alloc(want.Rows*s.M), j.alloc(want.Rows*s.M/4)
			j.wants = append(j.wants, want8(ref.QuantizeQ8(want), q, sums)...)
			a.Dst1, a.Dst2 = j.addr(q), j.addr(sums)
		}
		j.record = func(r *kernels.Recorder) error {
			r.Override.Tile = tile
			if s.Tiles {
				if err := kernels.GroupExperts(r, g); err != nil {
					return err
				}
			}
			return kernels.MulMatTeamID(r, row.Type, glu, a, uint32(want.Rows), uint32(s.Experts))
		}
		return nil
	}}
}

// VecIDSameBits tests that mul_mat_vec_id_int8 gives the same bits for pairs one by one and sorted by expert.
func VecIDSameBits(row *shaders.Kernel) Case {
	s := IDShape{M: 36, K: 1024, Rows: 21, Used: 2, Experts: 4, Tiles: true}
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
				return kernels.MulMatTeamID(r, row.Type, shaders.NoGLU, a, uint32(want.Rows), uint32(s.Experts))
			})
		}
		return nil
	}}
}

// teamIDProofs returns the proofs of a pipeline of mul_mat_vec_id_int8, chosen like those of [teamProofs].
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
		VecID(v.Row, IDShape{M: long, K: k, Rows: 13, Used: 1, Experts: 2, Tiles: tiles}, v.GLU, v.Tile),
		VecID(v.Row, IDShape{M: short, K: block, Rows: 5, Used: 2, Experts: 3, Tiles: tiles}, v.GLU, v.Tile),
	}
}

// teamIDTests has the entry of mul_mat_vec_id_int8.
var teamIDTests = table{"mul_mat_vec_id_int8": {proofs: teamIDProofs, quick: func(k *shaders.Kernel) []Case {
	return []Case{VecID(k, IDShape{M: 7, K: 1024, Rows: 5, Used: 3, Experts: 4, Gap: 4}, shaders.NoGLU, kernels.Tile{})}
}}}
