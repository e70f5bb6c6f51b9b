package step

import (
	"slices"

	"leat/decompose/pack"
	"leat/internal/plan"
)

// lastBeforeHead reports whether unit i is the last one before the pieces of the head: the final norm or, if no weights follow the layers, a part of the last layer.
func lastBeforeHead(units []plan.Unit, i int) bool {
	return units[i].Kind != pack.Head && (i+1 == len(units) || units[i+1].Kind == pack.Head)
}

// headInput records the operations between the last layer and the head, for the rows that want logits or hidden states.
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
	t := &u.Tensors[0]
	return p.s.frame.HeadPiece(t.Type, p.s.bases[i]+uint64(t.UnitOff), u.Row, int64(t.Shape[0]), len(p.logitRows))
}

// output records a copy of what is wanted, logits, their argmax or hidden states, to host memory, and a barrier that makes the copy visible to
// the host.
func (p *pass) output() error {
	f, of, h, n := &p.s.frame, &p.s.Plan.Scratch, p.s.Hyper, len(p.logitRows)
	if p.s.queue.Commands.Again() || n == 0 && p.s.Routed == nil {
		return nil
	}
	var from, to, bytes int64
	switch p.want {
	case WantLogits:
		from, bytes = of.Logits.Off, int64(4*n*h.VocabSize)
	case WantArgmax:
		from, to, bytes = of.Argmax.Off, of.Logits.Bytes, int64(4*n)
	case WantHidden:
		from, bytes = of.Head.Off, int64(4*n*h.EmbeddingLength)
	}
	if n > 0 {
		if err := p.logitOps(n); err != nil {
			return err
		}
		if err := f.Rec.Copy(p.s.out, to, p.s.scratch, from, bytes); err != nil {
			return err
		}
	}
	p.s.queue.Commands.Buffer().HostBarrier()
	return nil
}

// logitOps records the operations on the logits of n rows, and the search for the largest one if it is wanted.
func (p *pass) logitOps(n int) error {
	if p.want == WantHidden {
		return nil
	}
	f := &p.s.frame
	if err := f.LogitOps(p.s.ops.logits, n); err != nil || p.want == WantLogits {
		return err
	}
	return f.Argmax(n)
}

// read copies a finished step's output from the mapped buffer to s.results. It fails with a [*NotFiniteError] if a number is not finite.
func (s *Stepper) read(rows []Row) (Result, error) {
	switch s.pass.want {
	case WantArgmax:
		return s.readIDs(rows)
	case WantHidden:
		err := s.readFloats(&s.results.Hidden, rows, s.Hyper.EmbeddingLength)
		return Result{Hidden: s.results.Hidden}, err
	}
	err := s.readFloats(&s.results.Logits, rows, s.Hyper.VocabSize)
	return Result{Logits: s.results.Logits}, err
}

// readIDs reads the argmax of each logit row.
func (s *Stepper) readIDs(rows []Row) (Result, error) {
	m, to := s.out.Mapped(), &s.results
	to.IDs = to.IDs[:0]
	for i, row := range s.pass.logitRows {
		id := int32(le.Uint32(m[s.Plan.Scratch.Logits.Bytes+int64(4*i):]))
		if id < 0 { // the kernel gives ^id for a logit that is not finite
			return Result{}, &NotFiniteError{Position: rows[row].Position, Token: ^id}
		}
		to.IDs = append(to.IDs, id)
	}
	return Result{IDs: to.IDs}, nil
}

// readFloats reads width numbers of each logit row to the memory of *to.
func (s *Stepper) readFloats(to *[]float32, rows []Row, width int) error {
	logitRows := s.pass.logitRows
	n := len(logitRows) * width
	*to = slices.Grow((*to)[:0], n)[:n]
	if decodeFloats(*to, s.out.Mapped()) {
		return nil
	}
	at := firstNotFinite(*to)
	return &NotFiniteError{Position: rows[logitRows[at/width]].Position, Token: int32(at % width), Hidden: s.pass.want == WantHidden}
}
