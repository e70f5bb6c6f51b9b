package predict

import (
	"math"

	"leat/internal/plan"
	"leat/shaders"
)

// ExpertHits says how many experts steps need, and where they find them, measured or assumed. A plan can't know which experts
// a text uses.
type ExpertHits struct {
	HitRate   float64 // the share of needed experts found in VRAM
	DiskShare float64 // the share of missing experts read from disk; the others come from RAM
	Needed    float64 // the share of a layer's experts that a step needs; 0: what its rows need if all experts are as likely
}

// Seconds measured with an H200, for machines whose rehearsal doesn't tell them.
const (
	hostTrip        = 80e-6 // a layer asks the host: the router's choice goes there, and the answer comes back
	conditionalTrip = 6e-6  // what a layer that runs without asking the host takes longer than one whose experts are all resident
	returnTrip      = 50e-6 // from noticing that a layer lacked an expert until that layer is submitted again
	uploadDelay     = 18e-6 // from a router's choice until the upload of missing experts is handed in
	burstTrip       = 25e-6 // what a burst takes in addition to its bytes
)

// Ratios measured with an H200.
const (
	burstShare   = 0.85 // a burst's rate to the link's: few bytes go by one queue
	skippedShare = 0.3  // a skipped dispatch's time to an executed one's
	burstFloor   = 0.25 // the least time of a burst smaller than all measured ones, to that of the smallest measured one
)

// hitsOf is how many experts of a unit of tier Cached a step of rows needs, and where it finds them: as told, or with all experts as likely.
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

// neededShare is the share of a layer's experts that a step of rows needs, if all experts are as likely.
func (m *machine) neededShare(rows int) float64 {
	x := &m.h.Experts
	if x.Count == 0 {
		return 1
	}
	return 1 - math.Pow(1-float64(x.Used)/float64(x.Count), float64(rows))
}

// missChance is the probability that a step of rows misses at least one expert of a unit.
func (m *machine) missChance(u *plan.Unit, rows int) float64 {
	hits := m.hitsOf(u, rows)
	return 1 - math.Pow(hits.HitRate, hits.Needed*float64(m.p.Experts.Count))
}

// setWaves sets how the missing experts of a step of many rows, bytes in all, are uploaded in waves.
func (m *machine) setWaves(w *Work, bytes float64, rows int) {
	if rows <= shaders.FewRows || bytes <= 0 {
		return
	}
	w.waveShare = min(1, plan.WaveBytes/bytes)
	if rows*m.h.Experts.Used >= plan.PrefetchPairs*m.h.Experts.Count && !w.OneQueue {
		w.prefetchShare = min(1, plan.PrefetchWaves*w.waveShare)
	}
}

// setMisses sets how long a step of few rows waits for a layer's missing experts, in addition to asking the host: bytes in all, of which
// read come from disk. The upload is handed in before the resident experts run, so it hides their time. Experts from disk are uploaded
// once all of them have been read.
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

// trips is what a layer takes longer because it asks the host, and because it runs on a condition instead; conditional 0: the device
// can't.
func (m *machine) trips() (ask, conditional float64) {
	if r := m.s.Rehearsal; r.Sound() && r.HostTrip > 0 {
		return r.HostTrip, r.ConditionalTrip
	}
	return hostTrip, conditionalTrip
}

// routeSeconds is how long the device waits, at unit i, for the host to say where experts are and to hand in the upload of missing ones;
// 0 for units that hold no experts in slots.
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

// skippedLayers is how many layers are skipped, on average, after a layer that lacks an expert: the remaining ones of the same submission
// and all of the next, which is handed in before the host looks.
func (m *machine) skippedLayers(missing float64) float64 {
	return min(1.5*float64(plan.LayersPerSubmission(missing))-0.5, float64(m.p.Experts.Layers)/2)
}

// fewRowsWaitsOf is how many kernels of a layer wait for the one before, in steps of few rows.
func (m *machine) fewRowsWaitsOf(layer int) (n int) {
	for i := range m.p.Units {
		if m.p.Units[i].Layer == layer {
			n += m.loads[i].fewRowsWaits
		}
	}
	return n
}
