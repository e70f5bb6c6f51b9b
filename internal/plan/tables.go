package plan

import (
	"fmt"
	"slices"

	"leat/decompose/pack"
	"leat/internal/arch"
)

// Table is one of the model's tables of tokens, see [arch.Tables]. It is no unit: steps read a few of its rows, on the host.
type Table struct {
	Name            string // name of the tensor
	RowBytes, Bytes int64  // bytes of a row, and of the table
	Kept            bool   // it is kept in RAM; if not, its rows are read from disk when they are needed
}

// tables lists the model's tables.
func tables(h *arch.Hyper, m *pack.Model) (list []Table, err error) {
	for _, of := range arch.Tables(h) {
		t, _, ok := m.Tensor(of.Name)
		if !ok {
			return nil, fmt.Errorf("plan %s: tensor %q is missing", m.Path, of.Name)
		}
		list = append(list, Table{Name: of.Name, RowBytes: t.Bytes / int64(h.VocabSize), Bytes: t.Bytes})
	}
	return list, nil
}

// keepTables gives the model's tables a part of the RAM budget (in place: of the only budget), as many as there is room for, if steps read no weights
// from disk. Otherwise RAM is better spent on weights: a step reads whole units, but only a few rows of a table, which then come from disk.
func (s *sizing) keepTables(p *Plan) {
	left := s.budget.HostBytes - p.HostBytes
	if p.InPlace {
		left = s.budget.DeviceBytes - p.DeviceBytes
	}
	p.Tables = slices.Clone(s.tables)
	for i := range p.Tables {
		t := &p.Tables[i]
		if t.Kept = p.DiskBytes == 0 && t.Bytes <= left; !t.Kept {
			continue
		}
		left, p.EmbedBytes = left-t.Bytes, p.EmbedBytes+t.Bytes
		if !p.InPlace {
			p.HostBytes += t.Bytes
		}
	}
}
