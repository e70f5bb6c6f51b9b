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
		c.require(false, "RopeDim", a.RopeDim, fmt.Sprintf("at most HeadDim, %d", a.HeadDim))
	}
	c.stride("XStride", a.XStride, a.Heads*a.HeadDim)
	if a.Neox > 1 {
		c.require(false, "Neox", a.Neox, "0 or 1")
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
	c.paged(t, a.Pages, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.words("Pos", a.Pos)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	n := float64(a.Rows) * float64(a.HeadsKV)
	co := cost{bytes: n * (4*float64(a.KeyLen+a.ValLen) + kvBytes(t, a.KeyLen, a.ValLen))}
	var touched touch
	touched.read(f32s(a.K, a.Rows, a.HeadsKV*a.KeyLen, a.KStride))
	touched.read(f32s(a.V, a.Rows, a.HeadsKV*a.ValLen, a.VStride))
	touched.pageTable(a.Pages, a.Seq, a.Rows, a.MaxPages)
	touched.read(f32s(a.Pos, 1, a.Rows, 0))
	touched.write(cacheSpan(a.LayerOff))
	return record(r, &c, &a, a.Workgroups(t), &touched, co)
}

// RopeAppend is [Rope] of Q and K, then [KVAppend]. With QNorm, [RMSNorm] of each head of Q and K comes first.
type RopeAppend struct {
	KV gguf.Type // type of the KV cache
	shaders.RopeNormKVArgs
}

// ropeVariants are the ways to record [RopeAppend] as one, the best first.
var ropeVariants = []*variant[RopeAppend]{&normedRope, &appendedRope, &plainRope}

// AppendRoped records RoPE of Q and K and the writes to the KV cache as one dispatch, with the same bits as separate ones. The rotated K is written only to the
// cache. done is false, and nothing is recorded, if no variant fits.
func AppendRoped(r *Recorder, a *RopeAppend) (done bool, err error) {
	r.args.rope = *a
	v := choose(r, ropeVariants, &r.args.rope)
	if v == nil || v == &plainRope {
		return false, nil
	}
	return true, v.record(r, &r.args.rope)
}

// plainRope stands for separate dispatches of [Rope] and [KVAppend]. The caller of [AppendRoped] records them.
var plainRope = variant[RopeAppend]{Rule: Rule{Op: "rope", Variant: shaders.FP32}}

// checkRopeKV checks the arguments of a RoPE into a KV cache of type t, adds the memory that it reads and writes to touched, and returns its cost.
func checkRopeKV(c *check, t gguf.Type, a *shaders.RopeKVArgs, touched *touch) cost {
	c.address("Q", a.Q)
	c.address("K", a.K)
	c.address("V", a.V)
	c.address("CosSin", a.CosSin)
	c.multiple("RopeDim", a.RopeDim, 4)
	c.atMost("RopeDim", a.RopeDim, a.KeyLen)
	c.atMost("Neox", a.Neox, 1)
	c.heads(a.Heads, a.HeadsKV, a.KeyLen, a.ValLen)
	c.stride("QStride", a.QStride, a.Heads*a.KeyLen)
	c.stride("KStride", a.KStride, a.HeadsKV*a.KeyLen)
	c.stride("VStride", a.VStride, a.HeadsKV*a.ValLen)
	c.paged(t, a.Pages, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
	c.words("Pos", a.Pos)
	c.blocksOf(t, a.KeyLen, a.ValLen)
	q, n := float64(a.Rows)*float64(a.Heads)*float64(a.KeyLen), float64(a.Rows)*float64(a.HeadsKV)
	kv := n * float64(a.KeyLen+a.ValLen)
	touched.read(f32s(a.K, a.Rows, a.HeadsKV*a.KeyLen, a.KStride))
	touched.read(f32s(a.V, a.Rows, a.HeadsKV*a.ValLen, a.VStride))
	touched.read(f32s(a.CosSin, a.Rows, a.RopeDim, a.RopeDim))
	touched.pageTable(a.Pages, a.Seq, a.Rows, a.MaxPages)
	touched.read(f32s(a.Pos, 1, a.Rows, 0))
	touched.write(f32s(a.Q, a.Rows, a.Heads*a.KeyLen, a.QStride))
	touched.write(cacheSpan(a.LayerOff))
	return cost{bytes: 8*q + 4*kv + n*kvBytes(t, a.KeyLen, a.ValLen), flops: 3 * (q + kv)}
}
