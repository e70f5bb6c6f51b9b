package kernels

import (
	"cmp"
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Scratch is device memory that the kernels of one recorder use for intermediate values.
type Scratch struct {
	Address uint64 // device address, a multiple of 16
	Bytes   int64  // size; 0: there is no such memory
}

// CMTile are constants of a product by cooperative matrices (mul_mat_cm, mul_mat_q_cm, mul_mat_id_cm).
type CMTile struct {
	BM, BN, WM, WN uint32 // a workgroup computes BM rows of the weights times BN rows of X; each of its subgroups WM times WN of these

	BK     uint32 // columns that a workgroup multiplies at a time; 0: 64
	Stages uint32 // 2: the next BK columns are loaded while the current ones are multiplied; 1, or 0: they are loaded afterwards
	Halves bool   // quantised weights are decoded in float16 arithmetic
	Wide   bool   // quantised weights are read by fewer loads of more bytes
}

// String is BMxBNxWMxWN, then xBKxSTAGES if these are not the default, h for Halves, and w for Wide.
func (s CMTile) String() string {
	text := fmt.Sprintf("%dx%dx%dx%d", s.BM, s.BN, s.WM, s.WN)
	if s.BK != 0 || s.Stages != 0 {
		text += fmt.Sprintf("x%dx%d", cmp.Or(s.BK, tileStep), cmp.Or(s.Stages, 1))
	}
	if s.Halves {
		text += "h"
	}
	if s.Wide {
		text += "w"
	}
	return text
}

// Lanes is the number of lanes of a workgroup, for subgroups of the given size.
func (s *CMTile) Lanes(subgroup int) uint32 { return s.BM / s.WM * (s.BN / s.WN) * uint32(subgroup) }

// SharedBytes is the size of a workgroup's shared memory. It has the inputs first, and the outputs later.
func (s *CMTile) SharedBytes() int64 {
	in := (s.BM + s.BN) * (cmp.Or(s.BK, tileStep)/8 + 1) * cmp.Or(s.Stages, 1)
	out := s.Lanes(1) * 16 * (s.WM/4 + 1)
	return 16 * int64(max(in, out))
}

// tileStep is the number of columns that a BK of 0 in a [CMTile] stands for.
const tileStep = 64

// maxCMTileLanes is the most lanes of a workgroup: with more, some lanes would have no loads to make.
const maxCMTileLanes = 256

// cmTile is a [CMTile] on a device.
type cmTile struct {
	subgroup int // subgroup size
	CMTile
}

// asUint32 is 1 for true, 0 for false.
func asUint32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// constants adds the constants of s to m, none for the zero tile.
func (s *cmTile) constants(m constants) {
	if s.CMTile == (CMTile{}) {
		return
	}
	m["LANES"] = s.Lanes(s.subgroup)
	m["BM"], m["BN"], m["WM"], m["WN"] = s.BM, s.BN, s.WM, s.WN
	m.setNonzero("BK", s.BK)
	m.setNonzero("STAGES", s.Stages)
	m.setNonzero("HALVES", asUint32(s.Halves))
	m.setNonzero("WIDE", asUint32(s.Wide))
}

// leastShared is the least shared memory, in bytes, with which mul_mat_cm runs, in half tiles, and flash_attn_cm.
const leastShared = 32 << 10

// halfTile is the rows of X in half a tile.
const halfTile = shaders.TileRows / 2

// OwnCMTile is the program's own choice, used where nothing was tuned, for n rows of X. For few rows it is half a tile: they would leave most of a whole one
// idle.
func OwnCMTile(n uint32) CMTile {
	if n <= halfTile {
		return CMTile{BM: 128, BN: 64, WM: 64, WN: 32}
	}
	return CMTile{BM: 128, BN: 128, WM: 64, WN: 64}
}

// smallCMTile is for products of few outputs: in larger tiles they would make too few workgroups to keep a large device busy.
var smallCMTile = CMTile{BM: 64, BN: 64, WM: 32, WN: 32}

// cmTileFor is the tile of mul_mat_cm for m outputs of each of n rows of X: the recorder's, a tuned one or the program's own. The result's bits do
// not depend on it.
func cmTileFor(r *Recorder, m, n uint32) cmTile {
	s := r.Override.CMTile
	if s == (CMTile{}) && r.k.can.matrix >= 16 && fewTiles(m, n) {
		s = smallCMTile
	}
	if s == (CMTile{}) {
		s = r.k.tuned.Load().cmTile(n)
	}
	if s == (CMTile{}) {
		s = OwnCMTile(n)
	}
	return r.k.cmTile(s, 0)
}

// cmTile is s with the device's subgroup size; if the device lacks the shared memory for s and more bytes, it is the program's own half tile, see
// [OwnCMTile], or the small one.
func (k *Kernels) cmTile(s CMTile, more int64) cmTile {
	for _, smaller := range [...]CMTile{OwnCMTile(halfTile), smallCMTile} {
		if s.SharedBytes()+more > k.can.shared {
			s = smaller
		}
	}
	return cmTile{k.can.matrix, s}
}

// fits returns "" if the kernels can run with the tuned tile s, else what such a tile must have. The device has the given subgroup size, at most most lanes
// in a workgroup, and shared bytes of shared memory.
func (s *CMTile) fits(subgroup int, most uint32, shared int64) string {
	for _, n := range []uint32{s.BM, s.BN} {
		if n != 64 && n != 128 && n != 256 {
			return "BM and BN of 64, 128 or 256"
		}
	}
	if (s.BK != 0 && s.BK != 32 && s.BK != tileStep) || s.Stages > 2 {
		return "BK of 32 or 64 and up to 2 stages"
	}
	if (s.WM != 32 && s.WM != 64) || (s.WN != 32 && s.WN != 64) {
		return "WM and WN of 32 or 64"
	}
	if n := s.Lanes(subgroup); n < 64 || n > min(most, maxCMTileLanes) {
		return fmt.Sprintf("64 to %d lanes", min(most, maxCMTileLanes))
	}
	if s.SharedBytes() > shared {
		return fmt.Sprintf("up to %d bytes of shared memory, not %d", shared, s.SharedBytes())
	}
	return ""
}

// FitsCMTile reports whether s is not zero, and the device has cooperative matrices and the lanes and shared memory that a workgroup of s needs.
func FitsCMTile(r *Recorder, s CMTile) bool {
	return s != (CMTile{}) && r.k.can.matrix > 0 && s.Lanes(r.k.can.matrix) <= min(r.k.dev.Physical.Limits.MaxWorkgroupInvocations, maxCMTileLanes) && s.SharedBytes() <= r.k.can.shared
}

// PromptsUseMatrices reports whether a device opened with f multiplies many rows by cooperative matrices of float16, given memory in
// [Memory.Tiles].
func PromptsUseMatrices(p *vk.PhysicalDevice, f vk.Features) bool { return matrixSubgroup(p, f) > 0 }

// matrixSubgroup is the subgroup size of mul_mat_cm on a device, 0 where it can't run.
func matrixSubgroup(p *vk.PhysicalDevice, f vk.Features) int {
	l := &p.Limits
	if !f.SubgroupArithmetic || !p.Multiplies(f, vk.CooperativeMatrix{M: 16, N: 16, K: 16}) {
		return 0
	}
	size := l.Subgroup
	if f.SubgroupSizeControl && l.SubgroupMin <= 32 && l.SubgroupMax >= 32 {
		size = 32
	}
	if size < 8 || size > 64 || int(l.MaxWorkgroupInvocations) < 4*size || l.MaxSharedBytes < leastShared {
		return 0
	}
	return size
}

// tiles describes the contents of [Memory.Tiles]: X and its scales as tiles, then a ring buffer for decoded slices of weights.
type tiles struct {
	x       span             // memory of the X that the tiles were made of; empty: there are no tiles
	n, k, s uint32           // rows, columns and stride of X
	next    uint64           // offset in the ring at which the next slice is decoded
	pending []pendingProduct // products that are not recorded yet
	groups  uint64           // number of workgroups of all pending products
}

// pendingProduct is a mul_mat_cm that is not recorded yet. Products of several small matrices are held back and recorded one right after the other, so that
// the device runs them at the same time.
type pendingProduct struct {
	args   shaders.MulMatCMArgs // arguments of the kernel
	cmTile cmTile               // constants of the kernel
	touch  touch                // memory that it reads and writes
}

// enoughGroups is how many workgroups keep a large device busy.
const enoughGroups = 256

// LeastRows is the smallest number of rows into which the rows of a prompt should be split for products and attention, because the kernels for fewer rows are
// ten times slower; 0: the number does not matter.
func LeastRows(r *Recorder) uint32 {
	if r.k.can.matrix == 0 || r.Memory.Tiles.Bytes == 0 || r.k.tested.broken("mul_mat_cm") {
		return 0
	}
	return shaders.TileRows
}

// tilesProduct converts X and the weights to tiles of float16, the weights slice by slice, and multiplies them by cooperative matrices.
var tilesProduct = variant[Products]{
	Rule: Rule{
		Op: "mul_mat", Variant: shaders.CM, When: "prompts, rows of 64 values or more, memory for both sides in halves; one matrix, perhaps with a residual",
		Needs: needsMatrices, lacks: lacksMatrix, kernels: []string{"mul_mat_cm", "tile_f16", "dequant_f16"},
	},
	unfit: func(r *Recorder, p *Products) string {
		if p.GLU {
			return "gates are multiplied apart"
		}
		if why := unfitHalves(r, p); why != "" {
			return why
		}
		t := p.Type
		if !r.usable(dequantChoice(t)) ||
			!r.usable(tilesChoice(r, p.Of[0].M, p.N)) {
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, p *Products) error {
		if p.empty() {
			return nil
		}
		a := p.first()
		c := mulMatCheck(p.Type, &a)
		if c.residual(p); c.err != nil {
			return c.err
		}
		return mulMatHalves(r, p.Type, &a, p.Residual, p.ResidualStride)
	},
}

// unfitHalves says why products can't be computed by cooperative matrices of float16, "" if they can.
func unfitHalves(r *Recorder, p *Products) string {
	switch {
	case r.Rows.Role != Prompt || r.k.can.matrix == 0:
		return "rows to decode"
	case !p.single():
		return "several matrices, a bias, or a scale"
	case p.K < tileStep:
		return "rows of fewer than 64 values"
	case shaders.ScratchBytes(p.N, p.K, 0) > r.Memory.Tiles.Bytes:
		return "there is no memory for X in halves"
	case !r.usable(choice{op: "tile_f16"}):
		return failedTest
	}
	return ""
}

// dequantChoice is the pipeline that decodes weights of type t into tiles of float16.
func dequantChoice(t gguf.Type) choice { return choice{op: "dequant_f16", typed: true, typ: t} }

// tilesChoice is the pipeline of the product of X and weights that are both in tiles, n and m rows.
func tilesChoice(r *Recorder, m, n uint32) choice {
	return choice{op: "mul_mat", variant: shaders.CM, cmTile: cmTileFor(r, m, n)}
}

// mulMatHalves decodes the weights slice by slice into the ring in [Memory.Tiles] and multiplies each slice by X in tiles. The device may decode
// a slice while it multiplies the one before, because there is no barrier between the two.
//
// If residual, an address, is not 0, it adds the rows there, which are stride floats apart.
func mulMatHalves(r *Recorder, t gguf.Type, a *shaders.MulMatArgs, residual uint64, stride uint32) error {
	x, scales, err := tileX(r, a)
	if err != nil {
		return err
	}
	ring := span{scales + uint64(shaders.ScaleBytes(a.N)), r.Memory.Tiles.Address + uint64(r.Memory.Tiles.Bytes)}
	tileBytes := uint64(shaders.TilesBytes(shaders.TileRows, a.K))
	most := uint32((ring.hi-ring.lo)/2/tileBytes) * shaders.TileRows
	rowBytes := uint64(rowBytes(t, a.K))
	for m := uint32(0); m < a.M; {
		rows := min(most, a.M-m)
		bytes := uint64(shaders.TilesBytes(rows, a.K))
		if r.tiles.next+bytes > ring.hi-ring.lo {
			r.tiles.next = 0
		}
		to := ring.lo + r.tiles.next
		r.tiles.next += bytes
		if err := DequantF16(r, t, shaders.DequantF16Args{W: a.W + uint64(m)*rowBytes, Dst: to, M: rows, K: a.K}); err != nil {
			return err
		}
		part := shaders.MulMatCMArgs{W: to, X: x, Scales: scales, Dst: a.Dst + 4*uint64(m), M: rows, K: a.K, N: a.N, DstStride: a.DstStride}
		if residual != 0 {
			part.Residual, part.ResidualStride = residual+4*uint64(m), stride
		}
		if err := multiplyLater(r, part, a.M); err != nil {
			return err
		}
		m += rows
	}
	return nil
}

// MulMatTiles records the product of weights and X that are both in tiles. It may hold the product back until [Recorder.Finish], see [multiplyLater].
func MulMatTiles(r *Recorder, a shaders.MulMatCMArgs) error {
	if a.M == 0 || a.N == 0 {
		return nil
	}
	c := check{}
	c.address("W", a.W)
	c.address("X", a.X)
	c.address("Scales", a.Scales)
	c.floats("Dst", a.Dst, a.DstStride)
	c.positive("K", a.K)
	c.stride("DstStride", a.DstStride, a.M)
	if c.err != nil {
		return c.err
	}
	return multiplyLater(r, a, a.M)
}

// multiplyLater holds back a product with a slice of a matrix of m rows, see [pendingProduct]. It is recorded before an op that needs its output or
// overwrites its memory, when the pending products have enough workgroups, or by [Recorder.Finish].
func multiplyLater(r *Recorder, a shaders.MulMatCMArgs, m uint32) error {
	p := pendingProduct{args: a, cmTile: cmTileFor(r, m, a.N)}
	p.touch.read(span{a.W, a.W + uint64(shaders.TilesBytes(a.M, a.K))})
	p.touch.cmProduct(&a)
	r.tiles.pending = append(r.tiles.pending, p)
	if r.tiles.groups += a.Workgroups(p.cmTile.BM, p.cmTile.BN); r.tiles.groups < enoughGroups {
		return nil
	}
	return r.Finish()
}

// Finish records the products that [multiplyLater] holds back. Call it before the command buffer ends: they are not recorded otherwise.
func (r *Recorder) Finish() error {
	pending := r.tiles.pending
	r.tiles.pending, r.tiles.groups = nil, 0
	for i := range pending {
		if err := mulMatCM(r, &pending[i]); err != nil {
			return err
		}
	}
	r.tiles.pending = pending[:0]
	return nil
}

// recordPending records all pending products if t must run after one of them.
func (r *Recorder) recordPending(t *touch) error {
	for i := range r.tiles.pending {
		p := &r.tiles.pending[i].touch
		if anyOverlap(p.writes[:p.nw], t.reads[:t.nr]) || anyOverlap(p.writes[:p.nw], t.writes[:t.nw]) || anyOverlap(p.reads[:p.nr], t.writes[:t.nw]) {
			return r.Finish()
		}
	}
	return nil
}

// mulMatCM records a mul_mat_cm.
func mulMatCM(r *Recorder, p *pendingProduct) error {
	a := &p.args
	c := check{choice: choice{op: "mul_mat", variant: shaders.CM, cmTile: p.cmTile}}
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	return record(r, &c, a, a.Workgroups(c.cmTile.BM, c.cmTile.BN), &p.touch, cost{bytes: 2*k*(m+n) + 4*m*n, flops: 2 * m * n * k})
}
