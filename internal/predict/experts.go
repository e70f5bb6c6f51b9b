package predict

import (
	"math"

	"leat/internal/plan"
	"leat/shaders"
)

// ExpertHits is how steps found the experts that share slots: as it was measured, or is supposed. What a plan can't know is which experts
// a text uses; where nothing is said, all are as likely.
type ExpertHits struct {
	HitRate   float64 // the part of what layers needed that VRAM had
	DiskShare float64 // of the others, the part that came from disk
	Needed    float64 // the part of a layer's experts that a step needed; 0: what its rows need if all are as likely
}

// foundIn is how a step of rows finds the experts of a unit that share slots.
func (m *machine) foundIn(u *plan.Unit, rows int) ExpertHits {
	x := m.p.Experts
	found := ExpertHits{HitRate: x.SlotShare(u.Layer), DiskShare: x.DiskShare()}
	if m.found != nil {
		found = *m.found
	}
	if needed := m.touched(rows); found.Needed == 0 || found.Needed > needed {
		found.Needed = needed
	}
	return found
}

// touched is the part of a layer's experts that a step of rows needs, if all are as likely.
func (m *machine) touched(rows int) float64 {
	x := &m.h.Experts
	if x.Count == 0 {
		return 1
	}
	return 1 - math.Pow(1-float64(x.Used)/float64(x.Count), float64(rows))
}

// waves says how a step's experts come, of which so many bytes do.
func (m *machine) waves(w *Work, bytes float64, rows int) {
	if rows <= shaders.FewRows || bytes <= 0 {
		return
	}
	w.wave = min(1, plan.WaveBytes/bytes)
	if rows*m.h.Experts.Used >= plan.AlmostAll*m.h.Experts.Count && !w.OneQueue {
		w.early = min(1, plan.EarlyWaves*w.wave)
	}
}

// What was measured beside an H200, for where it was not rehearsed.
const (
	routeTrip  = 80e-6 // seconds of a layer's choice on its way to the host, and of the answer
	aheadTrip  = 6e-6  // of a layer that goes ahead
	burstTrip  = 25e-6 // of a burst, beside its bytes
	burstShare = 0.85  // of the link's rate, in bursts: few bytes go by one queue
	heard      = 18e-6 // from a layer's choice until the upload of what it misses is handed in
	backTrip   = 50e-6 // of a step that goes back to a layer that went ahead in vain, until it goes on as others that ask
	leftOut    = 0.3   // of a dispatch's time, if it is left out
)

// missing is how likely a step's layer lacks one of the experts of a unit.
func (m *machine) missing(u *plan.Unit, rows int) float64 {
	found := m.foundIn(u, rows)
	return 1 - math.Pow(found.HitRate, found.Needed*float64(m.p.Experts.Count))
}

// trip is how long the device waits for the host to say where a layer's experts are, and for what is missing to be on its way.
// Those that are missing run after the others.
func (m *machine) trip(i, rows int) float64 {
	u := &m.p.Units[i]
	if u.Tier != plan.Cached || rows == 0 {
		return 0
	}
	asks, ahead, known := routeTrip, aheadTrip, m.s.Rehearsal.Sound()
	if r := m.s.Rehearsal; known && r.Trip > 0 {
		asks, ahead = r.Trip, r.Ahead
	}
	missing := m.missing(u, rows)
	switch {
	case rows > shaders.FewRows: // the host is asked for once more
		return asks * (1 + missing)
	case rows > 1 || ahead == 0 || missing >= plan.Seldom:
		return asks
	}
	// Behind a layer that lacks one all is left out, up to the end of the submission behind its own, before the host is asked.
	layers := min(1.5*float64(plan.Stride(missing))-0.5, float64(m.p.Experts.Layers)/2)
	return ahead + missing*(asks+backTrip+layers*leftOut*float64(m.fewWaits(u.Layer))*m.s.DispatchTime.Seconds())
}

// fewWaits is how many kernels of a layer wait for another, in steps of few rows.
func (m *machine) fewWaits(layer int) (n int) {
	for i := range m.p.Units {
		if m.p.Units[i].Layer == layer {
			n += m.loads[i].few
		}
	}
	return n
}

// misses says how long a step of few rows waits for a layer's experts that are missing, beside the host. They are handed in before the others run: what
// the host and the device do with those is hidden behind the bytes. What comes from disk is uploaded when all of it has come.
func (m *machine) misses(w *Work, u *plan.Unit, bytes, read float64, rows int) {
	missing := m.missing(u, rows)
	if rows > shaders.FewRows || bytes <= 0 || missing <= 0 || m.p.InPlace {
		return
	}
	asks, slower := routeTrip, 1+m.resting*(restingUploads-1)
	if r := m.s.Rehearsal; r.Sound() && r.Trip > 0 {
		asks = r.Trip
	}
	w.behind = missing * max(0, heard+slower*m.burst((bytes-read)/missing)-asks)
	if read > 0 {
		w.late = missing * slower * m.burst(read/missing)
	}
}

// burst is how long an upload takes that nothing came before.
func (m *machine) burst(bytes float64) float64 {
	list, link := m.s.Bursts, over(bytes, m.s.LinkBytesPerSec)
	if bytes <= 0 {
		return 0
	}
	if len(list) < 2 {
		return burstTrip + link/burstShare
	}
	i := 1
	for i < len(list)-1 && float64(list[i].Bytes) < bytes {
		i++
	}
	a, b := &list[i-1], &list[i]
	t := a.Seconds + (b.Seconds-a.Seconds)*(bytes-float64(a.Bytes))/float64(b.Bytes-a.Bytes)
	return max(t, a.Seconds/4, link)
}
