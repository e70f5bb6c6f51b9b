package conform

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/internal/kernels"
	"leat/shaders"
	"leat/shaders/ref"
)

// team is a product for several matrices: what they share, and X as the kernel's variant takes it.
type team struct {
	args shaders.MulMatTeamArgs
	x    ref.Mat // what the device's X stands for
}

func (j *job) team(row *shaders.Kernel, k, n int) team {
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

// matrix makes weights of m rows and a bias, and the reference's product with it.
func (t *team) matrix(j *job, row *shaders.Kernel, m int) (w, bias uint64, y ref.Mat, err error) {
	at, bytes, err := j.weights(row.Type, m, t.x.Cols, 1)
	if err != nil {
		return 0, 0, y, err
	}
	y, b := shape(t.x.Rows, m, 0), j.normal(1, m, 0)
	if err := ref.MulMat(row.Type, y, bytes, t.x); err != nil {
		return 0, 0, y, err
	}
	ref.Add(y.Data, y.Data, b.Data)
	return j.addr(at), j.addr(j.mat(b)), y, nil
}

// siblings are up to three matrices that share X; the second has no bias.
func siblings(row *shaders.Kernel, m [3]int, k, n int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("siblings M=%v K=%d N=%d", m, k, n) + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := j.team(row, k, n)
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
				r.Tile, r.Groups = tile, fewGroups
				return r.MulMatTeam(row.Variant, row.Type, shaders.NoGLU, *a)
			}
			return nil
		},
	}
}

// residual adds a product to what is there.
func residual(row *shaders.Kernel, m, k, n int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("residual M=%d K=%d N=%d", m, k, n) + tileName(tile), MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := j.team(row, k, n)
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
				r.Tile, r.Groups = tile, fewGroups
				return r.MulMatTeam(row.Variant, row.Type, shaders.NoGLU, a)
			}
			return nil
		},
	}
}

// gates are pairs of rows, and their swiglu, as bytes too.
func gates(row *shaders.Kernel, m, k, n int, bytes bool, tile kernels.Tile) Case {
	name, glu, most := "gates", uint32(shaders.GLUFloats), nmseCurved
	if bytes {
		name, glu, most = "gates, bytes", shaders.GLUBytes, nmseRounded
	}
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("%s M=%d K=%d N=%d", name, m, k, n) + tileName(tile), MaxNMSE: most,
		build: func(j *job) error {
			t := j.team(row, k, n)
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
				r.Tile, r.Groups = tile, fewGroups
				return r.MulMatTeam(row.Variant, row.Type, glu, a)
			}
			return nil
		},
	}
}

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

// gatesSameBits makes rows together and alone: one value, to the bit, in floats and in bytes.
func gatesSameBits(row *shaders.Kernel) Case {
	const m, k, most = 64, 1024, 5
	return Case{
		Kernel: row.Name, Shape: "gates, same bits", MaxNMSE: nmseLinear,
		build: func(j *job) error {
			t := j.team(row, k, most)
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
				return all(runs, func(a shaders.MulMatTeamArgs) error { return r.MulMatTeam(row.Variant, row.Type, shaders.GLUBytes, a) })
			}
			return nil
		},
	}
}

// normOut adds a product to what is there, and leaves the sum times the weights of a norm as bytes, with a tile or the device's.
func normOut(row *shaders.Kernel, m, k, n int, tile kernels.Tile) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("norm out M=%d K=%d N=%d tile=%v", m, k, n, tile), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			const eps = 0.25 // enough to be missed
			t := j.team(row, k, n)
			w, bias, y, err := t.matrix(j, row, m)
			if err != nil {
				return err
			}
			before, weights := j.normal(n, m, 4), j.normal(1, m, 0)
			want, times, parts := shape(n, m, 4), shape(n, m, 0), shape(n, m/32, 0)
			for r := range n {
				ref.Add(want.Row(r), before.Row(r), y.Row(r))
				for c, v := range want.Row(r) {
					times.Row(r)[c] = v * weights.Data[c]
					parts.Row(r)[c/32] += v*v + eps
				}
			}
			dst := j.mat(before)
			j.sums("dst", dst, want, float64(k))
			sums, behind := int(shaders.Q8Sums(0, uint32(n), uint32(m))), int(shaders.Q8Size(uint32(n), uint32(m)))
			bytes := j.alloc(int(shaders.NormedSize(uint32(n), uint32(m))))
			j.wants = append(j.wants, want8(ref.QuantizeQ8(times), span{bytes.off, sums}, span{bytes.off + sums, n * m / 4})...)
			j.output("squares", span{bytes.off + behind, n * m / 8}, parts)
			counters := j.alloc(m / 8)
			clear(j.at(counters))
			j.exact("counters", counters, make([]byte, m/8))
			a := t.args
			a.W0, a.Bias0, a.Dst0, a.M0, a.DstStride = w, bias, j.addr(dst), uint32(m), uint32(want.Stride)
			a.Residual, a.ResidualStride = a.Dst0, a.DstStride
			a.W1, a.Dst1, a.Dst2, a.Bias1, a.M1 = j.addr(j.mat(weights)), j.addr(bytes), shaders.Q8Sums(j.addr(bytes), uint32(n), uint32(m)), j.addr(counters), math.Float32bits(eps)
			j.record = func(r *kernels.Recorder) error {
				r.Tile, r.Groups = tile, fewGroups
				return r.MulMatTeam(row.Variant, row.Type, shaders.NormBytes, a)
			}
			return nil
		},
	}
}

// normIn takes bytes that still want to be divided by the root of their mean, for one product or gated pairs, with a tile or the
// device's.
func normIn(row *shaders.Kernel, m, k, n int, glu uint32, tile kernels.Tile) Case {
	most := nmseCurved
	if glu == shaders.GLUBytes {
		most = nmseRounded
	}
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("norm in M=%d K=%d N=%d glu=%d tile=%v", m, k, n, glu, tile), MaxNMSE: most,
		build: func(j *job) error {
			x := j.normal(n, k, 0)
			q8, parts := ref.QuantizeQ8(x), shape(n, k/32, 0)
			t := team{args: shaders.MulMatTeamArgs{K: uint32(k), N: uint32(n)}, x: q8.Mat()}
			for r := range n {
				var mean float64
				for i := range parts.Row(r) {
					parts.Row(r)[i] = float32(r+1) + 9*float32(j.rng.Float64())
					mean += float64(parts.Row(r)[i]) / float64(k)
				}
				for c := range t.x.Row(r) {
					t.x.Row(r)[c] /= float32(math.Sqrt(mean))
				}
			}
			q, s := j.q8(q8)
			both := j.alloc((s.n+15)&^15 + n*k/8)
			copy(j.at(both), j.at(s))
			for i, v := range parts.Data {
				binary.LittleEndian.PutUint32(j.at(both)[(s.n+15)&^15+4*i:], math.Float32bits(v))
			}
			t.args.X, t.args.S = j.addr(q), j.addr(both)
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
			a.DstStride = uint32(want.Stride)
			dst := j.space(want)
			j.sums("dst", dst, want, float64(k))
			a.Dst0 = j.addr(dst)
			if glu == shaders.GLUBytes {
				bytes, sums := j.alloc(n*m), j.alloc(n*m/4)
				j.wants = append(j.wants, want8(ref.QuantizeQ8(want), bytes, sums)...)
				a.Dst1, a.Dst2 = j.addr(bytes), j.addr(sums)
			}
			j.record = func(r *kernels.Recorder) error {
				r.Tile, r.Groups = tile, fewGroups
				return r.MulMatNormed(row.Variant, row.Type, glu, a)
			}
			return nil
		},
	}
}

// folded is a residual's product, a norm that has no dispatch, and a product of that, as a recorder finds the bytes; then again
// with every row alone: to the same bits.
func folded(row *shaders.Kernel, k, d, m, n int) Case {
	return Case{
		Kernel: row.Name, Shape: fmt.Sprintf("folded norm K=%d D=%d M=%d N=%d", k, d, m, n), MaxNMSE: nmseRounded,
		build: func(j *job) error {
			const eps = 0.25
			x, before, weights, out := j.normal(n, k, 0), j.normal(n, d, 0), j.normal(1, d, 0), shape(n, m, 0)
			w1, _, err := j.weights(row.Type, d, k, 1)
			if err != nil {
				return err
			}
			w2, bytes, err := j.weights(row.Type, m, d, 1)
			if err != nil {
				return err
			}
			q8, mid := ref.QuantizeQ8(x), shape(n, d, 0)
			if err := ref.MulMat(row.Type, mid, j.bytesAt(j.addr(w1), w1.n), q8.Mat()); err != nil {
				return err
			}
			ref.Add(mid.Data, mid.Data, before.Data)
			ref.RMSNorm(mid, mid, weights.Data, eps)
			if err := ref.MulMat(row.Type, out, bytes, ref.QuantizeQ8(mid).Mat()); err != nil {
				return err
			}
			in, norm, nothing := j.addr(j.mat(x)), j.addr(j.mat(weights)), j.alloc(4*n*d)
			ends := [2]span{j.space(out), j.space(out)}
			j.spare = append(j.spare, nothing)
			j.sums("dst", ends[0], out, float64(d))
			j.same("rows", ends[0], ends[1], out)
			middle := [2]span{j.mat(before), j.mat(before)}
			j.spare = append(j.spare, middle[0], middle[1])
			prepare := j.few(max(k, d), d/32, 32)
			j.record = func(r *kernels.Recorder) error {
				prepare(r)
				for i, rows := range []int{n, 1} {
					for from := 0; from < n; from += rows {
						f, c := uint64(4*from), uint32(rows)
						mid, x := j.addr(middle[i])+f*uint64(d), j.addr(nothing)+f*uint64(d)
						p := kernels.Products{Type: row.Type, X: in + f*uint64(k), N: c, K: uint32(k), XStride: uint32(k), DstStride: uint32(d), Residual: mid, ResidualStride: uint32(d),
							Of: [3]kernels.Matrix{{W: j.addr(w1), Dst: mid, M: uint32(d)}}, Norm: kernels.Norm{W: norm, X: x, Eps: eps}}
						next := kernels.Products{Type: row.Type, X: x, N: c, K: uint32(d), XStride: uint32(d), DstStride: uint32(m),
							Of: [3]kernels.Matrix{{W: j.addr(w2), Dst: j.addr(ends[i]) + f*uint64(m), M: uint32(m)}}}
						if err := all([]*kernels.Products{&p, &next}, r.Products); err != nil {
							return err
						}
					}
				}
				return nil
			}
			return nil
		},
	}
}
