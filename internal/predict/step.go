package predict

import (
	"leat/internal/plan"
	"leat/shaders"
)

// hostSeconds is how long the device waits for the host in a step of rows. With a rehearsal it is the time
// outside layers and head.
func (m *machine) hostSeconds(rows int) float64 {
	if r := m.s.Rehearsal; m.shares != nil {
		return r.at(r.Overhead, StepShape{rows, rows})
	}
	return m.s.HostOverheadPerStep.Seconds()
}

// step is each unit's work in a step of rows, the last of which attends to ctx positions. head says whether the last row's logits are needed.
func (m *machine) step(rows, ctx int, head bool) []Work {
	works := make([]Work, len(m.p.Units))
	var compute, link float64
	submission := m.submissionSeconds()
	layers := map[int]float64{}
	for i := range works {
		u, w := &m.p.Units[i], &works[i]
		w.OneQueue = m.s.Link.OneQueue
		if m.loads[i].head && !head {
			continue // the step doesn't bring it
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
		if !m.p.InPlace {
			w.LinkSeconds = over(uploaded, m.s.Link.BytesPerSec)
		}
		w.DiskSeconds = over(read, m.s.Disk.BytesPerSec)
		compute, link = compute+w.ComputeSeconds, link+w.LinkSeconds
		if u.Tier == plan.Host || u.Tier == plan.Disk {
			w.ComputeSeconds += submission
		}
	}
	for i, slower := 0, m.s.Link.underLoad(link, compute); i < len(works); i++ {
		works[i].LinkSeconds *= slower
	}
	return works
}

// rowsThrough is how many of a step's rows pass through unit i, apart from its matrices with everyRow: all rows, but in the last layer
// only the row whose logits are needed.
func (m *machine) rowsThrough(i, rows int, head bool) int {
	switch {
	case !m.loads[i].last || rows == 1:
		return rows
	case head:
		return 1
	}
	return 0
}

// submissionSeconds is what a streamed unit costs the compute lane because it has a submission of its own.
func (m *machine) submissionSeconds() float64 {
	if m.shares == nil {
		return 0
	}
	s := &m.s.Rehearsal.Streamed
	return s.perUnit(over(float64(s.Bytes), m.s.Link.BytesPerSec), m.s.Link.OneQueue)
}

// traffic is how many bytes of a unit a step of rows uploads, and how many of these it reads from disk.
func (m *machine) traffic(u *plan.Unit, rows int) (uploaded, read float64) {
	bytes := float64(u.Bytes)
	switch u.Tier {
	case plan.Host:
		return bytes, 0
	case plan.Disk:
		return bytes, bytes
	case plan.Cached:
		hits := m.hitsOf(u, rows)
		bytes *= hits.Needed * (1 - hits.HitRate)
		return bytes, bytes * hits.DiskShare
	}
	return 0, 0
}

// rehearsedSeconds is the seconds of unit i's kernels by the rehearsal, at shape s. through is how many rows pass, see rowsThrough.
// layers keeps the seconds of whole layers, by number, for the layer's other units.
func (m *machine) rehearsedSeconds(i int, s StepShape, through int, layers map[int]float64) float64 {
	x, r := &m.shares[i], m.s.Rehearsal
	if x.class == "" {
		return x.share*r.Head + m.routeSeconds(i, s.Rows)
	}
	l := m.p.Units[i].Layer
	if _, known := layers[l]; !known {
		layers[l] = r.layer(x.class, x.layerBytes, s)
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
		t += (1 - every) * r.layer(x.class, x.layerBytes, StepShape{through, s.Context})
	}
	return x.share*t + m.routeSeconds(i, through)
}

// likeFewRows reports whether a step of rows has the fused kernels of steps of few rows. Longer steps have them too on devices that don't
// compute in half-precision floats.
func (m *machine) likeFewRows(rows int) bool {
	return m.p.Scratch.Q8.Bytes > 0 && (rows <= shaders.FewRows || m.p.Scratch.Halves.Bytes == 0)
}
