package predict

import (
	"leat/internal/arch"
	"leat/shaders"
)

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
	if l.state {
		t += m.stateSeconds(i, rows)
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

// attentionSeconds is the time of the attention of unit i's layer for rows whose last one is at position ctx-1: that of its operations, or of reading the
// positions of the KV cache that the rows see, whichever is longer.
func (m *costModel) attentionSeconds(i, rows, ctx int) float64 {
	layer := m.plan.Units[i].Layer
	s := &m.hyper.Layers[layer]
	mask := &m.hyper.Masks[s.Mask]
	first, _ := mask.Seen(ctx-rows, ctx-1)
	flops := 2 * positionsSeen(mask, rows, ctx) * float64(s.HeadCount) * float64(s.KeyLength+s.ValueLength)
	bytes := float64(ctx-first) * float64(s.HeadCountKV) * float64(m.plan.KV.Layers[layer].RowBytes)
	return max(m.speeds.Kernels.attention(flops, rows), over(bytes, m.speeds.Kernels.BytesPerSec))
}

// positionsSeen is how many positions rows see, all together, whose last one is at position ctx-1.
func positionsSeen(mask *arch.Mask, rows, ctx int) (n float64) {
	if *mask == (arch.Mask{}) {
		return float64(rows) * float64(2*ctx-rows+1) / 2
	}
	for pos := ctx - rows; pos < ctx; pos++ {
		first, last := mask.Seen(pos, ctx-1)
		n += float64(last - first + 1)
	}
	return n
}

// stateSeconds is the time of the scan of unit i's layer over rows of one sequence: of reading and writing the state once, or of its operations, whichever
// is longer.
func (m *costModel) stateSeconds(i, rows int) float64 {
	var values float64
	for _, part := range m.hyper.StateParts(m.plan.Units[i].Layer) {
		values += float64(part.Rows) * float64(part.Cols)
	}
	const flops, bytes = 6, 4 + 4 // of each value: it fades, takes in, and counts in a sum; it is read and written
	return max(m.speeds.Kernels.attention(flops*values*float64(rows), 1), over(bytes*values, m.speeds.Kernels.BytesPerSec))
}
