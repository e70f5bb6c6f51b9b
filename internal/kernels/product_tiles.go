package kernels

import (
	"cmp"
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// Scratch is device memory for a recorder's own use. Its address is a multiple of 16.
type Scratch struct {
	Address uint64
	Bytes   int64
}

// Split says how a product of cooperative matrices deals its outputs out: a workgroup takes BM rows of the weights times BN
// rows of X, a subgroup WM times WN of these.
type Split struct {
	BM, BN, WM, WN uint32

	BK     uint32 // columns of a step; 0: 64
	Stages uint32 // 2: a step is stored beside the one that is multiplied; 0: 1
	Halves bool   // of weights in blocks: they are decoded by arithmetic of halves
	Wide   bool   // of weights in blocks: fewer loads of more bytes
}

// String is BMxBNxWMxWN, of what is not the default xBKxSTAGES, and an h for Halves, a w for Wide.
func (s Split) String() string {
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

// Lanes is the lanes of a workgroup whose subgroups have so many.
func (s *Split) Lanes(subgroup int) uint32 { return s.BM / s.WM * (s.BN / s.WN) * uint32(subgroup) }

// SharedBytes is the shared memory of a workgroup: what it multiplies, and in the end what comes of it.
func (s *Split) SharedBytes() int64 {
	in := (s.BM + s.BN) * (cmp.Or(s.BK, tileStep)/8 + 1) * cmp.Or(s.Stages, 1)
	out := s.Lanes(1) * 16 * (s.WM/4 + 1)
	return 16 * int64(max(in, out))
}

// tileStep is the columns of a step where a split says nothing.
const tileStep = 64

// maxSplitLanes is the most lanes of a workgroup that still have a share of the loads each.
const maxSplitLanes = 256

type split struct {
	subgroup int
	Split
}

// number is 1 for true.
func number(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (s *split) constants(m constants) {
	if s.Split == (Split{}) {
		return
	}
	m["LANES"] = s.Lanes(s.subgroup)
	m["BM"], m["BN"], m["WM"], m["WN"] = s.BM, s.BN, s.WM, s.WN
	m.given("BK", s.BK)
	m.given("STAGES", s.Stages)
	m.given("HALVES", number(s.Halves))
	m.given("WIDE", number(s.Wide))
}

// leastShared is bytes of shared memory that half a tile of mul_mat_cm or flash_attn_cm can do with.
const leastShared = 32 << 10

// halfTile is as many rows of X as half a tile has.
const halfTile = shaders.TileRows / 2

// OwnSplit is what the program chooses by itself by the rows of X: half a tile where they would leave most of one idle.
func OwnSplit(n uint32) Split {
	if n <= halfTile {
		return Split{BM: 128, BN: 64, WM: 64, WN: 32}
	}
	return Split{BM: 128, BN: 128, WM: 64, WN: 64}
}

// smallSplit is for products of few outputs, which larger tiles would leave to a part of a large device.
var smallSplit = Split{BM: 64, BN: 64, WM: 32, WN: 32}

// splitFor is the split for m outputs of each of n rows of X. Who computes an output depends on it, not how: the bits stay.
func splitFor(r *Recorder, m, n uint32) split {
	s := r.Split
	if s == (Split{}) && r.k.matrix >= 16 && fewTiles(m, n) {
		s = smallSplit
	}
	if s == (Split{}) {
		s = r.k.tuned.Load().split(n)
	}
	if s == (Split{}) {
		s = OwnSplit(n)
	}
	return r.k.split(s)
}

// split is s where the device has the shared memory for it, else half a tile.
func (k *Kernels) split(s Split) split {
	if s.SharedBytes() > k.shared {
		s = OwnSplit(halfTile)
	}
	return split{k.matrix, s}
}

// fits says why a split can't be had of so many lanes and bytes of shared memory, "" where it can: a workgroup's part lies within
// a tile or is whole ones, and its lanes share the loads.
func (s *Split) fits(subgroup int, most uint32, shared int64) string {
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
	if n := s.Lanes(subgroup); n < 64 || n > min(most, maxSplitLanes) {
		return fmt.Sprintf("64 to %d lanes", min(most, maxSplitLanes))
	}
	if s.SharedBytes() > shared {
		return fmt.Sprintf("up to %d bytes of shared memory, not %d", shared, s.SharedBytes())
	}
	return ""
}

// Splits reports whether a workgroup of s has the lanes and the shared memory that the device allows, and a share of the loads
// for each lane.
func Splits(r *Recorder, s Split) bool {
	return s != (Split{}) && r.k.matrix > 0 && s.Lanes(r.k.matrix) <= min(r.k.dev.Physical.Limits.MaxWorkgroupInvocations, maxSplitLanes) && s.SharedBytes() <= r.k.shared
}

// Matrices reports whether products of many rows are computed in halves on a device opened with f, given
// [Recorder.Scratch].
func Matrices(p *vk.PhysicalDevice, f vk.Features) bool { return matrixSubgroup(p, f) > 0 }

// matrixSubgroup is the size of the subgroups that mul_mat_cm can have, 0 where it can't run.
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

// tiles is what a recorder knows of its scratch: X and its scales, then a ring that slices of weights take in turn.
type tiles struct {
	x       span // that was brought in; empty: none
	n, k, s uint32
	next    uint64 // offset in the ring
	pending []product
	groups  uint64 // of all pending
}

// product is a slice's product that is not recorded yet: so that those of several small matrices run together.
type product struct {
	args  shaders.MulMatCMArgs
	split split
	touch touch
}

// enoughGroups keep a large device busy, while the next slice is decoded beside them.
const enoughGroups = 256

// LeastRows is how many rows of a step's products and attention should stay together: fewer would go by kernels that
// are ten times as slow, whatever is expected of the device; 0: any number is as good.
func LeastRows(r *Recorder) uint32 {
	if r.k.matrix == 0 || r.Scratch.Bytes == 0 || r.k.tested.broken("mul_mat_cm") {
		return 0
	}
	return shaders.TileRows
}

// tilesProduct brings both sides into tiles of halves, the weights slice by slice, and multiplies them by cooperative matrices.
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

// unfitHalves says why products can't be computed in halves.
func unfitHalves(r *Recorder, p *Products) string {
	switch {
	case r.Role != Prompt || r.k.matrix == 0:
		return "rows to decode"
	case !p.single():
		return "several matrices, or a bias"
	case p.K < tileStep:
		return "rows of fewer than 64 values"
	case shaders.ScratchBytes(p.N, p.K, 0) > r.Scratch.Bytes:
		return "there is no memory for X in halves"
	case !r.usable(choice{op: "tile_f16"}):
		return failedTest
	}
	return ""
}

func dequantChoice(t gguf.Type) choice { return choice{op: "dequant_f16", typed: true, typ: t} }

// splitChoice is the product of n rows in tiles with m rows of weights.
func tilesChoice(r *Recorder, m, n uint32) choice {
	return choice{op: "mul_mat", variant: shaders.CM, split: splitFor(r, m, n)}
}

// mulMatHalves decodes the weights slice by slice into a ring. While a slice is multiplied the next is decoded: they
// lie in different places, so nothing orders them.
//
// What is at residual is added, with stride floats from row to row; 0: nothing is.
func mulMatHalves(r *Recorder, t gguf.Type, a *shaders.MulMatArgs, residual uint64, stride uint32) error {
	x, scales, err := bringX(r, a)
	if err != nil {
		return err
	}
	ring := span{scales + uint64(shaders.ScaleBytes(a.N)), r.Scratch.Address + uint64(r.Scratch.Bytes)}
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

// MulMatTiles is the product of weights and X that are both in tiles.
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

// later keeps a product for when its result is asked for, its place is, or there is enough to do. It may be a slice of m rows.
func multiplyLater(r *Recorder, a shaders.MulMatCMArgs, m uint32) error {
	p := product{args: a, split: splitFor(r, m, a.N)}
	p.touch.read(span{a.W, a.W + uint64(shaders.TilesBytes(a.M, a.K))})
	p.touch.product(&a)
	r.tiles.pending = append(r.tiles.pending, p)
	if r.tiles.groups += a.Workgroups(p.split.BM, p.split.BN); r.tiles.groups < enoughGroups {
		return nil
	}
	return r.Finish()
}

// Finish records what waits to be recorded together with others. It must be called before the command buffer ends.
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

// settle records what is pending where t must come after it.
func (r *Recorder) settle(t *touch) error {
	for i := range r.tiles.pending {
		p := &r.tiles.pending[i].touch
		if meet(p.writes[:p.nw], t.reads[:t.nr]) || meet(p.writes[:p.nw], t.writes[:t.nw]) || meet(p.reads[:p.nr], t.writes[:t.nw]) {
			return r.Finish()
		}
	}
	return nil
}

// mulMatCM multiplies what is in tiles.
func mulMatCM(r *Recorder, p *product) error {
	a := &p.args
	c := check{choice: choice{op: "mul_mat", variant: shaders.CM, split: p.split}}
	m, n, k := float64(a.M), float64(a.N), float64(a.K)
	return record(r, &c, a, a.Workgroups(c.split.BM, c.split.BN), &p.touch, cost{bytes: 2*k*(m+n) + 4*m*n, flops: 2 * m * n * k})
}
