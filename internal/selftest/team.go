package selftest

import (
	"fmt"

	"leat/gguf"
	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// team is a product of one X with several matrices, by a mul_mat_vec in teams: the arguments that do not depend on the matrices, and X.
type team struct {
	args shaders.MulMatTeamArgs // arguments without matrices and outputs
	x    ref.Mat                // values of X, as the device has it: rounded, if the kernel reads int8
	made int                    // number of matrices
}

// newTeam makes a random X of n rows of k values, in the format that the kernel row reads.
func newTeam(j *job, row *shaders.Kernel, k, n int) team {
	x := j.normal(n, k, 0)
	t := team{args: shaders.MulMatTeamArgs{K: uint32(k), N: uint32(n), XStride: uint32(k)}, x: x}
	if row.Variant == shaders.Wide {
		t.args.X = j.addr(j.mat(x))
		return t
	}
	q8 := ref.QuantizeQ8(x)
	q, s := j.q8(q8)
	t.args.X, t.args.S, t.x = j.addr(q), j.addr(s), q8.Mat()
	return t
}

// matrix makes weights of m rows and a bias, or for every other matrix of NVFP4 a scale, and returns their addresses and the reference's product with X, bias or scale
// included.
func (t *team) matrix(j *job, row *shaders.Kernel, m int) (w, bias uint64, y ref.Mat, err error) {
	at, bytes, err := j.weights(row.Type, m, t.x.Cols, 1)
	if err != nil {
		return 0, 0, y, err
	}
	y, b := shape(t.x.Rows, m, 0), j.normal(1, m, 0)
	if err := ref.MulMat(row.Type, y, bytes, t.x); err != nil {
		return 0, 0, y, err
	}
	if t.made++; row.Type == gguf.NVFP4 && row.Variant == shaders.Int8 && t.made%2 == 1 {
		for i := range y.Data {
			y.Data[i] *= b.Data[0]
		}
		return j.addr(at), j.addr(j.mat(b)) + 1, y, nil
	}
	ref.Add(y.Data, y.Data, b.Data)
	return j.addr(at), j.addr(j.mat(b)), y, nil
}

// fewGroups is the number of workgroups of mul_mat_vec_persistent in all cases. It is small, so that workgroups compute outputs in several turns.
const fewGroups = 5

// multiplyTeam records a mul_mat_vec in teams of the kernel row; a mul_mat_vec_persistent gets fewGroups workgroups.
func multiplyTeam(r *kernels.Recorder, row *shaders.Kernel, glu uint32, a shaders.MulMatTeamArgs) error {
	if row.Variant == shaders.Persistent {
		return kernels.MulMatPersistent(r, row.Type, glu, fewGroups, a)
	}
	return kernels.MulMatTeam(r, row.Variant, row.Type, glu, a)
}

// VecSiblings tests the kernel row, a mul_mat_vec in teams, with up to three matrices; m has the rows of each, and the second has no bias. tile zero: the
// device's own.
func VecSiblings(row *shaders.Kernel, m [3]int, k, n int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("siblings M=%v K=%d N=%d", m, k, n) + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := newTeam(j, row, k, n)
			a := &t.args
			w := [3]*uint64{&a.W0, &a.W1, &a.W2}
			bias := [3]*uint64{&a.Bias0, &a.Bias1, &a.Bias2}
			dst := [3]*uint64{&a.Dst0, &a.Dst1, &a.Dst2}
			for i, m := range m {
				if m == 0 {
					continue
				}
				at, b, y, err := t.matrix(j, row, m)
				if err != nil {
					return err
				}
				if i == 1 {
					bytes := j.bytesAt(b, 4*m)
					for r := range n {
						for c := range m {
							y.Row(r)[c] -= floatAt(bytes, c)
						}
					}
					b = 0
				}
				out := j.space(y)
				j.sums(fmt.Sprintf("dst%d", i), out, y, float64(k))
				*w[i], *bias[i], *dst[i] = at, b, j.addr(out)
			}
			a.M0, a.M1, a.M2, a.DstStride = uint32(m[0]), uint32(m[1]), uint32(m[2]), uint32(m[0])
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				return multiplyTeam(r, row, shaders.NoGLU, *a)
			}
			return nil
		},
	}
}

// VecResidual tests the kernel row, a mul_mat_vec in teams, with a residual: it adds the product to the destination. tile zero: the device's own.
func VecResidual(row *shaders.Kernel, m, k, n int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("residual M=%d K=%d N=%d", m, k, n) + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := newTeam(j, row, k, n)
			w, bias, y, err := t.matrix(j, row, m)
			if err != nil {
				return err
			}
			before := j.normal(n, m, 3)
			want := shape(n, m, 3)
			for r := range n {
				ref.Add(want.Row(r), before.Row(r), y.Row(r))
			}
			dst := j.mat(before)
			j.sums("dst", dst, want, float64(k))
			a := t.args
			a.W0, a.Bias0, a.Dst0, a.M0, a.DstStride = w, bias, j.addr(dst), uint32(m), uint32(want.Stride)
			a.Residual, a.ResidualStride = a.Dst0, a.DstStride
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				return multiplyTeam(r, row, shaders.NoGLU, a)
			}
			return nil
		},
	}
}

// VecGates tests the kernel row, a mul_mat_vec in teams, with a gate: it computes SwiGLU of two products. With bytes it stores the result as int8 too. tile
// zero: the device's own.
func VecGates(row *shaders.Kernel, m, k, n int, bytes bool, tile kernels.Tile) Case {
	name, glu, most := "gates", uint32(shaders.GLUFloats), nmseCurved
	if bytes {
		name, glu, most = "gates, bytes", shaders.GLUBytes, nmseRounded
	}
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("%s M=%d K=%d N=%d", name, m, k, n) + tileName(tile), MaxNMSE: most,
		build: func(j *job) error {
			t := newTeam(j, row, k, n)
			a, want, err := t.gates(j, row, m)
			if err != nil {
				return err
			}
			dst := j.space(want)
			j.sums("dst", dst, want, float64(k))
			a.Dst0 = j.addr(dst)
			if bytes {
				q, s := j.alloc(n*m), j.alloc(n*m/4)
				j.wants = append(j.wants, want8(ref.QuantizeQ8(want), q, s)...)
				a.Dst1, a.Dst2 = j.addr(q), j.addr(s)
			}
			j.record = func(r *kernels.Recorder) error {
				r.Override.Tile = tile
				return multiplyTeam(r, row, glu, a)
			}
			return nil
		},
	}
}

// gates makes the matrices gate and up, of m rows each, and returns the arguments and the wanted SwiGLU of their products. The caller sets Dst0.
func (t *team) gates(j *job, row *shaders.Kernel, m int) (a shaders.MulMatTeamArgs, want ref.Mat, err error) {
	a = t.args
	var gate, up ref.Mat
	if a.W0, a.Bias0, gate, err = t.matrix(j, row, m); err != nil {
		return a, want, err
	}
	if a.W1, a.Bias1, up, err = t.matrix(j, row, m); err != nil {
		return a, want, err
	}
	want = shape(t.x.Rows, m, 0)
	ref.SwiGLU(want.Data, gate.Data, up.Data)
	a.M0, a.M1, a.DstStride = uint32(m), uint32(m), uint32(m)
	return a, want, nil
}

// VecGatesSameBits tests that the kernel row, a mul_mat_vec in teams with a gate that also stores int8, gives the same floats, bit by bit, for several rows
// together and for each row alone.
func VecGatesSameBits(row *shaders.Kernel) Case {
	const m, k, most = 64, 1024, 5
	return Case{
		Kernel: row.Name, Shape: "gates, same bits", MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := newTeam(j, row, k, most)
			a, want, err := t.gates(j, row, m)
			if err != nil {
				return err
			}
			single, batch := j.space(want), j.space(want)
			j.same("rows", batch, single, want)
			room := j.alloc(2 * most * m)
			j.spare = append(j.spare, room)
			a.Dst0, a.Dst1, a.Dst2 = j.addr(batch), j.addr(room), j.addr(room)+most*m
			runs := []shaders.MulMatTeamArgs{a}
			for n := range uint64(most) {
				b := a
				b.N, b.Dst0 = 1, j.addr(single)+4*n*m
				b.X, b.S = a.X+n*k, a.S+n*k/4
				if row.Variant == shaders.Wide {
					b.X = a.X + 4*n*k
				}
				runs = append(runs, b)
			}
			j.record = func(r *kernels.Recorder) error {
				return all(runs, func(a shaders.MulMatTeamArgs) error {
					return multiplyTeam(r, row, shaders.GLUBytes, a)
				})
			}
			return nil
		},
	}
}

// teamProofs returns the proofs of a pipeline of a mul_mat_vec in teams. The weights have rows for more than one workgroup, so long that each lane computes
// several chunks, but not all lanes the same number. X has as many rows as the kernel has columns, and fewer.
func teamProofs(v *kernels.Variant) []Case {
	chunk := int(shaders.Chunk(v.Row.Variant, v.Row.Type))
	block := max(chunk, v.Row.Type.BlockSize())
	k := (chunk*int(v.Tile.Team*(2*v.Tile.Unroll+1)) + block) / block * block
	if v.Row.Variant == shaders.Straight { // rows as long as the tile computes, and the shortest
		block = 512
		k = int(v.Tile.Team/8*v.Tile.Unroll*256) / block * block
	}
	n, m, short := int(v.Cols), int(v.Outputs()), block
	if v.Row.Variant == shaders.Persistent { // the longest and the shortest row with the same tile; more groups of outputs than workgroups
		short = int(v.Tile.Team*(v.Tile.Unroll-1))*64/block*block + block
		k = max(short, int(v.Tile.Team*v.Tile.Unroll)*64/block*block)
		if v.GLU == shaders.GLUBytes {
			m = max(m, 32)
		}
		m *= fewGroups
	}
	fewer := n/2 + 1
	switch {
	case v.GLU == shaders.GLUFloats:
		return []Case{VecGates(v.Row, m+3, k, n, false, v.Tile), VecGates(v.Row, 3, short, fewer, false, v.Tile)}
	case v.GLU == shaders.GLUBytes:
		return []Case{VecGates(v.Row, m+32, k, n, true, v.Tile), VecGates(v.Row, 32, short, fewer, true, v.Tile)}
	}
	return []Case{VecSiblings(v.Row, [3]int{m + 1, 5, 2}, k, n, v.Tile), VecResidual(v.Row, m+3, short, fewer, v.Tile)}
}
