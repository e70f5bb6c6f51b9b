package kernels

import (
	"leat/shaders"
)

// GatedRows is silu(Gate) * Up. Products with weights read the output as rows.
type GatedRows struct {
	Rows, Cols uint32 // rows and columns of the output; Count is Rows * Cols
	shaders.GLUArgs
}

// gluVariants are the ways to record [GatedRows], the best first.
var gluVariants = []*variant[GatedRows]{&tilesGLU, &plainGLU}

// SwiGLURows records gated rows by the first variant that fits.
func SwiGLURows(r *Recorder, a GatedRows) error {
	r.args.glu = a
	_, err := recordBy(r, gluVariants, &r.args.glu)
	return err
}

// plainGLU is [SwiGLU].
var plainGLU = variant[GatedRows]{
	Rule:   Rule{Op: "swiglu", Variant: shaders.FP32},
	record: func(r *Recorder, a *GatedRows) error { return SwiGLU(r, a.GLUArgs) },
}

// SwiGLU is Dst = silu(Gate) * Up.
func SwiGLU(r *Recorder, a shaders.GLUArgs) error { return recordGLU(r, "swiglu", a) }

// GeGLU is Dst = gelu(Gate) * Up.
func GeGLU(r *Recorder, a shaders.GLUArgs) error { return recordGLU(r, "geglu", a) }

// recordGLU records a gated activation function: swiglu or geglu.
func recordGLU(r *Recorder, op string, a shaders.GLUArgs) error {
	if a.Count == 0 {
		return nil
	}
	c := check{choice: choice{op: op}}
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
