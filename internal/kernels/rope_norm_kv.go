package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// normedRope is [appendedRope] after an RMS norm of each head of queries and keys.
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

// ropeNormKVChoice is the pipeline of rope_norm_kv for a KV cache of type t and key heads of keyLen values.
func ropeNormKVChoice(t gguf.Type, keyLen uint32) choice {
	a := shaders.RopeNormKVArgs{KeyLen: keyLen}
	return choice{op: "rope", variant: shaders.NormKV, typed: true, typ: t, rowLanes: a.RowLanes()}
}

// RopeNormKV is [RMSNorm] of each head of Q and K, then [RopeKV], in one dispatch, with the same bits.
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
	c.atMost("KeyLen", a.KeyLen, shaders.MaxHeadNormed)
	c.multiple("QStride", a.QStride, 4)
	c.multiple("KStride", a.KStride, 4)
	c.multiple("VStride", a.VStride, 4)
	if !(a.Eps >= 0) {
		c.require(false, "Eps", a.Eps, "0 or more")
	}
	touched.read(f32s(a.QNorm, 1, a.KeyLen, 0))
	touched.read(f32s(a.KNorm, 1, a.KeyLen, 0))
	return record(r, &c, &a, a.Workgroups(), &touched, co)
}
