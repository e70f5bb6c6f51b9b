package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// splitAttn computes a row's positions in parts, one for each workgroup. A second kernel joins the partial results; [joinedAttn] needs only one kernel.
var splitAttn = variant[Attention]{
	Rule: Rule{
		Op: "flash_attn", Variant: shaders.Split, When: "as joined",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"flash_attn_split", "flash_attn_join"},
	},
	unfit: func(r *Recorder, a *Attention) string {
		if why := unfitParts(r, a); why != "" {
			return why
		}
		t := a.KV
		if !r.usable(r.k.splitChoice(t, &a.FlashAttnArgs, groupOf(r, &a.FlashAttnArgs), false)) ||
			!r.usable(joinChoice) {
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Attention) error { return flashAttnParts(r, a, false) },
}

// unfitParts says why attention can't split a row's positions among workgroups, "" if it can.
func unfitParts(r *Recorder, a *Attention) string {
	c := r.k.splitChoice(a.KV, &a.FlashAttnArgs, 1, false)
	switch {
	case r.Rows.Role != Decode || a.Rows > shaders.FewRows:
		return "rows of a prompt"
	case max(a.KeyLen, a.ValLen) > shaders.MaxHeadSplit || c.attn.eights() > shaders.MaxEights:
		return "heads are too large for the lanes that share them"
	case a.QStride%4 != 0:
		return "queries are not rows of whole runs of 4"
	case shaders.PartBytes(a.Rows, a.Heads, shaders.MaxParts, a.ValLen) > r.Memory.Parts.Bytes:
		return "there is no memory for parts"
	}
	return ""
}

// attn are the constants of flash_attn_split and flash_attn_joined.
type attn struct {
	group          uint32 // query heads of one KV head that a workgroup computes
	keyLen, valLen uint32 // sizes of a key head and a value head
	share          uint32 // lanes that share a position
	run            uint32 // positions that these lanes load at the same time
}

// splitChoice is the pipeline of split attention whose workgroups compute group query heads each. With joined its last workgroup joins the partial
// results.
func (k *Kernels) splitChoice(t gguf.Type, a *shaders.FlashAttnArgs, group uint32, joined bool) choice {
	c := choice{op: "flash_attn", variant: shaders.Split, typed: true, typ: t, attn: k.can.lanes.attn(group, a.KeyLen, a.ValLen, a.PagePositions)}
	if joined {
		c.variant = shaders.Joined
	}
	return c
}

// lanes describes how a device's lanes load keys and values in flash_attn_split.
type lanes struct {
	subgroup uint32 // most lanes that can share a position
	loads    uint32 // loads of 8 values that a lane should have under way at the same time
}

// lanesOf describes the lanes of a device.
func lanesOf(p *vk.PhysicalDevice) lanes {
	if p.Type == vk.CPU {
		return lanes{uint32(p.Limits.Subgroup), 1} // a CPU gains nothing by more loads under way, and its driver compiles them slowly
	}
	return lanes{uint32(p.Limits.Subgroup), 8}
}

// attn chooses the constants for heads of these sizes and pages of page positions. share is the smallest power of 2, from 4 on, with which a lane has at
// most 8 values of the smaller head and 16 of the larger one, if subgroups are that large. run is the most positions that the lanes can load at the same
// time and that divide a page.
func (l lanes) attn(group, key, val, page uint32) attn {
	a := attn{group: group, keyLen: key, valLen: val, share: 4, run: 1}
	for a.share < min(32, l.subgroup) && a.share*8 < max(min(key, val), max(key, val)/2) {
		a.share *= 2
	}
	most := min(l.loads/max(1, a.eights()), shaders.PartPositions*a.share/shaders.SplitLanes)
	for 2*a.run <= most && page%(2*a.run) == 0 {
		a.run *= 2
	}
	return a
}

// eights is the largest number of runs of 8 values of a key or a value that a lane has.
func (a *attn) eights() uint32 { return (max(a.keyLen, a.valLen) + 8*a.share - 1) / (8 * a.share) }

// constants adds the constants of a that are not 0 to m.
func (a *attn) constants(m constants) {
	m.setNonzero("GROUP", a.group)
	m.setNonzero("KEY", a.keyLen)
	m.setNonzero("VAL", a.valLen)
	m.setNonzero("SHARE", a.share)
	m.setNonzero("RUN", a.run)
}

// joinChoice is the pipeline of flash_attn_join.
var joinChoice = choice{op: "flash_attn", variant: shaders.Join}

// Query heads of a workgroup on a GPU. A workgroup with several heads reads keys and values once for all, but computes the heads one after another.
// For few positions that is slower: the device's cache still has the keys and values that other workgroups read. Larger groups have too much code.
const (
	shortPositions = 1024 // positions that a row sees up to which shortGroup is used
	shortGroup     = 1    // heads of a workgroup for few positions
	longGroup      = 2    // heads of a workgroup for more positions
)

// groupOf is how many query heads of one KV head a workgroup computes. The result does not depend on it.
func groupOf(r *Recorder, a *shaders.FlashAttnArgs) uint32 {
	few := r.Rows.Positions > 0 && seen(r, a.MaxPages, a.PagePositions) <= shortPositions // unknown: it may be many
	g := uint32(longGroup)
	switch {
	case r.k.dev.Physical.Type == vk.CPU:
		g = shaders.MaxGroup
	case few:
		g = shortGroup
	}
	for shared := a.Heads / a.HeadsKV; shared%g != 0; g-- {
	}
	return g
}

// flashAttnParts records split attention. With alone it is one kernel, whose last workgroup joins the partial results; without, a second kernel joins them.
func flashAttnParts(r *Recorder, at *Attention, alone bool) error {
	t, a := at.KV, &at.FlashAttnArgs
	group := groupOf(r, a)
	var to *q8
	if a.ValLen%q8Block == 0 {
		to = r.q8Slot(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride, 0)
	}
	split := shaders.FlashAttnSplitArgs{
		Q: a.Q, Parts: r.Memory.Parts.Address, Pages: a.Pages, Seen: a.Seen, Seq: a.Seq,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, MaxPages: a.MaxPages, PagePositions: a.PagePositions,
		LayerOff: a.LayerOff, QStride: a.QStride, DstStride: a.DstStride, MaxParts: shaders.MaxParts,
		Scale: a.Scale, SoftCap: a.SoftCap,
	}
	if a.Slopes != 0 {
		split.PerHead, split.Slopes = a.Slopes, 1
	}
	join := shaders.FlashAttnJoinArgs{Parts: split.Parts, Seen: a.Seen, Dst: a.Dst, Sinks: a.Sinks, Rows: a.Rows, Heads: a.Heads, ValLen: a.ValLen, MaxParts: shaders.MaxParts, DstStride: a.DstStride}
	if to != nil {
		join.Q, join.S = to.q, to.sums
	}
	if alone {
		split.Counters, split.Dst, split.Bytes = r.Memory.Counters.Address, join.Dst, join.Q
		if a.Sinks != 0 {
			split.PerHead = a.Sinks
		}
	}
	err := FlashAttnSplit(r, t, group, split)
	if err == nil && !alone {
		err = FlashAttnJoin(r, join)
	}
	if err == nil && to != nil {
		to.valid = true
	}
	return err
}

// FlashAttnSplit computes partial results of attention, which [FlashAttnJoin] joins. If a.Counters is not 0, its own last workgroup joins them. A
// workgroup computes group query heads.
func FlashAttnSplit(r *Recorder, t gguf.Type, group uint32, a shaders.FlashAttnSplitArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: r.k.splitChoice(t, &shaders.FlashAttnArgs{KeyLen: a.KeyLen, ValLen: a.ValLen, PagePositions: a.PagePositions}, group, a.Counters != 0)}
	c.address("Q", a.Q)
	c.address("Parts", a.Parts)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.atMost("the head size", max(a.KeyLen, a.ValLen), shaders.MaxHeadSplit)
	if n := c.choice.attn.eights(); n > shaders.MaxEights {
		c.require(false, "the head size", max(a.KeyLen, a.ValLen), fmt.Sprintf("at most %d of each lane of a subgroup", 8*shaders.MaxEights))
	}
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.multiple("QStride", a.QStride, 4)
	c.parts(a.MaxParts)
	c.atMost("the group", group, shaders.MaxGroup)
	if shared := a.Heads / max(1, a.HeadsKV); group == 0 || shared%group != 0 {
		c.require(false, "the group", group, fmt.Sprintf("a divisor of the %d heads that share a key head", shared))
	}
	c.paged(t, a.Pages, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.words("Seen", a.Seen)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	c.softCap(a.SoftCap)
	n := float64(a.Rows) * float64(seen(r, a.MaxPages, a.PagePositions))
	co := cost{bytes: n * float64(a.Heads/max(1, group)) * kvBytes(t, a.KeyLen, a.ValLen), flops: 2 * n * float64(a.Heads) * float64(a.KeyLen+a.ValLen)}
	var touched touch
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Seq, a.Rows, a.MaxPages)
	touched.read(seenBy(a.Seen, a.Rows))
	if a.PerHead != 0 {
		c.address("PerHead", a.PerHead)
		touched.read(f32s(a.PerHead, 1, a.Heads, 0))
	}
	touched.read(cacheSpan(a.LayerOff))
	touched.write(span{a.Parts, a.Parts + uint64(shaders.PartBytes(a.Rows, a.Heads, a.MaxParts, a.ValLen))})
	joined := a.Counters != 0
	if joined {
		checkJoined(&c, &a, group, &touched)
	}
	if c.err != nil {
		return c.err
	}
	return record(r, &c, &a, a.Workgroups(group, inParts(r, a.MaxPages, a.PagePositions)), &touched, co)
}

// inParts is an upper bound of the positions that the parts of a row have together. Where rows don't see all positions from 0 on, the first part begins before
// the first position that the row sees.
func inParts(r *Recorder, maxPages, pagePositions uint32) uint64 {
	n := held(r, maxPages, pagePositions)
	if w := uint64(r.Rows.Window); w > 0 {
		n = min(n, w+shaders.PartPositions-1)
	}
	return n
}

// parts checks MaxParts, the largest number of parts of a row in split attention.
func (c *check) parts(most uint32) {
	c.positive("MaxParts", most)
	c.atMost("MaxParts", most, shaders.MaxParts)
}

// FlashAttnJoin joins the partial results of [FlashAttnSplit].
func FlashAttnJoin(r *Recorder, a shaders.FlashAttnJoinArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: joinChoice}
	c.address("Parts", a.Parts)
	c.address("Dst", a.Dst)
	c.words("Seen", a.Seen)
	c.positive("ValLen", a.ValLen)
	c.parts(a.MaxParts)
	c.multiple("ValLen", a.ValLen, 8)
	c.atMost("ValLen", a.ValLen, shaders.MaxHeadSplit)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	parts := uint64(shaders.PartBytes(a.Rows, a.Heads, a.MaxParts, a.ValLen))
	var t touch
	t.read(span{a.Parts, a.Parts + parts})
	t.read(seenBy(a.Seen, a.Rows))
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
	return record(r, &c, &a, a.Workgroups(), &t, cost{bytes: float64(parts), flops: float64(parts)})
}
