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
	return record(r, &c, &a, a.Workgroups(), &t, cost{8 * n, 3 * n})
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
	return record(r, &c, &a, a.Workgroups(t), &touched, co)
}

// RopeAppend is [Rope] of Q and K, and [KVAppend] in a cache of type KV; with QNorm it is [RMSNorm] of each head of Q and K before.
type RopeAppend struct {
	KV gguf.Type
	shaders.RopeNormKVArgs
}

// ropeVariants are the ways to record [RopeAppend] as one, the best first.
var ropeVariants = []*variant[RopeAppend]{&normedRope, &appendedRope, &plainRope}

// AppendRoped records rope and append as one, to the bits that they give one by one, but leaves K as it is; done is false where no variant
// does.
func AppendRoped(r *Recorder, a *RopeAppend) (done bool, err error) {
	r.asked.rope = *a
	v := choose(r, ropeVariants, &r.asked.rope)
	if v == nil || v == &plainRope {
		return false, nil
	}
	return true, v.record(r, &r.asked.rope)
}

// appendedRope turns queries and keys, and writes keys and values into the cache.
var appendedRope = variant[RopeAppend]{
	Rule: Rule{Op: "rope", Variant: shaders.KV, When: "keys and values of one input, a multiple of 4 values turned", kernels: []string{"rope_kv"}},
	unfit: func(r *Recorder, a *RopeAppend) string {
		switch {
		case a.QNorm != 0:
			return "heads are normed first"
		case a.RopeDim%4 != 0:
			return "turned values are no multiple of 4"
		case !r.usable(ropeKVChoice(a.KV)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *RopeAppend) error { return RopeKV(r, a.KV, a.Unnormed()) },
}

// normedRope norms each head of queries and keys before.
var normedRope = variant[RopeAppend]{
	Rule: Rule{Op: "rope", Variant: shaders.NormKV, When: "as kv, after a norm of each head, heads of up to 256", kernels: []string{"rope_norm_kv"}},
	unfit: func(r *Recorder, a *RopeAppend) string {
		switch {
		case a.QNorm == 0:
			return "heads are not normed"
		case a.RopeDim%4 != 0 || a.KeyLen > shaders.MaxHeadNormed:
			return "heads of more than 256 values, or turned values that are no multiple of 4"
		case !r.usable(ropeNormKVChoice(a.KV, a.KeyLen)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *RopeAppend) error { return RopeNormKV(r, a.KV, a.RopeNormKVArgs) },
}

// plainRope stands for [Rope] and [KVAppend] one by one.
var plainRope = variant[RopeAppend]{Rule: Rule{Op: "rope", Variant: shaders.FP32}}

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
	co := checkRopeKV(&c, t, &a, &touched)
	return record(r, &c, &a, a.Workgroups(t), &touched, co)
}

// checkRopeKV checks the arguments of a rope into a cache of type t, notes what it reads and writes, and counts what it costs.
func checkRopeKV(c *check, t gguf.Type, a *shaders.RopeKVArgs, touched *touch) cost {
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
	kv := a.Unnormed()
	co := checkRopeKV(&c, t, &kv, &touched)
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
	return record(r, &c, &a, a.Workgroups(), &touched, co)
}

// Attention lets each row of Q attend to its sequence's positions up to its own, in a cache of type KV.
type Attention struct {
	KV gguf.Type
	shaders.FlashAttnArgs
}

// attnVariants are the ways to record [Attention], the best first.
var attnVariants = []*variant[Attention]{&matrixAttn, &joinedAttn, &splitAttn, &plainAttn}

// FlashAttn records attention by the first variant that fits.
func FlashAttn(r *Recorder, t gguf.Type, a shaders.FlashAttnArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	r.asked.attn = Attention{t, a}
	if c, _, _ := r.asked.attn.check(r); c.err != nil {
		return c.err
	}
	_, err := recordBy(r, attnVariants, &r.asked.attn)
	return err
}

// plainAttn computes a row's positions in order, in float32.
var plainAttn = variant[Attention]{
	Rule: Rule{Op: "flash_attn", Variant: shaders.FP32},
	record: func(r *Recorder, a *Attention) error {
		c, touched, co := a.check(r)
		return record(r, &c, &a.FlashAttnArgs, a.Workgroups(), &touched, co)
	},
}

// check checks attention's arguments, notes what it reads and writes, and counts what it costs.
func (a *Attention) check(r *Recorder) (c check, touched touch, co cost) {
	t := a.KV
	c = check{choice: choice{op: "flash_attn", typed: true, typ: t}}
	c.floats("Q", a.Q, a.QStride)
	c.floats("Dst", a.Dst, a.DstStride)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	c.paged(t, a.Pages, a.Pos, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	seen := a.positions(r)
	if a.Window > 0 {
		seen = min(seen, float64(a.Window))
	}
	c.softCap(a.SoftCap)
	n := float64(a.Rows) * float64(a.Heads) * seen
	co = cost{bytes: n * kvBytes(t, a.KeyLen, a.ValLen), flops: 2 * n * float64(a.KeyLen+a.ValLen)}
	touched.read(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.pageTable(a.Pages, a.Pos, a.Seq, a.Rows, a.MaxPages)
	touched.read(cacheSpan(a.LayerOff))
	if a.Sinks != 0 {
		c.address("Sinks", a.Sinks)
		touched.read(f32s(a.Sinks, 1, a.Heads, 0))
	}
	touched.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	return c, touched, co
}

// positions is the most that a row may see.
func (a *Attention) positions(r *Recorder) float64 {
	if r.Positions > 0 {
		return float64(r.Positions)
	}
	return float64(a.MaxPages) * float64(a.PagePositions)
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
