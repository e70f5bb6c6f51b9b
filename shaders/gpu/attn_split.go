package gpu

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// splits reports whether attention is computed with the positions side by side.
func (r *Recorder) splits(a *shaders.FlashAttnArgs) bool {
	return r.Few && r.k.few && a.Rows <= shaders.FewRows && max(a.KeyLen, a.ValLen) <= shaders.MaxHeadSplit && a.QStride%4 == 0 &&
		shaders.PartBytes(a.Rows, a.Heads, shaders.MaxParts, a.ValLen) <= r.Parts.Bytes
}

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
	var to *q8
	if a.ValLen%q8Block == 0 {
		to = r.q8Slot(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride, 0)
	}
	split := shaders.FlashAttnSplitArgs{
		Q: a.Q, Parts: r.Parts.Address, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
		LayerOff: a.LayerOff, QStride: a.QStride, DstStride: a.DstStride, MaxParts: shaders.MaxParts, Groups: a.Heads / a.HeadsKV / group, Scale: a.Scale,
	}
	join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Pos: a.Pos, Dst: a.Dst, Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: shaders.MaxParts, DstStride: a.DstStride}
	if to != nil {
		join.Q, join.S = to.q, to.sums
	}
	alone := shaders.CounterBytes(a.Rows, a.Heads) <= r.Counters.Bytes
	if alone {
		split.Counters, split.Dst, split.Bytes = r.Counters.Address, join.Dst, join.Q
	}
	err := r.FlashAttnSplit(t, group, uint64(positions), split)
	if err == nil && !alone {
		err = r.FlashAttnJoin(join)
	}
	if err == nil && to != nil {
		to.there = true
	}
	return err
}

// FlashAttnSplit lets each row of Q attend to its positions, of which no row sees more than so many, in parts. A
// workgroup takes group query heads.
func (r *Recorder) FlashAttnSplit(t gguf.Type, group uint32, positions uint64, a shaders.FlashAttnSplitArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "flash_attn", variant: shaders.Split, typed: true, typ: t, group: group}}
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
	c.paged(a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	n := float64(a.Rows) * float64(positions) * float64(a.KeyLen+a.ValLen)
	co := cost{bytes: n * float64(a.HeadsKV*a.Groups) * float64(t.BlockBytes()), flops: 2 * n * float64(a.Heads)}
	var touched touch
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.read(cacheSpan(a.LayerOff))
	touched.write(span{a.Parts, a.Parts + uint64(shaders.PartBytes(a.Rows, a.Heads, a.MaxParts, a.ValLen))})
	if a.Counters != 0 {
		c.joined(&a, &touched)
	}
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.FlashAttnSplit(t) }, &a, a.Workgroups(positions), &touched, co)
}

// joined checks what a kernel that joins its parts needs besides, and notes what it writes.
func (c *check) joined(a *shaders.FlashAttnSplitArgs, t *touch) {
	c.address("Counters", a.Counters)
	c.address("Dst", a.Dst)
	c.positive("ValLen", a.ValLen)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	t.write(span{a.Counters, a.Counters + uint64(shaders.CounterBytes(a.Rows, a.HeadsKV*a.Groups))})
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	if a.Bytes != 0 {
		c.address("Bytes", a.Bytes)
		c.multiple("ValLen", a.ValLen, q8Block)
		t.write(q8Bytes(a.Bytes, a.Rows, a.Heads*a.ValLen))
		t.write(q8Scales(shaders.Q8Sums(a.Bytes, a.Rows, a.Heads*a.ValLen), a.Rows, a.Heads*a.ValLen))
	}
}

// FlashAttnJoin puts the parts that FlashAttnSplit left together.
func (r *Recorder) FlashAttnJoin(a shaders.FlashAttnJoinArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "flash_attn", variant: shaders.Join}}
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
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	if a.Q != 0 {
		c.address("S", a.S)
		c.multiple("ValLen", a.ValLen, q8Block)
		t.write(q8Bytes(a.Q, a.Rows, a.Heads*a.ValLen))
		t.write(q8Scales(a.S, a.Rows, a.Heads*a.ValLen))
	}
	return record(r, &c, shaders.FlashAttnJoin, &a, a.Workgroups(), &t, cost{bytes: float64(parts), flops: float64(parts)})
}
