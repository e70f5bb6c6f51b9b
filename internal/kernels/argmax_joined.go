package kernels

import (
	"leat/shaders"
)

// joinedArgmax cuts each row into parts, one for each workgroup. The last workgroup that ends joins the results of the parts.
var joinedArgmax = variant[shaders.ArgmaxArgs]{
	Rule: Rule{Op: "argmax", Variant: shaders.Joined, When: "memory for the parts of rows", kernels: []string{"argmax_joined"}},
	unfit: func(r *Recorder, a *shaders.ArgmaxArgs) string {
		switch {
		case 4*int64(a.Rows) > r.Memory.Counters.Bytes || shaders.ArgmaxPartBytes(a.Rows, a.Cols) > r.Memory.Parts.Bytes:
			return "there is no memory for parts or counters"
		case !r.usable(choice{op: "argmax", variant: shaders.Joined}):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *shaders.ArgmaxArgs) error {
		a.Parts, a.Counters = r.Memory.Parts.Address, r.Memory.Counters.Address
		c := check{choice: choice{op: "argmax", variant: shaders.Joined}}
		c.address("Parts", a.Parts)
		c.address("Counters", a.Counters)
		var t touch
		t.write(span{a.Parts, a.Parts + uint64(shaders.ArgmaxPartBytes(a.Rows, a.Cols))})
		t.write(f32s(a.Counters, 1, a.Rows, 0))
		return recordArgmax(r, &c, a, &t)
	},
}
