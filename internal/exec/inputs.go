package exec

import (
	"encoding/binary"
	"math"
	"slices"

	"leat/internal/kv"
	"leat/internal/plan"
)

var (
	le              = binary.LittleEndian
	float32frombits = math.Float32frombits
)

// inputs is memory for what a step's inputs are made from, used again by the next.
type inputs struct {
	seqs      []*kv.Sequence // of the step, in order of appearance
	positions []int          // (rows)
	table     []float32      // (rows, RopeDim/2, 2) cosines and sines
	tokens    []int32        // (rows)
}

// inputs writes a step's inputs to host memory and returns the regions to copy.
//
// The rows of token_embd are gathered here, so that the embedding matrix takes no
// VRAM; the device decodes them with the same kernel as ever.
func (r *run) inputs() (used [10]plan.Region, err error) {
	e, s, m, in := r.e, &r.e.Plan.Scratch, r.e.in.Mapped(), &r.e.inputs
	n := int64(len(r.rows))
	r.sequences()
	in.positions = in.positions[:0]
	for i, row := range r.rows {
		in.positions = append(in.positions, row.Position)
		le.PutUint32(m[s.IDs.Off+int64(4*i):], uint32(i))
		le.PutUint32(m[s.Pos.Off+int64(4*i):], uint32(row.Position))
		le.PutUint32(m[s.Seq.Off+int64(4*i):], uint32(slices.Index(in.seqs, row.Seq)))
	}
	for q, seq := range in.seqs {
		at := s.Pages.Off + int64(8*q*r.maxPages)
		for i, page := range seq.Pages() {
			le.PutUint64(m[at+int64(8*i):], page)
		}
		from, to := seq.States()
		le.PutUint64(m[s.States.Off+int64(16*q):], from)
		le.PutUint64(m[s.States.Off+int64(16*q+8):], to)
	}
	pages := int64(8 * len(in.seqs) * r.maxPages)
	r.sequenceCount = len(in.seqs)
	clear(in.seqs) // so that a closed session's can go
	in.table = resize(in.table, int(n)*len(e.freqs)*2)
	if err := e.Hyper.Rope.Table(in.table, e.freqs, e.mscale, in.positions); err != nil {
		return used, err
	}
	for i, v := range in.table {
		le.PutUint32(m[s.CosSin.Off+int64(4*i):], math.Float32bits(v))
	}
	rowBytes := e.embd.Bytes / int64(e.Hyper.VocabSize)
	in.tokens = in.tokens[:0]
	for i := range r.rows {
		in.tokens = append(in.tokens, r.rows[i].Token)
	}
	if err := e.Weights.Embeddings(m[s.Embd.Off:s.Embd.Off+n*rowBytes], in.tokens); err != nil {
		return used, err
	}
	for i, row := range r.asked {
		le.PutUint32(m[s.LogitIDs.Off+int64(4*i):], uint32(row))
	}
	var kept int64
	if r.keeps {
		kept = int64(4 * len(r.asked))
		for i, row := range r.asked {
			copy(m[s.KeptPos.Off+int64(4*i):], m[s.Pos.Off+int64(4*row):][:4])
			copy(m[s.KeptSeq.Off+int64(4*i):], m[s.Seq.Off+int64(4*row):][:4])
		}
	}
	return [...]plan.Region{
		{Off: s.IDs.Off, Bytes: 4 * n}, {Off: s.Pos.Off, Bytes: 4 * n}, {Off: s.Seq.Off, Bytes: 4 * n},
		{Off: s.Pages.Off, Bytes: pages}, {Off: s.States.Off, Bytes: int64(16 * r.sequenceCount)}, {Off: s.CosSin.Off, Bytes: int64(4 * len(in.table))},
		{Off: s.Embd.Off, Bytes: n * rowBytes}, {Off: s.LogitIDs.Off, Bytes: int64(4 * len(r.asked))},
		{Off: s.KeptPos.Off, Bytes: kept}, {Off: s.KeptSeq.Off, Bytes: kept},
	}, nil
}

// sequences lists the step's sessions and sets maxPages, the row length of the page table.
func (r *run) sequences() {
	in := &r.e.inputs
	in.seqs = in.seqs[:0]
	r.maxPages = 1
	for _, row := range r.rows {
		if !slices.Contains(in.seqs, row.Seq) {
			in.seqs = append(in.seqs, row.Seq)
			r.maxPages = max(r.maxPages, len(row.Seq.Pages()))
		}
	}
}

// resize is s with n elements, of any value.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
