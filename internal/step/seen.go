package step

import (
	"math"

	"leat/internal/arch"
	"leat/internal/plan"
	"leat/vk"
)

// writeSeen writes to host memory which positions the rows see by each of the model's masks. It appends the regions of the scratch to which they must be copied.
func (p *pass) writeSeen(used []plan.Region) []plan.Region {
	m, of := p.s.in.Mapped(), &p.s.Plan.Scratch
	for i := range p.s.Hyper.Masks {
		mask, region, kept := &p.s.Hyper.Masks[i], of.Seen[i], of.LogitSeen[i]
		putSeen(m[region.Off:], mask, p.rows)
		used = append(used, plan.Region{Off: region.Off, Bytes: int64(8 * len(p.rows))})
		if !p.s.frame.Batch.OnlyLogitRows {
			continue
		}
		for k, row := range p.logitRows {
			copy(m[kept.Off+int64(8*k):], m[region.Off+int64(8*row):][:8])
		}
		used = append(used, plan.Region{Off: kept.Off, Bytes: int64(8 * len(p.logitRows))})
	}
	return append(used, of.Slopes)
}

// putSeen writes to dst the first and the last position that each of rows sees by a mask. Rows of a sequence are adjacent; the last of them has its sequence's
// last position.
func putSeen(dst []byte, mask *arch.Mask, rows []Row) {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Seq == rows[from].Seq {
			to++
		}
		for i := range rows[from:to] {
			first, last := mask.Seen(rows[from+i].Position, rows[to-1].Position)
			le.PutUint32(dst[8*(from+i):], uint32(first))
			le.PutUint32(dst[8*(from+i)+4:], uint32(last))
		}
		from = to
	}
}

// putSlopes writes the slopes of attention's heads to the host memory of inputs, where they stay: they are the same in all steps.
func putSlopes(in *vk.Buffer, at plan.Region, slopes []float32) {
	for i, v := range slopes {
		le.PutUint32(in.Mapped()[at.Off+int64(4*i):], math.Float32bits(v))
	}
}
