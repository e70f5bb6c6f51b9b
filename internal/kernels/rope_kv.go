package kernels

import (
	"leat/gguf"
	"leat/shaders"
)

// appendedRope rotates queries and keys by RoPE, and writes keys and values to the KV cache.
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

// ropeKVChoice is the pipeline of rope_kv for a KV cache of type t.
func ropeKVChoice(t gguf.Type) choice {
	return choice{op: "rope", variant: shaders.KV, typed: true, typ: t}
}

// RopeKV is [Rope] of Q and K and [KVAppend] in one dispatch, with the same bits, but the rotated K is written only to the cache.
func RopeKV(r *Recorder, t gguf.Type, a shaders.RopeKVArgs) error {
	if a.Rows == 0 {
		return nil
	}
	c := check{choice: ropeKVChoice(t)}
	var touched touch
	co := checkRopeKV(&c, t, &a, &touched)
	return record(r, &c, &a, a.Workgroups(t), &touched, co)
}
