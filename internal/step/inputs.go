package step

import (
	"encoding/binary"
	"math"
	"slices"

	"leat/decompose/pack"
	"leat/gguf"
	"leat/internal/arch"
	"leat/internal/kv"
	"leat/internal/plan"
	"leat/vk"
)

var (
	le              = binary.LittleEndian  // byte order of the values that host and device exchange
	float32frombits = math.Float32frombits // short name, for decodeFloats
)

// inputs holds the values that a step's inputs are computed from, and memory that each step uses again.
type inputs struct {
	ropes  []ropeTable  // what rotates queries and keys, by the model's ropes
	tables []tokenTable // the model's tables of tokens

	seqs      []*kv.Sequence // the step's distinct sequences, in order of appearance
	positions []int          // (rows) positions of the tokens
	tokens    []int32        // (rows) ids of the tokens
	uploads   []vk.Point     // scratch of [pass.place]: points, signalled by uploads, that the next submission waits for
	copies    []plan.Region  // regions of the scratch that the step's inputs are copied to
}

// tokenTable is one of the model's tables of tokens.
type tokenTable struct {
	dst      arch.Value // activation that its rows are decoded to
	kind     gguf.Type  // type of its rows
	rowBytes int64      // bytes of a row
}

// ropeTable is what the cosines and sines of a rope are computed from, and memory for them.
type ropeTable struct {
	freqs  []float64 // (Dr/2) frequencies of the pairs
	cosSin []float32 // (rows, Dr/2, 2) cosines and sines at the positions of the step's rows
}

// sequences lists the distinct sequences of rows in seqs, and returns their number n and the row length of their page table, which is the largest number
// of pages of a sequence, at least 1.
func (in *inputs) sequences(rows []Row) (n, maxPages int) {
	in.seqs, maxPages = in.seqs[:0], 1
	for i := range rows {
		if seq := rows[i].Seq; !slices.Contains(in.seqs, seq) {
			in.seqs = append(in.seqs, seq)
			maxPages = max(maxPages, len(seq.Pages()))
		}
	}
	return len(in.seqs), maxPages
}

// embed writes the inputs to host memory, and records their copy to the device and the decoding of the tokens' embeddings into [arch.X], the
// residual stream, with the operations on these that need no weights. If the open command buffer was recorded in an earlier step it only writes the inputs.
func (p *pass) embed() error {
	regions, err := p.writeInputs()
	if err != nil || p.s.queue.Commands.Again() {
		return err
	}
	f, of := &p.s.frame, &p.s.Plan.Scratch
	for _, g := range regions {
		if g.Bytes > 0 {
			if err := f.Rec.Copy(p.s.scratch, g.Off, p.s.in, g.Off, g.Bytes); err != nil {
				return err
			}
		}
	}
	if of.Counters.Bytes > 0 { // an aborted step may have left counts
		if err := f.Rec.Zero(p.s.scratch, of.Counters.Off, of.Counters.Bytes); err != nil {
			return err
		}
	}
	for i, t := range p.s.inputs.tables {
		if err := f.Embed(i, t.dst, t.kind); err != nil {
			return err
		}
	}
	if p.s.Plan.Units[0].Kind == pack.Global { // its weights come with that unit
		return nil
	}
	return p.recordInput()
}

// recordInput records the operations on the embeddings, for each span of rows.
func (p *pass) recordInput() error {
	f := &p.s.frame
	if len(p.s.ops.input) == 0 || p.s.queue.Commands.Again() {
		return nil
	}
	for _, span := range f.StepRows.Spans {
		f.SetRows(span)
		for i := range p.s.ops.input {
			if err := f.Op(&p.s.ops.input[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeInputs writes a step's inputs to host memory and returns the regions of the scratch to which they must be copied; they have the same offsets in host
// memory. It may read rows of the tables of tokens from disk.
//
// It gathers the tokens' rows of each table on the host, so that the tables take no VRAM. The device decodes them
// with the get_rows kernel.
func (p *pass) writeInputs() (used []plan.Region, err error) {
	of, m, in, batch := &p.s.Plan.Scratch, p.s.in.Mapped(), &p.s.inputs, &p.s.frame.Batch
	n, logitRows := int64(len(p.rows)), int64(len(p.logitRows))
	in.positions, in.tokens = in.positions[:0], in.tokens[:0]
	for i := range p.rows {
		row := &p.rows[i]
		in.positions, in.tokens = append(in.positions, row.Position), append(in.tokens, row.Token)
		le.PutUint32(m[of.IDs.Off+int64(4*i):], uint32(i))
		le.PutUint32(m[of.Pos.Off+int64(4*i):], uint32(row.Position))
		le.PutUint32(m[of.Seq.Off+int64(4*i):], uint32(slices.Index(in.seqs, row.Seq)))
	}
	for i, seq := range in.seqs {
		at := of.Pages.Off + int64(8*i*batch.MaxPages)
		for k, page := range seq.Pages() {
			le.PutUint64(m[at+int64(8*k):], page)
		}
		from, to := seq.States()
		le.PutUint64(m[of.States.Off+int64(16*i):], from)
		le.PutUint64(m[of.States.Off+int64(16*i+8):], to)
	}
	clear(in.seqs) // so that a closed session's sequence can be freed
	used = in.copies[:0]
	for i := range in.ropes {
		region, err := p.writeAngles(i)
		if err != nil {
			return used, err
		}
		used = append(used, region)
	}
	used = p.writeScales(used)
	used = p.writeSeen(used)
	for i, t := range in.tables {
		region := plan.Region{Off: of.Embd[i].Off, Bytes: n * t.rowBytes}
		if err := p.s.Weights.Embeddings(i, m[region.Off:region.Off+region.Bytes], in.tokens); err != nil {
			return used, err
		}
		used = append(used, region)
	}
	for i, row := range p.logitRows {
		le.PutUint32(m[of.LogitIDs.Off+int64(4*i):], uint32(row))
	}
	var kept int64
	if batch.OnlyLogitRows {
		kept = 4 * logitRows
		for i, row := range p.logitRows {
			copy(m[of.LogitSeq.Off+int64(4*i):], m[of.Seq.Off+int64(4*row):][:4])
		}
	}
	in.copies = append(used,
		plan.Region{Off: of.IDs.Off, Bytes: 4 * n}, plan.Region{Off: of.Pos.Off, Bytes: 4 * n}, plan.Region{Off: of.Seq.Off, Bytes: 4 * n},
		plan.Region{Off: of.Pages.Off, Bytes: int64(8 * batch.Sequences * batch.MaxPages)}, plan.Region{Off: of.States.Off, Bytes: int64(16 * batch.Sequences)},
		plan.Region{Off: of.LogitIDs.Off, Bytes: 4 * logitRows},
		plan.Region{Off: of.LogitSeq.Off, Bytes: kept}, of.Grids)
	return in.copies, nil
}

// writeScales writes the rows' factors by [arch.Hyper].RowScale, if the model has them, to host memory. It adds the regions of the scratch that they are to be
// copied to to used.
func (p *pass) writeScales(used []plan.Region) []plan.Region {
	of, m, s := &p.s.Plan.Scratch, p.s.in.Mapped(), &p.s.Hyper.RowScale
	if s.Factor == 0 {
		return used
	}
	write := func(g plan.Region, i, row int) {
		le.PutUint32(m[g.Off+int64(4*i):], math.Float32bits(s.At(p.rows[row].Position)))
	}
	for i := range p.rows {
		write(of.RowScales, i, i)
	}
	used = append(used, plan.Region{Off: of.RowScales.Off, Bytes: int64(4 * len(p.rows))})
	if !p.s.frame.Batch.OnlyLogitRows {
		return used
	}
	for i, row := range p.logitRows {
		write(of.LogitScales, i, row)
	}
	return append(used, plan.Region{Off: of.LogitScales.Off, Bytes: int64(4 * len(p.logitRows))})
}

// writeAngles writes the cosines and sines of the model's rope i at the rows' positions to host memory, and returns the region of the scratch that they are to be
// copied to.
func (p *pass) writeAngles(i int) (plan.Region, error) {
	m, in, region := p.s.in.Mapped(), &p.s.inputs, p.s.Plan.Scratch.CosSin[i]
	t := &in.ropes[i]
	n := len(in.positions) * len(t.freqs) * 2
	t.cosSin = slices.Grow(t.cosSin[:0], n)[:n]
	if err := p.s.Hyper.Ropes[i].Table(t.cosSin, t.freqs, in.positions); err != nil {
		return region, err
	}
	for k, v := range t.cosSin {
		le.PutUint32(m[region.Off+int64(4*k):], math.Float32bits(v))
	}
	return plan.Region{Off: region.Off, Bytes: int64(4 * n)}, nil
}
