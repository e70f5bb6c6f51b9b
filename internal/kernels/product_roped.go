package kernels

import (
	"fmt"

	"leat/gguf"
	"leat/shaders"
	"leat/vk"
)

// RopeConstants are the specialisation constants of mul_mat_vec_rope, which multiplies and then rotates queries and keys by RoPE.
type RopeConstants struct {
	KeyLen, ValLen uint32 // sizes of a key head and a value head
	RopeDim        uint32 // values of a key head that RoPE rotates: the RoPE dimension
	Neox           bool   // RoPE pairs value i with i + RopeDim/2, not with i + 1
	CacheF32       bool   // the KV cache is F32, not F16
}

// constants adds the constants of t to m.
func (t *RopeConstants) constants(m constants) {
	if *t != (RopeConstants{}) {
		m["KEY"], m["VAL"], m["TURNS"], m["NEOX"], m["FLOATS"] = t.KeyLen, t.ValLen, t.RopeDim, asUint32(t.Neox), asUint32(t.CacheF32)
	}
}

// fusesRope reports whether mul_mat_vec_rope is worth using on a device: on a CPU separate kernels are faster. forced overrides that, for tests.
func fusesRope(p *vk.PhysicalDevice, forced bool) bool { return forced || p.Type != vk.CPU }

// lacksFusedRope says what the device lacks for mul_mat_vec_rope, "" if nothing.
func lacksFusedRope(k *Kernels) string {
	if lacks := lacksBytes(k); lacks != "" || k.can.fusesRope {
		return lacks
	}
	return "workgroups that run side by side"
}

// ropedTile fills in the zero fields of t for mul_mat_vec_rope. outputs is the number of rows of Q, K and V together, cols the length of a row. A workgroup
// computes a multiple of 4 outputs. Team and Unroll, which set the order of a sum, depend only on the type and cols. Rows is larger, for more
// loads under way in a lane, if there are enough lanes for the whole device.
func (k *Kernels) ropedTile(t Tile, of gguf.Type, outputs, cols uint32) Tile {
	const wanted = 1 << 16 // lanes
	chunks, parts := cols/shaders.Chunk(shaders.Turned, of), loads64(shaders.Turned, of)
	most, cpu := k.dev.Physical.Limits.MaxWorkgroupInvocations, k.dev.Physical.Type == vk.CPU
	var own Tile
	switch {
	case cpu && parts:
		own.Team = minTeam64
	case parts:
		own = tile64(of, shaders.GLUFloats, 0, chunks) // whatever the outputs
	case !cpu && chunks >= 128:
		own.Team, own.Unroll = 64, 2
	}
	t = t.or(own)
	own = k.tile(t, of, shaders.NoGLU, outputs, chunks)
	t.Team, t.Unroll = own.Team, own.Unroll
	if t.Rows == 0 {
		for t.Rows = min(4, max(1, 4*t.Team/shaders.FewRows)); t.Rows > 1 && !cpu && outputs/t.Rows*t.Team < wanted && 8/t.Rows*t.Team <= most; {
			t.Rows /= 2
		}
	}
	if t.Lanes == 0 {
		t.Lanes = max(own.Lanes, t.Team)
		for t.Lanes < maxTileLanes && t.Rows*(t.Lanes/t.Team)%4 != 0 {
			t.Lanes *= 2
		}
	}
	return t
}

// ropedChoice is the pipeline of mul_mat_vec_rope for n rows of k values and weights of type t; outputs counts the rows of Q, K and V together.
func ropedChoice(r *Recorder, t gguf.Type, of RopeConstants, n, outputs, k uint32) choice {
	return choice{op: "mul_mat_vec", variant: shaders.Turned, typed: true, typ: t, cols: vecCols(min(n, shaders.FewRows)), rope: of, tile: r.k.ropedTile(r.Override.Tile, t, outputs, k)}
}

// ropeConstantsOf returns the constants of mul_mat_vec_rope for RoPE arguments and a KV cache of type kv.
func ropeConstantsOf(kv gguf.Type, a *shaders.RopeKVArgs) RopeConstants {
	return RopeConstants{KeyLen: a.KeyLen, ValLen: a.ValLen, RopeDim: a.RopeDim, Neox: a.Neox != 0, CacheF32: kv == gguf.F32}
}

// RopedProducts are the products of Q, K and V, in this order, then [RopeKV] of their outputs. A matrix with M 0 is left out, with its output. The rotated Q
// is stored at Rope.Q; K and V are stored only in the cache.
type RopedProducts struct {
	Products
	KV   gguf.Type          // type of the KV cache
	Rope shaders.RopeKVArgs // arguments of RopeKV, for Q, K and V that the products compute
}

// ropedVariants are the ways to record [RopedProducts] as one.
var ropedVariants = []*variant[RopedProducts]{&ropedProduct}

// MultiplyRoped records the products of Q, K and V, RoPE and the writes to the KV cache as one; done is false, and nothing is recorded, if no
// variant does that.
func MultiplyRoped(r *Recorder, p *RopedProducts) (done bool, err error) {
	r.args.roped = *p
	return recordBy(r, ropedVariants, &r.args.roped)
}

// FitsRoped reports whether [MultiplyRoped] would record p as one; it records nothing.
func FitsRoped(r *Recorder, p *RopedProducts) bool {
	r.args.roped = *p
	return choose(r, ropedVariants, &r.args.roped) != nil
}

// ropedProduct is like [int8Product], but its kernel also rotates queries and keys by RoPE, and writes keys and values to the KV cache.
var ropedProduct = variant[RopedProducts]{
	Rule: Rule{
		Op: "mul_mat_vec", Variant: shaders.Turned,
		When:  "decode, up to 8 rows: queries, keys and values that turn, a multiple of 4 values, into a cache of F16 or F32; weights as int8, but not IQ1, IQ2 and IQ3",
		Needs: needsBytes + "; no CPU", lacks: lacksFusedRope, kernels: []string{"mul_mat_vec_rope", "quantize_q8"},
	},
	unfit:  unfitRoped,
	record: recordRoped,
}

// unfitRoped says why mul_mat_vec_rope can't record p, "" if it can.
func unfitRoped(r *Recorder, p *RopedProducts) string {
	a := &p.Rope
	switch {
	case r.Rows.Role != Decode || p.N > shaders.FewRows:
		return "rows of a prompt"
	case !hasTeam(shaders.Turned, p.Type):
		return "another type of weights"
	case p.scaled():
		return "scales beside weights"
	case p.KV != gguf.F16 && p.KV != gguf.F32:
		return "a cache in blocks"
	case a.RopeDim%4 != 0 || a.QStride != a.Heads*a.KeyLen || a.Heads >= 1<<16 || p.K%q8Block != 0:
		return "heads or rows of other sizes"
	case r.k.tuned.Load().prefersFP32(p.Type, p.K):
		return "float32 was faster when tuned"
	case shaders.Q8Size(p.N, p.K) > r.q8Room():
		return "there is no memory for X in bytes"
	case !r.usable(choice{op: "quantize_q8"}):
		return failedTest
	}
	c := ropedChoice(r, p.Type, ropeConstantsOf(p.KV, a), p.N, p.Of[0].M+p.Of[1].M+p.Of[2].M, p.K)
	if !r.usable(c) {
		return failedTest
	}
	return ""
}

// recordRoped quantises X to int8 unless it is there already, and records p as one mul_mat_vec_rope.
func recordRoped(r *Recorder, p *RopedProducts) error {
	a, kv := &p.Rope, p.KV
	if p.N == 0 {
		return nil
	}
	args := shaders.MulMatRopeArgs{
		Dst: a.Q, CosSin: a.CosSin, Pages: a.Pages, Pos: a.Pos, Seq: a.Seq,
		K: p.K, N: p.N, Heads: a.Heads | a.HeadsKV<<16, MaxPages: a.MaxPages, PagePositions: a.PagePositions, LayerOff: a.LayerOff,
	}
	weights, biases := [3]*uint64{&args.W0, &args.W1, &args.W2}, [3]*uint64{&args.Bias0, &args.Bias1, &args.Bias2}
	for i, rows := range [3]uint32{a.Heads * a.KeyLen, a.HeadsKV * a.KeyLen, a.HeadsKV * a.ValLen} {
		m := &p.Of[i]
		if m.M == 0 {
			continue
		}
		if m.M != rows {
			return &ArgError{"mul_mat_vec_rope", "M of Q, K or V", m.M, fmt.Sprintf("%d, or 0", rows)}
		}
		*weights[i], *biases[i] = m.W, m.Bias
	}
	var err error
	if args.X, args.S, err = r.int8X(p.X, p.N, p.K, p.XStride); err != nil {
		return err
	}
	return MulMatRope(r, p.Type, ropeConstantsOf(kv, a), args)
}

// MulMatRope records one mul_mat_vec_rope: it computes Q, K and V from an int8 X, rotates Q and K by RoPE, writes Q to a.Dst, and K and V to
// the KV cache. A matrix at address 0 is left out.
func MulMatRope(r *Recorder, t gguf.Type, of RopeConstants, a shaders.MulMatRopeArgs) error {
	outputs := a.Outputs(of.KeyLen, of.ValLen)
	if outputs == 0 || a.N == 0 {
		return nil
	}
	c := check{choice: choice{op: "mul_mat_vec", variant: shaders.Turned, typed: true, typ: t, rope: of}}
	var touched touch
	if checkRoped(&c, t, &a, &touched); c.err != nil {
		return c.err
	}
	c.choice = ropedChoice(r, t, of, a.N, outputs, a.K)
	if c.shape(c.tile, shaders.NoGLU, c.cols, r.k.dev.Physical.Limits.MaxWorkgroupInvocations); c.err == nil {
		c.multiple("the outputs of a workgroup", c.tile.outputs(shaders.NoGLU), 4)
		c.atMost("Tile.Rows * columns", c.tile.Rows*c.cols, 4*c.tile.Team) // a lane takes four sums at most
	}
	if c.err != nil {
		return c.err
	}
	n, k, m := float64(a.N), float64(a.K), float64(outputs)
	co := cost{bytes: float64((a.N+c.cols-1)/c.cols)*m*rowBytes(t, a.K) + 4*n*(k+m), flops: 2 * m * n * k}
	return record(r, &c, &a, a.Workgroups(outputs, c.tile.outputs(shaders.NoGLU), c.cols), &touched, co)
}

// checkRoped checks the arguments of a mul_mat_vec_rope, and notes what it reads and writes.
func checkRoped(c *check, t gguf.Type, a *shaders.MulMatRopeArgs, touched *touch) {
	of, heads, headsKV := &c.rope, a.Heads&0xffff, a.Heads>>16
	c.address("X", a.X)
	c.address("S", a.S)
	c.positive("K", a.K)
	c.blocks("K", a.K)
	c.atMost("N", a.N, shaders.FewRows)
	c.heads(heads, headsKV, of.KeyLen, of.ValLen)
	c.multiple("RopeDim", of.RopeDim, 4)
	c.atMost("RopeDim", of.RopeDim, of.KeyLen)
	touched.read(q8Bytes(a.X, a.N, a.K))
	touched.read(q8Scales(a.S, a.N, a.K))
	for i, m := range [...]struct {
		name    string // whole: putting it together would allocate, for each product
		w, bias uint64
		rows    uint32
	}{{"W0", a.W0, a.Bias0, heads * of.KeyLen}, {"W1", a.W1, a.Bias1, headsKV * of.KeyLen}, {"W2", a.W2, a.Bias2, headsKV * of.ValLen}} {
		if m.w == 0 {
			continue
		}
		c.address(m.name, m.w)
		touched.read(span{m.w, m.w + uint64(float64(m.rows)*rowBytes(t, a.K))})
		if m.bias != 0 {
			touched.read(f32s(m.bias, 1, m.rows, 0))
		}
		if i > 0 {
			touched.write(cachePart(a.LayerOff, i-1))
		}
	}
	if a.W0|a.W1 != 0 && of.RopeDim > 0 {
		c.address("CosSin", a.CosSin)
		touched.read(f32s(a.CosSin, a.N, of.RopeDim, of.RopeDim))
	}
	if a.W0 != 0 {
		c.address("Dst", a.Dst)
		touched.write(f32s(a.Dst, a.N, heads*of.KeyLen, heads*of.KeyLen))
	}
	if a.W1|a.W2 != 0 {
		c.paged(gguf.F16, a.Pages, a.Seq, a.MaxPages, a.PagePositions, a.LayerOff)
		c.words("Pos", a.Pos)
		touched.pageTable(a.Pages, a.Seq, a.N, a.MaxPages)
		touched.read(f32s(a.Pos, 1, a.N, 0))
	}
}
