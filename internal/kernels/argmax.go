package kernels

import (
	"leat/shaders"
)

// argmaxVariants are the ways to find a row's largest value, the best first.
var argmaxVariants = []*variant[shaders.ArgmaxArgs]{&joinedArgmax, &plainArgmax}

// Argmax writes the column of each row's largest value to Dst (Rows) uint32. The caller need not set a.Parts and a.Counters: they come from
// [Recorder].Memory.
func Argmax(r *Recorder, a shaders.ArgmaxArgs) error {
	if a.Rows == 0 {
		return nil
	}
	r.args.argmax = a
	_, err := recordBy(r, argmaxVariants, &r.args.argmax)
	return err
}

// plainArgmax uses one workgroup for each row.
var plainArgmax = variant[shaders.ArgmaxArgs]{
	Rule: Rule{Op: "argmax", Variant: shaders.FP32},
	record: func(r *Recorder, a *shaders.ArgmaxArgs) error {
		a.Parts, a.Counters = 0, 0
		var t touch
		return recordArgmax(r, &check{choice: choice{op: "argmax"}}, a, &t)
	},
}

// recordArgmax checks the arguments of an argmax, adds what it reads and writes to t, and records it.
func recordArgmax(r *Recorder, c *check, a *shaders.ArgmaxArgs, t *touch) error {
	c.address("X", a.X)
	c.address("Dst", a.Dst)
	c.positive("Cols", a.Cols)
	t.read(f32s(a.X, a.Rows, a.Cols, a.Cols))
	t.write(f32s(a.Dst, 1, a.Rows, 0))
	return record(r, c, a, a.Workgroups(), t, cost{bytes: 4 * float64(a.Rows) * float64(a.Cols)})
}
