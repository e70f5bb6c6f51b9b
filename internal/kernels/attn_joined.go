package kernels

import (
	"leat/shaders"
)

// joinedAttn computes a row's positions in parts, one for each workgroup. The last workgroup that ends joins the partial results.
var joinedAttn = variant[Attention]{
	Rule: Rule{
		Op: "flash_attn", Variant: shaders.Joined, When: "decode, heads of up to 256, and of 32 values a lane of a subgroup",
		Needs: needsBytes, lacks: lacksBytes, kernels: []string{"flash_attn_joined"},
	},
	unfit: func(r *Recorder, a *Attention) string {
		if why := unfitParts(r, a); why != "" {
			return why
		}
		switch t := a.KV; {
		case shaders.CounterBytes(a.Rows, a.Heads) > r.Memory.Counters.Bytes:
			return "there is no memory for counters"
		case !r.usable(r.k.splitChoice(t, &a.FlashAttnArgs, groupOf(r, &a.FlashAttnArgs), true)):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *Attention) error { return flashAttnParts(r, a, true) },
}

// checkJoined checks the arguments that split attention has only if its last workgroup joins the partial results. It adds the memory that this workgroup
// reads and writes to t.
func checkJoined(c *check, a *shaders.FlashAttnSplitArgs, group uint32, t *touch) {
	c.address("Counters", a.Counters)
	c.address("Dst", a.Dst)
	c.positive("ValLen", a.ValLen)
	c.stride("DstStride", a.DstStride, a.Heads*a.ValLen)
	t.write(span{a.Counters, a.Counters + uint64(shaders.CounterBytes(a.Rows, a.Heads/max(1, group)))})
	t.write(f32s(a.Dst, a.Rows, a.Heads*a.ValLen, a.DstStride))
	if a.Bytes != 0 {
		c.address("Bytes", a.Bytes)
		c.multiple("ValLen", a.ValLen, q8Block)
		t.write(q8Bytes(a.Bytes, a.Rows, a.Heads*a.ValLen))
		t.write(q8Scales(shaders.Q8Sums(a.Bytes, a.Rows, a.Heads*a.ValLen), a.Rows, a.Heads*a.ValLen))
	}
}
