package exec

import (
	"leat/gguf"
	"leat/internal/arch"
	"leat/shaders"
)

// keepAsked has the rest of the step go on with the rows that want logits alone, whose values it gathers.
func (r *run) keepAsked(values []arch.Value) error {
	if !r.keeps {
		return nil
	}
	s, n := &r.e.Plan.Scratch, uint32(len(r.asked))
	for _, v := range values {
		a := shaders.GetRowsArgs{Table: r.value(v), IDs: r.addr(s.LogitIDs), Dst: r.addr(s.Kept[v]), Rows: n, Cols: r.width(v)}
		if err := r.rec.GetRows(gguf.F32, a); err != nil {
			return err
		}
	}
	for _, row := range r.asked {
		r.kept = append(r.kept, r.rows[row])
	}
	r.rows, r.keeping = r.kept, true
	r.run = oneRun(r.rows)
	r.suit()
	return nil
}

// suit tells the recorder which kernels suit the rows at hand.
func (r *run) suit() {
	r.rec.Run, r.rec.Few, r.rec.Short = r.run, len(r.rows) <= shaders.FewRows, len(r.rows) <= shaders.ShortRows
}

// value is where the rows at hand have an activation.
func (r *run) value(v arch.Value) uint64 {
	if r.keeping {
		return r.addr(r.e.Plan.Scratch.Kept[v])
	}
	return r.addr(r.e.Plan.Scratch.Values[v])
}

// places is where the positions of the rows at hand are, and their sequences.
func (r *run) places() (pos, seq uint64) {
	s := &r.e.Plan.Scratch
	if r.keeping {
		return r.addr(s.KeptPos), r.addr(s.KeptSeq)
	}
	return r.addr(s.Pos), r.addr(s.Seq)
}
