package predict

import "leat/shaders"

// kernelSeconds is the seconds of unit i's kernels by rates. The step has all rows, rows of which pass through the whole unit, see
// rowsThrough.
func (m *machine) kernelSeconds(i, all, rows, ctx int) float64 {
	l := &m.loads[i]
	t := m.productSeconds(i, all, rows)
	if rows == 0 {
		return t
	}
	if l.routes {
		t += m.s.Kernels.RouteTime.Seconds()
	}
	t += m.routeSeconds(i, rows)
	if l.attention {
		t += m.attentionSeconds(rows, ctx)
	}
	return t + float64(m.waitsOf(l, rows))*m.s.Kernels.DispatchTime.Seconds()
}

// productSeconds is the seconds of unit i's products with matrices.
func (m *machine) productSeconds(i, all, rows int) (t float64) {
	l, n := &m.loads[i], float64(rows)
	if l.head {
		n = 1
	}
	used, each := 1.0, n // the share of the matrices that is used; rows that each multiplies
	multiply, halves := m.s.Kernels.FlopsPerSec, m.halvesBytesPerSec(int(n))
	if m.p.Units[i].Experts > 0 {
		if m.s.Kernels.ExpertFlopsPerSec > 0 {
			multiply = m.s.Kernels.ExpertFlopsPerSec
		}
		halves = 0 // its products decode as they go
		used = m.neededShare(rows)
		each = max(1, n*float64(m.h.Experts.Used)/float64(m.h.Experts.Count)/used)
	}
	for _, x := range l.matrices {
		switch {
		case x.everyRow && rows < all:
			t += m.s.Kernels.product(x, float64(all), multiply) + over(x.bytes, m.halvesBytesPerSec(all))
		case rows > 0:
			t += used * (m.s.Kernels.product(x, each, multiply) + over(x.bytes, halves))
		}
	}
	return t
}

// waitsOf is how many of a unit's kernels wait for the one before in a step of rows.
func (m *machine) waitsOf(l *load, rows int) int {
	if !m.likeFewRows(rows) {
		return l.waits
	}
	waits := l.fewRowsWaits
	if l.attention && rows <= shaders.FewRows {
		waits++ // its parts are put together
	}
	if l.turns && (rows > shaders.FewRows || shaders.KVQuantised(m.p.KV.Type)) {
		waits++
	}
	return waits
}

// halvesBytesPerSec is how fast weights are converted to half-precision floats in a step of rows; 0: they are not converted.
func (m *machine) halvesBytesPerSec(rows int) float64 {
	if rows > shaders.FewRows && m.p.Scratch.Halves.Bytes > 0 {
		return m.s.Kernels.HalvesBytesPerSec
	}
	return 0
}

// attentionSeconds is the seconds of one layer's rows over the cache: at least as long as reading it.
func (m *machine) attentionSeconds(rows, ctx int) float64 {
	h := m.h
	first := float64(ctx - rows + 1)
	positions := float64(rows) * (first + float64(ctx)) / 2
	flops := 2 * positions * float64(h.HeadCount) * float64(h.KeyLength+h.ValueLength)
	bytes := float64(ctx) * float64(h.HeadCountKV) * float64(m.p.KV.RowBytes)
	return max(m.s.Kernels.attention(flops, rows), over(bytes, m.s.Kernels.BytesPerSec))
}
