package gpu

import (
	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Scratch is device memory for a recorder's own use. Its address is a multiple of 16.
type Scratch struct {
	Address uint64
	Bytes   int64
}

// leastRows of X are worth the decoding of all weights into halves.
const leastRows = 17

// split says how mul_mat_cm deals its outputs out.
type split struct {
	subgroup       int
	bm, bn, wm, wn uint32
}

// constant is the split's value of a constant of mul_mat_cm.
func (s *split) constant(name string, other uint32) uint32 {
	switch name {
	case "LANES":
		return s.bm / s.wm * (s.bn / s.wn) * uint32(s.subgroup)
	case "BM":
		return s.bm
	case "BN":
		return s.bn
	case "WM":
		return s.wm
	case "WN":
		return s.wn
	}
	return other
}

// heads is what flash_attn_cm is made for.
type heads struct {
	subgroup int
	key, val uint32
}

// headSubgroups is how many subgroups a workgroup of flash_attn_cm has; each takes 16 rows.
const headSubgroups = 4

func (h *heads) constant(name string) uint32 {
	switch name {
	case "LANES":
		return headSubgroups * uint32(h.subgroup)
	case "SUBGROUP":
		return uint32(h.subgroup)
	case "KEY":
		return h.key
	}
	return h.val
}

// splitFor chooses by the rows of X: half a tile where they would leave most of one idle.
func splitFor(subgroup int, n uint32) split {
	if n <= 64 {
		return split{subgroup, 128, 64, 64, 32}
	}
	return split{subgroup, 128, 128, 64, 64}
}

// Matrices reports whether products of many rows are computed in halves on dev, given [Recorder.Scratch].
func Matrices(dev *vk.Device) bool { return matrixSubgroup(dev) > 0 }

// matrixSubgroup is the size of the subgroups that mul_mat_cm can have on dev, 0 where it can't run.
func matrixSubgroup(dev *vk.Device) int {
	l := &dev.Physical.Limits
	if !dev.Features.CooperativeMatrix {
		return 0
	}
	for _, m := range dev.Physical.CooperativeMatrices {
		if m != (vk.CooperativeMatrix{M: 16, N: 16, K: 16}) {
			continue
		}
		size := l.Subgroup
		if dev.Features.SubgroupSizeControl && l.SubgroupMin <= 32 && l.SubgroupMax >= 32 {
			size = 32
		}
		if (size == 32 || size == 64) && int(l.MaxWorkgroupInvocations) >= 4*size && l.MaxSharedBytes >= 40<<10 {
			return size
		}
	}
	return 0
}

// tiles is what a recorder knows of its scratch: X, its scales, then two halves that weights take in turn.
type tiles struct {
	x       span // that was brought in; empty: none
	n, k, s uint32
	turn    int
}

// halves reports whether a product is computed in halves.
func (r *Recorder) halves(t gguf.Type, a *shaders.MulMatArgs) bool {
	return r.k.matrix > 0 && a.N >= leastRows && a.K >= 64 &&
		shaders.ScratchBytes(a.N, a.K, 0) <= r.Scratch.Bytes
}

// mulMatHalves decodes the weights slice by slice. The next slice is decoded while the one before is multiplied:
// they lie in different halves, so nothing orders them.
func (r *Recorder) mulMatHalves(t gguf.Type, a *shaders.MulMatArgs) error {
	x := r.Scratch.Address
	scales := x + uint64(shaders.TilesBytes(a.N, a.K))
	w := scales + uint64(shaders.ScaleBytes(a.N))
	half := (r.Scratch.Address + uint64(r.Scratch.Bytes) - w) / 2 / 256 * 256
	want := f32s(a.X, a.N, a.K, a.XStride)
	if r.tiles.x != want || r.tiles.n != a.N || r.tiles.k != a.K || r.tiles.s != a.XStride {
		if err := r.TileF16(shaders.TileF16Args{X: a.X, Dst: x, Scales: scales, N: a.N, K: a.K, XStride: a.XStride}); err != nil {
			return err
		}
		r.tiles.x, r.tiles.n, r.tiles.k, r.tiles.s = want, a.N, a.K, a.XStride
	}
	rowBytes := uint64(rowBytes(t, a.K))
	most := uint32(half/uint64(shaders.TilesBytes(shaders.TileRows, a.K))) * shaders.TileRows
	for m := uint32(0); m < a.M; {
		rows := min(most, a.M-m)
		to := w + uint64(r.tiles.turn)*half
		r.tiles.turn ^= 1
		err := r.DequantF16(t, shaders.DequantF16Args{W: a.W + uint64(m)*rowBytes, Dst: to, M: rows, K: a.K})
		if err != nil {
			return err
		}
		err = r.mulMatCM(shaders.MulMatCMArgs{W: to, X: x, Scales: scales, Dst: a.Dst + 4*uint64(m), M: rows, K: a.K, N: a.N, DstStride: a.DstStride})
		if err != nil {
			return err
		}
		m += rows
	}
	return nil
}

// TileF16 brings rows of X into tiles of halves.
func (r *Recorder) TileF16(a shaders.TileF16Args) error {
	if a.N == 0 || a.K == 0 {
		return nil
	}
	c := check{choice: choice{op: "tile_f16"}}
	c.address("X", a.X)
	c.address("Dst", a.Dst)
	c.address("Scales", a.Scales)
	c.stride("XStride", a.XStride, a.K)
	var t touch
	t.read(f32s(a.X, a.N, a.K, a.XStride))
	t.write(span{a.Dst, a.Dst + uint64(shaders.TilesBytes(a.N, a.K))})
	t.write(f32s(a.Scales, 1, a.N, 0))
	n := float64(a.N) * float64(a.K)
	return record(r, &c, shaders.TileF16, &a, a.Workgroups(), &t, cost{10 * n, n})
}

// DequantF16 decodes weights of type t into tiles of halves. W may be any multiple of 16, or of a row where the
// rows' length is.
func (r *Recorder) DequantF16(t gguf.Type, a shaders.DequantF16Args) error {
	if a.M == 0 || a.K == 0 {
		return nil
	}
	c := check{choice: choice{op: "dequant_f16", typed: true, typ: t}}
	c.that(a.W != 0 && a.W%2 == 0, "W", a.W, "a multiple of 2, not 0")
	c.address("Dst", a.Dst)
	c.blocks("K", a.K)
	bytes := float64(a.M) * rowBytes(t, a.K)
	var touched touch
	touched.read(span{a.W, a.W + uint64(bytes)})
	touched.write(span{a.Dst, a.Dst + uint64(shaders.TilesBytes(a.M, a.K))})
	find := func() (*shaders.Kernel, error) { return shaders.DequantF16(t) }
	return record(r, &c, find, &a, a.Workgroups(), &touched, cost{bytes: bytes + 2*float64(a.M)*float64(a.K)})
}

// mulMatCM multiplies what is in tiles.
func (r *Recorder) mulMatCM(a shaders.MulMatCMArgs) error {
	c := check{choice: choice{op: "mul_mat_cm", split: splitFor(r.k.matrix, a.N)}}
	if a.Dst%4 != 0 {
		c.that(false, "Dst", a.Dst, "a multiple of 4")
	}
	c.stride("DstStride", a.DstStride, a.M)
	var t touch
	t.read(span{a.W, a.W + uint64(shaders.TilesBytes(a.M, a.K))})
	t.read(span{a.X, a.X + uint64(shaders.TilesBytes(a.N, a.K))})
	t.read(f32s(a.Scales, 1, a.N, 0))
	t.write(f32s(a.Dst, a.N, a.M, a.DstStride))
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	return record(r, &c, shaders.MulMatCM, &a, a.Workgroups(c.split.bm, c.split.bn), &t, cost{bytes: 2*k*(m+n) + 4*m*n, flops: 2 * m * n * k})
}

// runs reports whether attention is computed by cooperative matrices.
func (r *Recorder) runs(t gguf.Type, a *shaders.FlashAttnArgs) bool {
	return r.k.matrix > 0 && r.Run && t == gguf.F16 && a.Rows >= leastRows && a.KeyLen%16 == 0 && a.ValLen%16 == 0 &&
		max(a.KeyLen, a.ValLen) <= shaders.MaxHeadCM && a.PagePositions%32 == 0
}

// runGroups counts the workgroups of flash_attn_cm.
func runGroups(a *shaders.FlashAttnArgs) uint64 {
	const rows = 16 * headSubgroups
	return (uint64(a.Rows) + rows - 1) / rows * uint64(a.Heads)
}
