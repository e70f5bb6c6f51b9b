package conform

import (
	"fmt"
	"math"

	"leat/shaders"
	"leat/shaders/gpu"
	"leat/shaders/ref"
)

// normBefore is a product, or gates, of a row that the kernel norms first, with a tile or the device's: to the bits of an rms_norm_q8
// before it, and near the reference.
func normBefore(row *shaders.Kernel, m, k int, glu uint32, tile gpu.Tile) Case {
	most := nmseRounded
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("norm before M=%d K=%d glu=%d tile=%v", m, k, glu, tile), MaxNMSE: most,
		build: func(j *job) error {
			const eps = 0.25 // enough to be missed
			x, weights, normed := j.normal(1, k, 0), j.normal(1, k, 0), shape(1, k, 0)
			ref.RMSNorm(normed, x, weights.Data, eps)
			t := team{args: shaders.MulMatTeamArgs{K: uint32(k), N: 1, XStride: uint32(k)}, x: ref.QuantizeQ8(normed).Mat()}
			a, want, err := t.gates(j, row, m)
			if err != nil {
				return err
			}
			if glu == shaders.NoGLU {
				var bias uint64
				if a.W0, bias, want, err = t.matrix(j, row, m); err != nil {
					return err
				}
				a.Bias0, a.W1, a.Bias1, a.M1 = bias, 0, 0, 0
			}
			own, other := j.space(want), j.space(want)
			j.sums("dst", own, want, float64(k))
			j.same("dst", own, other, want)
			room := j.alloc(2*m + m/2 + k + k/4)
			j.spare = append(j.spare, room)
			at := j.addr(room)
			b := a
			a.Dst0, b.Dst0 = j.addr(own), j.addr(other)
			if glu == shaders.GLUBytes { // of both: what is stored is tested elsewhere
				a.Dst1, a.Dst2 = at, at+uint64(m)
				b.Dst1, b.Dst2 = a.Dst1, a.Dst2
			}
			a.X, a.S, a.ResidualStride = j.addr(j.mat(x)), j.addr(j.mat(weights)), math.Float32bits(eps)
			dst := j.alloc(4 * k)
			j.spare = append(j.spare, dst)
			b.X, b.S = at+2*uint64(m)+uint64(m/2), at+2*uint64(m)+uint64(m/2+k)
			norm := shaders.RMSNormQ8Args{X: a.X, W: a.S, Dst: j.addr(dst), Q: b.X, S: b.S, Rows: 1, Cols: uint32(k), XStride: uint32(k), DstStride: uint32(k), Eps: eps}
			j.record = func(r *gpu.Recorder) error {
				r.Tile, r.Groups = tile, fewGroups
				if err := r.MulMatNormed(row.Variant, row.Type, glu, a); err != nil {
					return err
				}
				if err := r.RMSNormQ8(norm); err != nil {
					return err
				}
				return r.MulMatTeam(row.Variant, row.Type, glu, b)
			}
			return nil
		},
	}
}
