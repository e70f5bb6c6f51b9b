package gpu

import (
	"fmt"
	"slices"

	"leat/gguf"
	"leat/shaders"
)

// TakesTurned reports whether [Recorder.FlashAttnTurned] can be used for a cache of type t.
func (r *Recorder) TakesTurned(t gguf.Type, rope *shaders.RopeNormKVArgs, a *shaders.FlashAttnArgs) bool {
	return a.Rows == 1 && rope.RopeDim%4 == 0 && slices.Contains(shaders.KVTypesTurned, t) && r.fitsSplit(t, a) &&
		shaders.CounterBytes(a.Rows, a.Heads) <= r.Counters.Bytes && r.turns(rope, a) &&
		r.usable(r.k.splitChoice(t, a, groupOf(a.Heads/a.HeadsKV), shaders.Turned), func() (*shaders.Kernel, error) { return shaders.FlashAttnTurned(t) })
}

// FlashAttnTurned is [Recorder.RopeKV], or where rope has a QNorm [Recorder.RopeNormKV], and [Recorder.FlashAttn] of what becomes of it, in
// one and to the same bits, for one row. Q and K stay as they are. Of the arguments that both have those of a count.
func (r *Recorder) FlashAttnTurned(t gguf.Type, rope shaders.RopeNormKVArgs, a shaders.FlashAttnArgs) error {
	if a.Rows == 0 || a.Heads == 0 {
		return nil
	}
	group, positions := groupOf(a.Heads/max(1, a.HeadsKV)), r.positions(&a)
	c := check{choice: r.k.splitChoice(t, &a, group, shaders.Turned)}
	c.most("Rows", a.Rows, 1)
	to := r.attnSlot(&a)
	split := r.splitArgs(&a)
	split.Counters, split.Dst, split.Sinks = r.Counters.Address, a.Dst, a.Sinks
	if to != nil {
		split.Bytes = to.q
	}
	var touched touch
	co := c.inParts(t, group, positions, &split, &touched)
	c.joined(&split, group, &touched)
	more := c.turned(t, &rope, &a, &touched)
	args := turnedArgs(&c, &rope, &split)
	if c.err != nil {
		return c.err
	}
	co.bytes, co.flops = co.bytes+more.bytes, co.flops+more.flops
	err := record(r, &c, func() (*shaders.Kernel, error) { return shaders.FlashAttnTurned(t) }, &args, args.Workgroups(group, positions), &touched, co)
	if err == nil && to != nil {
		to.there = true
	}
	return err
}

// turns reports whether all that must be near Q is.
func (r *Recorder) turns(rope *shaders.RopeNormKVArgs, a *shaders.FlashAttnArgs) bool {
	for _, at := range [...]uint64{rope.K, rope.V, rope.CosSin, a.Pos, a.Seq, r.Counters.Address, a.Dst, r.Q8.Address, r.Q8.Address + uint64(r.Q8.Bytes)&^15} {
		if _, ok := shaders.FromQ(a.Q, at); !ok {
			return false
		}
	}
	return true
}

// turnedArgs are those of the kernel; what is not near Q is wrong.
func turnedArgs(c *check, rope *shaders.RopeNormKVArgs, a *shaders.FlashAttnSplitArgs) shaders.FlashAttnTurnedArgs {
	near := func(name string, at uint64) uint32 {
		off, ok := shaders.FromQ(a.Q, at)
		if !ok {
			c.that(false, name, at, fmt.Sprintf("a multiple of 16 within 32 GiB of Q, %d", a.Q))
		}
		return off
	}
	args := shaders.FlashAttnTurnedArgs{
		Q: a.Q, QNorm: rope.QNorm, KNorm: rope.KNorm, Parts: a.Parts, Pages: a.Pages, Sinks: a.Sinks,
		K: near("K", rope.K), V: near("V", rope.V), CosSin: near("CosSin", rope.CosSin), Pos: near("Pos", a.Pos), Seq: near("Seq", a.Seq),
		Counters: near("Counters", a.Counters), Dst: near("Dst", a.Dst),
		Heads: a.Heads, HeadsKV: a.HeadsKV, KeyLen: a.KeyLen, ValLen: a.ValLen, Turn: rope.RopeDim + rope.Neox,
		MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff, Scale: a.Scale, SoftCap: a.SoftCap, Eps: rope.Eps, Window: a.Window,
	}
	if a.Bytes != 0 {
		args.Bytes = near("Bytes", a.Bytes)
	}
	return args
}

// turned checks what attention needs to turn queries and a new key itself, notes what it reads and writes, and counts what it costs.
func (c *check) turned(t gguf.Type, rope *shaders.RopeNormKVArgs, a *shaders.FlashAttnArgs, touched *touch) cost {
	c.address("K", rope.K)
	c.address("V", rope.V)
	c.address("CosSin", rope.CosSin)
	c.multiple("RopeDim", rope.RopeDim, 4)
	c.most("RopeDim", rope.RopeDim, a.KeyLen)
	c.most("Neox", rope.Neox, 1)
	if rope.Q != a.Q {
		c.that(false, "the Q to be turned", rope.Q, fmt.Sprintf("attention's, %d", a.Q))
	}
	touched.read(f32s(rope.K, 1, a.HeadsKV*a.KeyLen, 0))
	touched.read(f32s(rope.V, 1, a.HeadsKV*a.ValLen, 0))
	touched.read(f32s(rope.CosSin, 1, rope.RopeDim, 0))
	touched.write(cacheSpan(a.LayerOff))
	if rope.QNorm != 0 {
		c.address("QNorm", rope.QNorm)
		c.address("KNorm", rope.KNorm)
		if !(rope.Eps >= 0) {
			c.that(false, "Eps", rope.Eps, "0 or more")
		}
		touched.read(f32s(rope.QNorm, 1, a.KeyLen, 0))
		touched.read(f32s(rope.KNorm, 1, a.KeyLen, 0))
	}
	q, n := float64(a.Heads)*float64(a.KeyLen), float64(a.HeadsKV)
	kv := n * float64(a.KeyLen+a.ValLen)
	return cost{bytes: 4*kv + n*kvBytes(t, a.KeyLen, a.ValLen), flops: 3 * (q + kv)}
}
