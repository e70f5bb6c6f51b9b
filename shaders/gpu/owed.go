package gpu

import "leat/shaders"

// owed is an output that was brought into tiles and is not stored: what is multiplied by weights is hardly ever read
// otherwise, and storing it takes longer than all the rest of its kernel.
type owed struct {
	variant string // of tile_f16; "": nothing is owed
	args    shaders.TileF16WideArgs
	dst     span
	gone    bool // what it was made of is no longer there
}

// owe notes that a's Dst is to be stored when it is asked for.
func (r *Recorder) owe(variant string, a *shaders.TileF16WideArgs, dst span) {
	r.owed = owed{variant: variant, args: *a, dst: dst}
}

// inputs are what it is made of.
func (o *owed) inputs() [2]span {
	rows := o.args.Rows
	if o.variant == shaders.Norm {
		rows = 1
	}
	return [2]span{f32s(o.args.X, o.args.Rows, o.args.Cols, o.args.XStride), f32s(o.args.W, rows, o.args.Cols, o.args.XStride)}
}

// pay stores what is owed if t reads it, and forgets it if t writes it.
func (r *Recorder) pay(t *touch) error {
	o := r.owed
	if o.variant == "" {
		return nil
	}
	dst, in := [1]span{o.dst}, o.inputs()
	switch {
	case t.asks(o.dst):
		r.owed = owed{}
		if o.gone {
			return &ArgError{"tile_f16_" + o.variant, "what it is made of", o.args.X, "there until its output has been read the last time"}
		}
		return r.store(&o)
	case meet(dst[:], t.writes[:t.nw]):
		r.owed = owed{}
	case meet(in[:], t.writes[:t.nw]):
		r.owed.gone = true
	}
	return nil
}

// asks reports whether t reads what is at dst. Of a table whose rows the device alone knows it is the beginning that counts.
func (t *touch) asks(dst span) bool {
	for _, s := range t.reads[:t.nr] {
		if s.hi == endless {
			s.hi = s.lo + 1
		}
		if s.overlaps(dst) {
			return true
		}
	}
	return false
}

// store makes it once more: as floats.
func (r *Recorder) store(o *owed) error {
	a := &o.args
	tiles := r.tiles.x // they stay what they are
	var err error
	if o.variant == shaders.Norm {
		err = r.RMSNorm(shaders.RMSNormArgs{X: a.X, W: a.W, Dst: a.Dst, Rows: a.Rows, Cols: a.Cols, XStride: a.XStride, DstStride: a.DstStride, Eps: a.Eps})
	} else {
		glu := shaders.GLUArgs{Gate: a.X, Up: a.W, Dst: a.Dst, Count: a.Rows * a.Cols}
		if o.variant == shaders.GeLU {
			err = r.GeGLU(glu)
		} else {
			err = r.SwiGLU(glu)
		}
	}
	r.tiles.x = tiles
	return err
}
