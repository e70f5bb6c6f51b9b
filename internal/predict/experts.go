package predict

import (
	"math"

	"leat/internal/plan"
	"leat/shaders"
)

// ExpertHits is how steps find the experts that share slots, measured or assumed. A plan can't know which experts
// a text uses: unless it is told, all are as likely.
type ExpertHits struct {
	HitRate   float64 // the part of the experts that layers needed that VRAM had
	DiskShare float64 // of the others, the part that came from disk
	Needed    float64 // the part of a layer's experts that a step needed; 0: what its rows need if all are as likely
}

// Seconds measured with an H200, for machines whose rehearsal doesn't tell them.
const (
	hostTrip        = 80e-6 // a router's choice on its way to the host, and the answer's way back
	conditionalTrip = 6e-6  // what a layer takes longer that runs without asking the host
	returnTrip      = 50e-6 // of a step that goes back to a layer which ran in vain, until it goes on as one that asks
	uploadDelay     = 18e-6 // from a router's choice until the upload of missing experts is handed in
	burstTrip       = 25e-6 // of a burst beside its bytes
)

// Shares measured with an H200.
const (
	burstShare   = 0.85 // of the link's rate that bursts reach: few bytes go by one queue
	skippedShare = 0.3  // of a dispatch's time that a skipped one still takes
	burstFloor   = 0.25 // of the nearest measured burst's time: the least that a smaller one is taken to need
)

// hitsOf is how a step of rows finds the experts of a unit that share slots.
func (m *machine) hitsOf(u *plan.Unit, rows int) ExpertHits {
	x := m.p.Experts
	hits := ExpertHits{HitRate: x.SlotShare(u.Layer), DiskShare: x.DiskShare()}
	if m.hits != nil {
		hits = *m.hits
	}
	if needed := m.neededShare(rows); hits.Needed == 0 || hits.Needed > needed {
		hits.Needed = needed
	}
	return hits
}

// neededShare is the part of a layer's experts that a step of rows needs, if all are as likely.
func (m *machine) neededShare(rows int) float64 {
	x := &m.h.Experts
	if x.Count == 0 {
		return 1
	}
	return 1 - math.Pow(1-float64(x.Used)/float64(x.Count), float64(rows))
}

// missChance is how likely a step's layer lacks one of the experts of a unit.
func (m *machine) missChance(u *plan.Unit, rows int) float64 {
	hits := m.hitsOf(u, rows)
	return 1 - math.Pow(hits.HitRate, hits.Needed*float64(m.p.Experts.Count))
}

// setWaves says in which waves the missing experts of a step come; bytes are those of all of them.
func (m *machine) setWaves(w *Work, bytes float64, rows int) {
	if rows <= shaders.FewRows || bytes <= 0 {
		return
	}
	w.waveShare = min(1, plan.WaveBytes/bytes)
	if rows*m.h.Experts.Used >= plan.AlmostAll*m.h.Experts.Count && !w.OneQueue {
		w.earlyShare = min(1, plan.EarlyWaves*w.waveShare)
	}
}

// setMisses says how long a step of few rows waits for a layer's missing experts, beside the host. Their upload is handed in before the
// resident ones run, so what the host and the device do with those is hidden by it. What comes from disk is uploaded when all of it has been read.
func (m *machine) setMisses(w *Work, u *plan.Unit, bytes, read float64, rows int) {
	missing := m.missChance(u, rows)
	if rows > shaders.FewRows || bytes <= 0 || missing <= 0 || m.p.InPlace {
		return
	}
	ask, _ := m.trips()
	slower := 1 + m.idle*(idleUploads-1)
	w.missSeconds = missing * max(0, uploadDelay+slower*m.s.Link.burst((bytes-read)/missing)-ask)
	if read > 0 {
		w.diskMissSeconds = missing * slower * m.s.Link.burst(read/missing)
	}
}

// trips is what a layer takes longer that asks the host, and one that doesn't; 0: the device can't.
func (m *machine) trips() (ask, conditional float64) {
	if r := m.s.Rehearsal; r.Sound() && r.HostTrip > 0 {
		return r.HostTrip, r.ConditionalTrip
	}
	return hostTrip, conditionalTrip
}

// routeSeconds is how long the device waits for the host to say where a layer's experts are, and for the missing ones to be on their way.
// Those run after the others.
func (m *machine) routeSeconds(i, rows int) float64 {
	u := &m.p.Units[i]
	if u.Tier != plan.Cached || rows == 0 {
		return 0
	}
	ask, conditional := m.trips()
	missing := m.missChance(u, rows)
	switch {
	case rows > shaders.FewRows: // the host is asked for once more
		return ask * (1 + missing)
	case rows > 1 || conditional == 0 || missing >= plan.ConditionalBelow:
		return ask
	}
	return conditional + missing*(ask+returnTrip+m.skippedLayers(missing)*skippedShare*float64(m.fewRowsWaitsOf(u.Layer))*m.s.Kernels.DispatchTime.Seconds())
}

// skippedLayers is how many layers are skipped, on average, after one that lacks an expert: the rest of its submission and all of the next,
// which is under way before the host is asked.
func (m *machine) skippedLayers(missing float64) float64 {
	return min(1.5*float64(plan.Stride(missing))-0.5, float64(m.p.Experts.Layers)/2)
}

// fewRowsWaitsOf is how many kernels of a layer wait for another, in steps of few rows.
func (m *machine) fewRowsWaitsOf(layer int) (n int) {
	for i := range m.p.Units {
		if m.p.Units[i].Layer == layer {
			n += m.loads[i].fewRowsWaits
		}
	}
	return n
}
