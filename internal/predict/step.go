package predict

import (
	"leat/internal/plan"
	"leat/shaders"
)

// hostSeconds is how long the device waits for the host in a step of rows. With a rehearsal it is the measured time outside layers and head.
func (m *costModel) hostSeconds(rows int) float64 {
	if r := m.speeds.Rehearsal; m.shares != nil {
		return r.secondsAt(r.Overhead, StepShape{rows, rows})
	}
	return m.speeds.HostOverheadPerStep.Seconds()
}

// step returns the work of each unit in a step of rows. The last row attends to ctx positions. head says whether the last row's logits are needed.
func (m *costModel) step(rows, ctx int, head bool) []Work {
	works := make([]Work, len(m.plan.Units))
	var compute, link float64
	submission := m.submissionSeconds()
	layers := map[int]float64{}
	for i := range works {
		u, w := &m.plan.Units[i], &works[i]
		w.OneQueue = m.speeds.Link.OneQueue
		if m.loads[i].head && !head {
			continue // the step doesn't upload it
		}
		through := m.rowsThrough(i, rows, head)
		if m.shares != nil {
			w.ComputeSeconds = m.rehearsedSeconds(i, StepShape{rows, ctx}, through, layers)
		} else {
			w.ComputeSeconds = m.kernelSeconds(i, rows, through, ctx)
		}
		w.ComputeSeconds *= 1 + m.idle*(idleKernels-1)
		uploaded, read := m.traffic(u, through)
		if u.Tier == plan.Cached {
			m.setWaves(w, uploaded, through)
			m.setMisses(w, u, uploaded, read, through)
		}
		if !m.plan.InPlace {
			w.LinkSeconds = over(uploaded, m.speeds.Link.BytesPerSec)
		}
		w.DiskSeconds = over(read, m.speeds.Disk.BytesPerSec)
		compute, link = compute+w.ComputeSeconds, link+w.LinkSeconds
		if u.Tier == plan.Host || u.Tier == plan.Disk {
			w.ComputeSeconds += submission
		}
	}
	for i, slower := 0, m.speeds.Link.underLoad(link, compute); i < len(works); i++ {
		works[i].LinkSeconds *= slower
	}
	return works
}

// rowsThrough is how many of a step's rows pass through all of unit i. It is all rows, except in the last layer of a step of several rows: there it is 1 if the
// last row's logits are needed (head), else 0. Matrices with everyRow multiply all rows in any case.
func (m *costModel) rowsThrough(i, rows int, head bool) int {
	switch {
	case !m.loads[i].last || rows == 1:
		return rows
	case head:
		return 1
	}
	return 0
}

// submissionSeconds is the device's time for a streamed unit's own submission; 0: no rehearsal streamed units.
func (m *costModel) submissionSeconds() float64 {
	if m.shares == nil {
		return 0
	}
	s := &m.speeds.Rehearsal.Streamed
	return s.perUnit(over(float64(s.Bytes), m.speeds.Link.BytesPerSec), m.speeds.Link.OneQueue)
}

// traffic is how many bytes of a unit a step of rows uploads, and how many of these it reads from disk.
func (m *costModel) traffic(u *plan.Unit, rows int) (uploaded, read float64) {
	bytes := float64(u.Bytes)
	switch u.Tier {
	case plan.Host:
		return bytes, 0
	case plan.Disk:
		return bytes, bytes
	case plan.Cached:
		hits := m.expertHits(u, rows)
		bytes *= hits.Needed * (1 - hits.HitRate)
		return bytes, bytes * hits.DiskShare
	}
	return 0, 0
}

// rehearsedSeconds is the time of unit i in a step of shape s: its share of the rehearsed time of the layer or the head, and [costModel.routeSeconds], which
// that time does not include. through is how many rows pass through all of the unit, see rowsThrough. layers caches the time of whole layers, by number,
// because several units may belong to one.
func (m *costModel) rehearsedSeconds(i int, s StepShape, through int, layers map[int]float64) float64 {
	x, r := &m.shares[i], m.speeds.Rehearsal
	if x.class == "" {
		return x.share*r.Head + m.routeSeconds(i, s.Rows)
	}
	l := m.plan.Units[i].Layer
	if _, known := layers[l]; !known {
		layers[l] = r.layerSeconds(x.class, x.layerBytes, s)
	}
	if through == s.Rows {
		return x.share*layers[l] + m.routeSeconds(i, s.Rows)
	}
	every, all := 0.0, 0.0
	for _, t := range m.loads[i].matrices {
		if all += t.bytes; t.everyRow {
			every += t.bytes
		}
	}
	every = over(every, all)
	t := every * layers[l]
	if through > 0 {
		t += (1 - every) * r.layerSeconds(x.class, x.layerBytes, StepShape{through, s.Context})
	}
	return x.share*t + m.routeSeconds(i, through)
}

// likeFewRows reports whether a step of rows runs fused kernels, as steps of few rows do. On devices that don't compute in half-precision floats, steps of
// many rows run them too.
func (m *costModel) likeFewRows(rows int) bool {
	return m.plan.Scratch.Q8.Bytes > 0 && (rows <= shaders.FewRows || m.plan.Scratch.Halves.Bytes == 0)
}
