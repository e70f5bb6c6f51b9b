package gpu

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// splits reports whether attention is computed with the positions side by side.
func (r *Recorder) splits(t gguf.Type, a *shaders.FlashAttnArgs) bool {
	return r.Few && r.k.few && a.Rows <= shaders.FewRows && max(a.KeyLen, a.ValLen) <= shaders.MaxHeadSplit && a.QStride%4 == 0 &&
		shaders.PartBytes(a.Rows, a.Heads, shaders.MaxParts, a.ValLen) <= r.Parts.Bytes &&
		r.usable(splitChoice(t, groupOf(a.Heads/a.HeadsKV)), func() (*shaders.Kernel, error) { return shaders.FlashAttnSplit(t) }) &&
		r.usable(joinChoice, shaders.FlashAttnJoin)
}

func splitChoice(t gguf.Type, group uint32) choice {
	return choice{op: "flash_attn", variant: shaders.Split, typed: true, typ: t, group: group}
}

var joinChoice = choice{op: "flash_attn", variant: shaders.Join}

// groupOf is how many of the query heads that share a key head a workgroup takes.
func groupOf(shared uint32) uint32 {
	for g := uint32(shaders.MaxGroup); ; g-- {
		if shared%g == 0 {
			return g
		}
	}
}

func (r *Recorder) flashAttnSplit(t gguf.Type, a *shaders.FlashAttnArgs, positions float64) error {
	group := groupOf(a.Heads / a.HeadsKV)
	err := r.FlashAttnSplit(t, group, uint64(positions), shaders.FlashAttnSplitArgs{
		Q: a.Q, Parts: r.Parts.Address, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
		LayerOff: a.LayerOff, QStride: a.QStride, MaxParts: shaders.MaxParts, Groups: a.Heads / a.HeadsKV / group,
		Scale: a.Scale, SoftCap: a.SoftCap, Window: a.Window,
	})
	if err != nil {
		return err
	}
	join := shaders.FlashAttnJoinArgs{Parts: r.Parts.Address, Pos: a.Pos, Dst: a.Dst, Sinks: a.Sinks, Window: a.Window, Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: shaders.MaxParts, DstStride: a.DstStride}
	var to *q8
	if a.ValLen%q8Block == 0 {
		to = r.q8Slot(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride, 0)
	}
	if to != nil {
		join.Q, join.S = to.q, to.sums
	}
	if err := r.FlashAttnJoin(join); err != nil {
		return err
	}
	if to != nil {
		to.there = true
	}
	return nil
}

// FlashAttnSplit lets each row of Q attend to its positions, of which no row sees more than so many, in parts. A
// workgroup takes group query heads.
func (r *Recorder) FlashAttnSplit(t gguf.Type, group uint32, positions uint64, a shaders.FlashAttnSplitArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: splitChoice(t, group)}
	c.address("Q", a.Q)
	c.address("Parts", a.Parts)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.most("the head size", max(a.KeyLen, a.ValLen), shaders.MaxHeadSplit)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.multiple("QStride", a.QStride, 4)
	c.positive("MaxParts", a.MaxParts)
	c.most("the group", group, shaders.MaxGroup)
	if group*a.Groups*a.HeadsKV != a.Heads {
		c.that(false, "the group", group, fmt.Sprintf("%d heads between %d key heads and %d workgroups each", a.Heads, a.HeadsKV, a.Groups))
	}
	c.paged(t, a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	c.softCap(a.SoftCap)
	seen := positions
	if a.Window > 0 {
		seen = min(seen, uint64(a.Window))
	}
	n := float64(a.Rows) * float64(seen)
	co := cost{bytes: n * float64(a.HeadsKV*a.Groups) * kvBytes(t, a.KeyLen, a.ValLen), flops: 2 * n * float64(a.Heads) * float64(a.KeyLen+a.ValLen)}
	var touched touch
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.read(cacheSpan(a.LayerOff))
	touched.write(span{a.Parts, a.Parts + uint64(shaders.PartBytes(a.Rows, a.Heads, a.MaxParts, a.ValLen))})
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.FlashAttnSplit(t) }, &a, a.Workgroups(positions), &touched, co)
}

// FlashAttnJoin puts the parts that FlashAttnSplit left together.
func (r *Recorder) FlashAttnJoin(a shaders.FlashAttnJoinArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: joinChoice}
	c.address("Parts", a.Parts)
	c.address("Dst", a.Dst)
	c.address("Pos", a.Pos)
	c.positive("ValLen", a.ValLen)
	c.multiple("ValLen", a.ValLen, 8)
	c.most("ValLen", a.ValLen, shaders.MaxHeadSplit)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	parts := uint64(shaders.PartBytes(a.Rows, a.Heads, a.MaxParts, a.ValLen))
	var t touch
	t.read(span{a.Parts, a.Parts + parts})
	t.read(f32s(a.Pos, 1, a.Rows, 0))
	if a.Sinks != 0 {
		c.address("Sinks", a.Sinks)
		t.read(f32s(a.Sinks, 1, a.Heads, 0))
	}
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	if a.Q != 0 {
		c.address("S", a.S)
		c.multiple("ValLen", a.ValLen, q8Block)
		t.write(q8Bytes(a.Q, a.Rows, a.Heads*a.ValLen))
		t.write(q8Scales(a.S, a.Rows, a.Heads*a.ValLen))
	}
	return record(r, &c, shaders.FlashAttnJoin, &a, a.Workgroups(), &t, cost{bytes: float64(parts), flops: float64(parts)})
}
