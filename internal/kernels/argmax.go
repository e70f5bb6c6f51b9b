package kernels

import "leat/shaders"

// argmaxVariants are the ways to find a row's largest value, the best first.
var argmaxVariants = []*variant[shaders.ArgmaxArgs]{&joinedArgmax, &plainArgmax}

// Argmax writes the column of each row's largest value to Dst (Rows) uint32. It sets Parts and Counters of a itself.
func Argmax(r *Recorder, a shaders.ArgmaxArgs) error {
	if a.Rows == 0 {
		return nil
	}
	r.asked.argmax = a
	_, err := recordBy(r, argmaxVariants, &r.asked.argmax)
	return err
}

// joinedArgmax cuts rows into parts, which the last workgroup to end puts together.
var joinedArgmax = variant[shaders.ArgmaxArgs]{
	Rule: Rule{Op: "argmax", Variant: shaders.Joined, When: "memory for the parts of rows", kernels: []string{"argmax_joined"}},
	unfit: func(r *Recorder, a *shaders.ArgmaxArgs) string {
		switch {
		case 4*int64(a.Rows) > r.Counters.Bytes || shaders.ArgmaxPartBytes(a.Rows, a.Cols) > r.Parts.Bytes:
			return "there is no memory for parts or counters"
		case !r.usable(choice{op: "argmax", variant: shaders.Joined}):
			return failedTest
		}
		return ""
	},
	record: func(r *Recorder, a *shaders.ArgmaxArgs) error {
		a.Parts, a.Counters = r.Parts.Address, r.Counters.Address
		c := check{choice: choice{op: "argmax", variant: shaders.Joined}}
		c.address("Parts", a.Parts)
		c.address("Counters", a.Counters)
		var t touch
		t.write(span{a.Parts, a.Parts + uint64(shaders.ArgmaxPartBytes(a.Rows, a.Cols))})
		t.write(f32s(a.Counters, 1, a.Rows, 0))
		return recordArgmax(r, &c, a, &t)
	},
}

// plainArgmax has one workgroup a row.
var plainArgmax = variant[shaders.ArgmaxArgs]{
	Rule: Rule{Op: "argmax", Variant: shaders.FP32},
	record: func(r *Recorder, a *shaders.ArgmaxArgs) error {
		a.Parts, a.Counters = 0, 0
		var t touch
		return recordArgmax(r, &check{choice: choice{op: "argmax"}}, a, &t)
	},
}

func recordArgmax(r *Recorder, c *check, a *shaders.ArgmaxArgs, t *touch) error {
	c.address("X", a.X)
	c.address("Dst", a.Dst)
	c.positive("Cols", a.Cols)
	t.read(f32s(a.X, a.Rows, a.Cols, a.Cols))
	t.write(f32s(a.Dst, 1, a.Rows, 0))
	return record(r, c, a, a.Workgroups(), t, cost{bytes: 4 * float64(a.Rows) * float64(a.Cols)})
}
