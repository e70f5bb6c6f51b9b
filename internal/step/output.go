package step

import (
	"slices"

	"leat/decompose/pack"
)

// headInput records the operations between the last layer and the head, for the rows that want logits.
func (p *pass) headInput() error {
	if len(p.logitRows) == 0 || p.s.queue.Commands.Again() {
		return nil
	}
	return p.s.frame.Output(p.s.ops.output, len(p.logitRows))
}

// headPiece records the logits of a part of the vocabulary: the tokens whose rows of the head are in unit i. It does so for the rows whose logits are
// needed.
func (p *pass) headPiece(i int) error {
	if p.s.queue.Commands.Again() {
		return nil
	}
	u := &p.s.Plan.Units[i]
	if before := p.s.Plan.Units[i-1].Kind; before != pack.Head && before != pack.Norm { // no unit holds the weights of these operations
		if err := p.headInput(); err != nil {
			return err
		}
	}
	t := &u.Tensors[0]
	return p.s.frame.HeadPiece(t.Type, p.s.bases[i]+uint64(t.UnitOff), u.Row, int64(t.Shape[0]), len(p.logitRows))
}

// output records a copy of the logits to host memory or, in a greedy step, of their argmax, and a barrier that makes the copy visible to
// the host.
func (p *pass) output() error {
	f, of, n := &p.s.frame, &p.s.Plan.Scratch, len(p.logitRows)
	if p.s.queue.Commands.Again() {
		return nil
	}
	if err := f.LogitOps(p.s.ops.logits, n); err != nil {
		return err
	}
	switch {
	case n == 0 && p.s.Routed == nil:
		return nil
	case n == 0:
	case p.greedy:
		if err := f.Argmax(n); err != nil {
			return err
		}
		if err := f.Rec.Copy(p.s.out, of.Logits.Bytes, p.s.scratch, of.Argmax.Off, int64(4*n)); err != nil {
			return err
		}
	default:
		if err := f.Rec.Copy(p.s.out, 0, p.s.scratch, of.Logits.Off, int64(4*n*p.s.Hyper.VocabSize)); err != nil {
			return err
		}
	}
	p.s.queue.Commands.Buffer().HostBarrier()
	return nil
}

// read copies a finished step's output from the mapped buffer to s.results. It fails with a [*NotFiniteError] if a logit is not finite.
func (s *Stepper) read(rows []Row) (Result, error) {
	m, to, logitRows := s.out.Mapped(), &s.results, s.pass.logitRows
	if s.pass.greedy {
		to.IDs = to.IDs[:0]
		for i, row := range logitRows {
			id := int32(le.Uint32(m[s.Plan.Scratch.Logits.Bytes+int64(4*i):]))
			if id < 0 { // the kernel gives ^id for a logit that is not finite
				return Result{}, &NotFiniteError{Position: rows[row].Position, Token: ^id}
			}
			to.IDs = append(to.IDs, id)
		}
		return Result{IDs: to.IDs}, nil
	}
	v := s.Hyper.VocabSize
	to.Logits = slices.Grow(to.Logits[:0], len(logitRows)*v)[:len(logitRows)*v]
	if !decodeFloats(to.Logits, m) {
		at := firstNotFinite(to.Logits)
		return Result{}, &NotFiniteError{Position: rows[logitRows[at/v]].Position, Token: int32(at % v)}
	}
	return Result{Logits: to.Logits}, nil
}
