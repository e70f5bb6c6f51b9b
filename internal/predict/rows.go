package predict

import "leat/internal/arch"

// everyRow names what the last layer, whose operations are ops, multiplies by every row.
func everyRow(ops []arch.Op) map[string]bool {
	names := map[string]bool{}
	for _, o := range ops {
		if o.Kind == arch.KeepAsked {
			break
		}
		for _, name := range o.Weights() {
			names[name] = true
		}
	}
	return names
}

// asked is how many of a step's rows pass through a unit, but for what is for every row: in the last layer the one that
// wants logits, if one does.
func (m *machine) asked(i, rows int, head bool) int {
	switch {
	case !m.loads[i].last || rows == 1:
		return rows
	case head:
		return 1
	}
	return 0
}

// rehearsed is the seconds of a unit's kernels; layers holds those that are known already.
func (m *machine) rehearsed(i int, s StepShape, asked int, layers map[int]float64) float64 {
	x, r := &m.parts[i], m.s.Rehearsal
	if x.class == "" {
		return x.share*r.Head + m.trip(i, s.Rows)
	}
	l := m.p.Units[i].Layer
	if _, known := layers[l]; !known {
		layers[l] = r.layer(x.class, x.bytes, s)
	}
	if asked == s.Rows {
		return x.share*layers[l] + m.trip(i, s.Rows)
	}
	every, all := 0.0, 0.0
	for _, t := range m.loads[i].matrices {
		if all += t.bytes; t.every {
			every += t.bytes
		}
	}
	every = over(every, all)
	t := every * layers[l]
	if asked > 0 {
		t += (1 - every) * r.layer(x.class, x.bytes, StepShape{asked, s.Context})
	}
	return x.share*t + m.trip(i, asked)
}
