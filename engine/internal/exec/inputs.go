package exec

import (
	"encoding/binary"
	"fmt"
	"math"

	"leat/engine/internal/kv"
	"leat/engine/plan"
)

var (
	le              = binary.LittleEndian
	float32frombits = math.Float32frombits
)

// inputs writes a step's inputs to host memory and returns the regions to copy.
//
// The rows of token_embd are gathered here, from the file, so that the embedding
// matrix takes no VRAM; the device decodes them with the same kernel as ever.
func (r *run) inputs() ([]plan.Region, error) {
	e, s, m := r.e, &r.e.Plan.Scratch, r.e.in.Mapped()
	n := int64(len(r.rows))
	seqs, index := r.sequences()
	positions := make([]int, n)
	for i, row := range r.rows {
		positions[i] = row.Position
		le.PutUint32(m[s.IDs.Off+int64(4*i):], uint32(i))
		le.PutUint32(m[s.Pos.Off+int64(4*i):], uint32(row.Position))
		le.PutUint32(m[s.Seq.Off+int64(4*i):], uint32(index[row.Seq]))
	}
	for q, seq := range seqs {
		at := s.Pages.Off + int64(8*q*r.maxPages)
		for i, page := range seq.Pages() {
			le.PutUint64(m[at+int64(8*i):], page)
		}
	}
	table := make([]float32, n*int64(len(e.freqs))*2)
	if err := e.Hyper.Rope.Table(table, e.freqs, e.mscale, positions); err != nil {
		return nil, err
	}
	for i, v := range table {
		le.PutUint32(m[s.CosSin.Off+int64(4*i):], math.Float32bits(v))
	}
	rowBytes := e.embd.Bytes / int64(e.Hyper.VocabSize)
	row := make([]byte, rowBytes)
	for i := range r.rows {
		if err := e.Model.ReadAt(e.embd.File, row, e.embd.Off+int64(r.rows[i].Token)*rowBytes); err != nil {
			return nil, fmt.Errorf("read row %d of %s: %w", r.rows[i].Token, e.embd.Name, err)
		}
		copy(m[s.Embd.Off+int64(i)*rowBytes:], row)
	}
	for i, row := range r.asked {
		le.PutUint32(m[s.LogitIDs.Off+int64(4*i):], uint32(row))
	}
	used := []plan.Region{
		{Off: s.IDs.Off, Bytes: 4 * n}, {Off: s.Pos.Off, Bytes: 4 * n}, {Off: s.Seq.Off, Bytes: 4 * n},
		{Off: s.Pages.Off, Bytes: int64(8 * len(seqs) * r.maxPages)}, {Off: s.CosSin.Off, Bytes: int64(4 * len(table))},
		{Off: s.Embd.Off, Bytes: n * rowBytes}, {Off: s.LogitIDs.Off, Bytes: int64(4 * len(r.asked))},
	}
	return used, nil
}

// sequences lists the step's sessions in order of appearance and sets maxPages, the
// row length of the page table.
func (r *run) sequences() (seqs []*kv.Sequence, index map[*kv.Sequence]int) {
	index = map[*kv.Sequence]int{}
	r.maxPages = 1
	for _, row := range r.rows {
		if _, seen := index[row.Seq]; !seen {
			index[row.Seq] = len(seqs)
			seqs = append(seqs, row.Seq)
			r.maxPages = max(r.maxPages, len(row.Seq.Pages()))
		}
	}
	return seqs, index
}
