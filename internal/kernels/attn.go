package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
)

// Rope rotates pairs of X (Rows, Heads, HeadDim) in place by the angles of CosSin.
func Rope(r *Recorder, a shaders.RopeArgs) error {
	if a.Rows == 0 || a.Heads == 0 || a.RopeDim == 0 {
		return nil
	}
	c := check{choice: choice{op: "rope"}}
	c.words("X", a.X)
	c.words("CosSin", a.CosSin)
	c.multiple("RopeDim", a.RopeDim, 2)
	if a.RopeDim > a.HeadDim {
		c.that(false, "RopeDim", a.RopeDim, fmt.Sprintf("at most HeadDim, %d", a.HeadDim))
	}
	c.stride("XStride", a.XStride, a.Heads*a.HeadDim)
	if a.Neox > 1 {
		c.that(false, "Neox", a.Neox, "0 or 1")
	}
	n := float64(a.Rows) * float64(a.Heads) * float64(a.RopeDim)
	var t touch
	t.read(f32s(a.CosSin, a.Rows, a.RopeDim, a.RopeDim))
	t.write(f32s(a.X, a.Rows, a.Heads*a.HeadDim, a.XStride))
	return record(r, &c, shaders.Rope, &a, a.Workgroups(), &t, cost{8 * n, 3 * n})
}

// KVAppend stores rows of K and V into the pages of a cache of type t, one of [shaders.KVTypes].
func KVAppend(r *Recorder, t gguf.Type, a shaders.KVAppendArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: choice{op: "kv_append", typed: true, typ: t}}
	c.floats("K", a.K, a.KStride)
	c.floats("V", a.V, a.VStride)
	c.heads(a.HeadsKV, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("KStride", a.KStride, a.HeadsKV*a.KeyLen)
	c.stride("VStride", a.VStride, a.HeadsKV*a.ValLen)
	c.paged(t, a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	n := float64(a.Rows) * float64(a.HeadsKV)
	co := cost{bytes: n * (4*float64(a.KeyLen+a.ValLen) + kvBytes(t, a.KeyLen, a.ValLen))}
	var touched touch
	touched.read(f32s(a.K, a.Rows, a.HeadsKV*a.KeyLen, a.KStride))
	touched.read(f32s(a.V, a.Rows, a.HeadsKV*a.ValLen, a.VStride))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.write(cacheSpan(a.LayerOff))
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.KVAppend(t) }, &a, a.Workgroups(t), &touched, co)
}

// TakesRopeKV reports whether [RopeKV] can be used for a cache of type t.
func TakesRopeKV(r *Recorder, t gguf.Type) bool {
	return r.usable(ropeKVChoice(t), func() (*shaders.Kernel, error) { return shaders.RopeKV(t) })
}

func ropeKVChoice(t gguf.Type) choice {
	return choice{op: "rope", variant: shaders.KV, typed: true, typ: t}
}

// RopeKV is [Rope] of Q and K and [KVAppend] in one, to the same bits, but leaves K as it is.
func RopeKV(r *Recorder, t gguf.Type, a shaders.RopeKVArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: ropeKVChoice(t)}
	var touched touch
	co := c.ropeKV(t, &a, &touched)
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.RopeKV(t) }, &a, a.Workgroups(t), &touched, co)
}

// ropeKV checks the arguments of a rope into a cache of type t, notes what it reads and writes, and counts what it costs.
func (c *check) ropeKV(t gguf.Type, a *shaders.RopeKVArgs, touched *touch) cost {
	c.address("Q", a.Q)
	c.address("K", a.K)
	c.address("V", a.V)
	c.address("CosSin", a.CosSin)
	c.multiple("RopeDim", a.RopeDim, 4)
	c.most("RopeDim", a.RopeDim, a.KeyLen)
	c.most("Neox", a.Neox, 1)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.stride("KStride", a.KStride, a.HeadsKV*a.KeyLen)
	c.stride("VStride", a.VStride, a.HeadsKV*a.ValLen)
	c.paged(t, a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	q, n := float64(a.Rows)*float64(a.Heads)*float64(a.KeyLen), float64(a.Rows)*float64(a.HeadsKV)
	kv := n * float64(a.KeyLen+a.ValLen)
	touched.read(f32s(a.K, a.Rows, a.HeadsKV*a.KeyLen, a.KStride))
	touched.read(f32s(a.V, a.Rows, a.HeadsKV*a.ValLen, a.VStride))
	touched.read(f32s(a.CosSin, a.Rows, a.RopeDim, a.RopeDim))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.write(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.write(cacheSpan(a.LayerOff))
	return cost{bytes: 8*q + 4*kv + n*kvBytes(t, a.KeyLen, a.ValLen), flops: 3 * (q + kv)}
}

// TakesRopeNormKV reports whether [RopeNormKV] can be used for a cache of type t and keys of such heads.
func TakesRopeNormKV(r *Recorder, t gguf.Type, keyLen uint32) bool {
	return keyLen <= shaders.MaxHeadNormed && r.usable(ropeNormKVChoice(t, keyLen), func() (*shaders.Kernel, error) { return shaders.RopeNormKV(t) })
}

func ropeNormKVChoice(t gguf.Type, keyLen uint32) choice {
	a := shaders.RopeNormKVArgs{KeyLen: keyLen}
	return choice{op: "rope", variant: shaders.NormKV, typed: true, typ: t, rowLanes: a.RowLanes()}
}

// RopeNormKV is [RMSNorm] of each head of Q and K, then [RopeKV], in one, to the same bits, but leaves K as it is.
func RopeNormKV(r *Recorder, t gguf.Type, a shaders.RopeNormKVArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: ropeNormKVChoice(t, a.KeyLen)}
	var touched touch
	co := c.ropeKV(t, &shaders.RopeKVArgs{
		Q: a.Q, K: a.K, V: a.V, CosSin: a.CosSin, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
		Rows: a.Rows, Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, RopeDim: a.RopeDim,
		MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff, QStride: a.QStride, KStride: a.KStride, VStride: a.VStride, Neox: a.Neox,
	}, &touched)
	c.address("QNorm", a.QNorm)
	c.address("KNorm", a.KNorm)
	c.most("KeyLen", a.KeyLen, shaders.MaxHeadNormed)
	c.multiple("QStride", a.QStride, 4)
	c.multiple("KStride", a.KStride, 4)
	c.multiple("VStride", a.VStride, 4)
	if !(a.Eps >= 0) {
		c.that(false, "Eps", a.Eps, "0 or more")
	}
	touched.read(f32s(a.QNorm, 1, a.KeyLen, 0))
	touched.read(f32s(a.KNorm, 1, a.KeyLen, 0))
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.RopeNormKV(t) }, &a, a.Workgroups(), &touched, co)
}

// FlashAttn lets each row of Q attend to its sequence's positions up to its own, in a cache of type t. Many rows of one
// sequence go by cooperative matrices where the device has them, see [Recorder.Run]; few rows with their positions side by
// side, see [Recorder.Parts], and their output is brought into bytes on the way where there is room.
func FlashAttn(r *Recorder, t gguf.Type, a shaders.FlashAttnArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	c := check{choice: choice{op: "flash_attn", typed: true, typ: t}}
	c.floats("Q", a.Q, a.QStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	c.paged(t, a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	positions := float64(r.Positions)
	if positions == 0 {
		positions = float64(a.MaxPages) * float64(a.PagePositions)
	}
	seen := positions
	if a.Window > 0 {
		seen = min(seen, float64(a.Window))
	}
	c.softCap(a.SoftCap)
	n := float64(a.Rows) * float64(a.Heads) * seen
	co := cost{bytes: n * kvBytes(t, a.KeyLen, a.ValLen), flops: 2 * n * float64(a.KeyLen+a.ValLen)}
	var touched touch
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.read(cacheSpan(a.LayerOff))
	if a.Sinks != 0 {
		c.address("Sinks", a.Sinks)
		touched.read(f32s(a.Sinks, 1, a.Heads, 0))
	}
	touched.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	if c.err == nil && attnRuns(r, t, &a) {
		c.choice = runChoice(r, t, &a)
		return record(r, &c, func() (*shaders.Kernel, error) { return shaders.FlashAttnCM(t) }, &a, c.choice.heads.groups(&a), &touched, co)
	}
	if c.err == nil && attnSplits(r, t, &a) {
		return flashAttnSplit(r, t, &a, positions)
	}
	return record(r, &c, func() (*shaders.Kernel, error) { return shaders.FlashAttn(t) }, &a, a.Workgroups(), &touched, co)
}

// pageTable adds what says where a row's positions are; of Pages at least one sequence's.
func (t *touch) pageTable(pages, pos, seq uint64, rows, maxPages uint32) {
	t.read(span{pages, pages + 8*uint64(maxPages)})
	t.read(f32s(pos, 1, rows, 0))
	t.read(f32s(seq, 1, rows, 0))
}

// kvBytes is what a cache of type t holds of one head at one position.
func kvBytes(t gguf.Type, keyLen, valLen uint32) float64 {
	return float64(shaders.KVRowBytes(t, int(keyLen)) + shaders.KVRowBytes(t, int(valLen)))
}

func (c *check) softCap(v float32) {
	if !(v >= 0) {
		c.that(false, "SoftCap", v, "0 (none) or more")
	}
}

// blocksOf checks that a cache of blocks can hold such heads.
func (c *check) blocksOf(t gguf.Type, keyLen, valLen uint32) {
	if err := shaders.CheckKV(t, int(keyLen), int(valLen)); err != nil && c.err == nil {
		c.err = err
	}
}

// paged checks what the ops on a paged cache of type t share.
func (c *check) paged(t gguf.Type, pages, pos, seq uint64, maxPages, pagePositions, layerOff uint32) {
	c.address("Pages", pages)
	c.words("Pos", pos)
	c.words("Seq", seq)
	c.positive("MaxPages", maxPages)
	c.positive("PagePositions", pagePositions)
	if shaders.KVQuantised(t) {
		c.multiple("PagePositions", pagePositions, shaders.KVPage)
	}
	c.multiple("LayerOff", layerOff, 16)
}

func (c *check) heads(heads, headsKV, keyLen, valLen uint32) {
	c.positive("HeadsKV", headsKV)
	if headsKV > 0 && heads%headsKV != 0 {
		c.that(false, "Heads", heads, fmt.Sprintf("a multiple of HeadsKV, %d", headsKV))
	}
	c.positive("KeyLen", keyLen)
	c.multiple("KeyLen", keyLen, 8)
	c.positive("ValLen", valLen)
	c.multiple("ValLen", valLen, 8)
	c.most("KeyLen", keyLen, shaders.MaxKey)
	c.most("ValLen", valLen, shaders.MaxHead)
}
