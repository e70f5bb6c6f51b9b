package kernels

import (
	"leat/shaders"
)

// plainAttn computes a row's positions in order, in float32.
var plainAttn = variant[Attention]{
	Rule: Rule{Op: "flash_attn", Variant: shaders.FP32},
	record: func(r *Recorder, a *Attention) error {
		c, touched, co := a.check(r)
		return record(r, &c, &a.FlashAttnArgs, a.Workgroups(), &touched, co)
	},
}
