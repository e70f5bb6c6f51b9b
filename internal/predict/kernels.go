package predict

import "leat/shaders"

// kernelSeconds is the time of unit i, computed from the speeds of kernels because there is no rehearsal. It includes the wait for the host,
// [costModel.routeSeconds]. all is the number of the step's rows, rows the number of those that pass through the whole unit, see rowsThrough. ctx is the
// number of positions that the last row attends to.
func (m *costModel) kernelSeconds(i, all, rows, ctx int) float64 {
	l := &m.loads[i]
	t := m.productSeconds(i, all, rows)
	if rows == 0 {
		return t
	}
	if l.routes {
		t += m.speeds.Kernels.RouteTime.Seconds()
	}
	t += m.routeSeconds(i, rows)
	if l.attention {
		t += m.attentionSeconds(i, rows, ctx)
	}
	return t + float64(m.waitsOf(l, rows))*m.speeds.Kernels.DispatchTime.Seconds()
}

// productSeconds is the time of unit i's products with matrices. all is the number of the step's rows, rows the number of those that pass through the whole
// unit, see rowsThrough.
func (m *costModel) productSeconds(i, all, rows int) (t float64) {
	l, n := &m.loads[i], float64(rows)
	if l.head {
		n = 1
	}
	used, each := 1.0, n // the share of the matrices that is used, and the rows that each used matrix multiplies
	multiply, halves := m.speeds.Kernels.FlopsPerSec, m.halvesBytesPerSec(int(n))
	if m.plan.Units[i].Experts > 0 {
		if m.speeds.Kernels.ExpertFlopsPerSec > 0 {
			multiply = m.speeds.Kernels.ExpertFlopsPerSec
		}
		halves = 0 // products with experts decode weights as they multiply
		used = m.neededShare(rows)
		each = max(1, n*float64(m.hyper.Experts.Used)/float64(m.hyper.Experts.Count)/used)
	}
	for _, x := range l.matrices {
		switch {
		case x.everyRow && rows < all:
			t += m.speeds.Kernels.product(x, float64(all), multiply) + over(x.bytes, m.halvesBytesPerSec(all))
		case rows > 0:
			t += used * (m.speeds.Kernels.product(x, each, multiply) + over(x.bytes, halves))
		}
	}
	return t
}

// waitsOf is how many of a unit's kernels wait for the kernel before them, in a step of the given number of rows.
func (m *costModel) waitsOf(l *unitLoad, rows int) int {
	if !m.likeFewRows(rows) {
		return l.waits
	}
	waits := l.fewRowsWaits
	if l.attention && rows <= shaders.FewRows {
		waits++ // a second kernel joins the parts of attention
	}
	if l.ropes && (rows > shaders.FewRows || shaders.KVQuantised(m.plan.KV.Type)) {
		waits++
	}
	return waits
}

// halvesBytesPerSec is the rate at which a step of rows converts weights to half-precision floats; 0: it does not convert them.
func (m *costModel) halvesBytesPerSec(rows int) float64 {
	if rows > shaders.FewRows && m.plan.Scratch.Halves.Bytes > 0 {
		return m.speeds.Kernels.HalvesBytesPerSec
	}
	return 0
}

// attentionSeconds is the time of the attention of unit i's layer for rows whose last one attends to ctx positions: that of its operations, or of reading the KV
// cache, whichever is longer.
func (m *costModel) attentionSeconds(i, rows, ctx int) float64 {
	layer := m.plan.Units[i].Layer
	s := &m.hyper.Layers[layer]
	first := float64(ctx - rows + 1)
	positions := float64(rows) * (first + float64(ctx)) / 2
	flops := 2 * positions * float64(s.HeadCount) * float64(s.KeyLength+s.ValueLength)
	bytes := float64(ctx) * float64(s.HeadCountKV) * float64(m.plan.KV.Layers[layer].RowBytes)
	return max(m.speeds.Kernels.attention(flops, rows), over(bytes, m.speeds.Kernels.BytesPerSec))
}
