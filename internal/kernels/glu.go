package kernels

import (
	"leat/shaders"
)

// GatedRows is act(Gate) * Up. Products with weights read the output as rows.
type GatedRows struct {
	Act        Act    // the activation function
	Rows, Cols uint32 // rows and columns of the output; Count is Rows * Cols
	shaders.GLUArgs
}

// gluVariants are the ways to record [GatedRows], the best first.
var gluVariants = []*variant[GatedRows]{&tilesGLU, &plainGLU}

// GLURows records gated rows by the first variant that fits.
func GLURows(r *Recorder, a GatedRows) error {
	r.args.glu = a
	_, err := recordBy(r, gluVariants, &r.args.glu)
	return err
}

// plainGLU is [GLU].
var plainGLU = variant[GatedRows]{
	Rule:   Rule{Op: "swiglu", Variant: shaders.FP32},
	record: func(r *Recorder, a *GatedRows) error { return GLU(r, a.Act, a.GLUArgs) },
}

// SwiGLU is Dst = silu(Gate) * Up.
func SwiGLU(r *Recorder, a shaders.GLUArgs) error { return GLU(r, SiLU, a) }

// GLU is Dst = act(Gate) * Up. Dst may be Gate or Up.
func GLU(r *Recorder, act Act, a shaders.GLUArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: gatedOps[act]}}
	c.words("Gate", a.Gate)
	c.words("Up", a.Up)
	c.words("Dst", a.Dst)
	n := float64(a.Count)
	var t touch
	t.read(f32s(a.Gate, 1, a.Count, 0))
	t.read(f32s(a.Up, 1, a.Count, 0))
	t.write(f32s(a.Dst, 1, a.Count, 0))
	return record(r, &c, &a, a.Workgroups(), &t, cost{12 * n, 8 * n})
}
