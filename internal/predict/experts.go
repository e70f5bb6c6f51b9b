package predict

import (
	"math"

	"leat/internal/plan"
	"leat/shaders"
)

// ExpertHits says which share of a layer's experts a step needs, which share of the needed ones is in VRAM, and which share of the missing ones is read from
// disk. The shares are measured or assumed: a plan can't know which experts a text uses.
type ExpertHits struct {
	HitRate   float64 // share of needed experts that are in VRAM
	DiskShare float64 // share of missing experts that are read from disk; all others are uploaded from RAM
	Needed    float64 // share of a layer's experts that a step needs; 0: the share that its rows need if all experts are used equally often
}

// Times in seconds, measured with an H200. They are for machines without a rehearsal that measured them.
const (
	hostTrip        = 80e-6 // a layer asks the host: the router's choice is copied to the host, and the host submits the layer's experts
	conditionalTrip = 6e-6  // a layer that runs without asking the host takes longer by this than one whose experts are all resident
	returnTrip      = 50e-6 // from when the host sees that a layer missed an expert until it submits the layer again
	uploadDelay     = 18e-6 // from a router's choice until the host submits the upload of missing experts
	burstTrip       = 25e-6 // a burst takes this in addition to the time of its bytes
)

// Ratios measured with an H200.
const (
	burstShare   = 0.85 // rate of a burst, as a share of the link's: few bytes are uploaded on one queue
	skippedShare = 0.3  // time of a skipped dispatch, as a share of an executed one's
	burstFloor   = 0.25 // least time of a burst smaller than all measured ones, as a share of the smallest measured one's
)

// expertHits is the [ExpertHits] of a unit of tier Cached in a step of the given number of rows: m.hits if it is set; if not, the shares if all experts are
// used equally often. Needed is never more than the rows need if all experts are used equally often.
func (m *costModel) expertHits(u *plan.Unit, rows int) ExpertHits {
	x := m.plan.Experts
	hits := ExpertHits{HitRate: x.SlotShare(u.Layer), DiskShare: x.DiskShare()}
	if m.hits != nil {
		hits = *m.hits
	}
	if needed := m.neededShare(rows); hits.Needed == 0 || hits.Needed > needed {
		hits.Needed = needed
	}
	return hits
}

// neededShare is the share of a layer's experts that a step of rows needs if all experts are used equally often; 1 if the model has no
// experts.
func (m *costModel) neededShare(rows int) float64 {
	x := &m.hyper.Experts
	if x.Count == 0 {
		return 1
	}
	return 1 - math.Pow(1-float64(x.Used)/float64(x.Count), float64(rows))
}

// missChance is the probability that a step of rows misses at least one expert of a unit of tier Cached.
func (m *costModel) missChance(u *plan.Unit, rows int) float64 {
	hits := m.expertHits(u, rows)
	return 1 - math.Pow(hits.HitRate, hits.Needed*float64(m.plan.Experts.Count))
}

// setWaves sets, for a step of many rows, how a unit's missing experts are uploaded in waves: which share is in one wave, and which share is uploaded before
// the router has chosen. bytes is the size of the missing experts. For steps of few rows it sets nothing.
func (m *costModel) setWaves(w *Work, bytes float64, rows int) {
	if rows <= shaders.FewRows || bytes <= 0 {
		return
	}
	w.waveShare = min(1, plan.WaveBytes/bytes)
	if rows*m.hyper.Experts.Used >= plan.PrefetchPairs*m.hyper.Experts.Count && !w.OneQueue {
		w.prefetchShare = min(1, plan.PrefetchWaves*w.waveShare)
	}
}

// setMisses sets how long a step of few rows waits for a unit's missing experts, in addition to the time of asking the host. bytes is the size of the missing
// experts, read the part of it that comes from disk. The host submits the upload first, then the resident experts: the upload runs during the rest of the
// host's time, and only what remains is a wait. Experts from disk are uploaded once all of them have been read. For steps of many rows it sets nothing.
func (m *costModel) setMisses(w *Work, u *plan.Unit, bytes, read float64, rows int) {
	missing := m.missChance(u, rows)
	if rows > shaders.FewRows || bytes <= 0 || missing <= 0 || m.plan.InPlace {
		return
	}
	ask, _ := m.tripSeconds()
	slower := 1 + m.idle*(idleUploads-1)
	w.missSeconds = missing * max(0, uploadDelay+slower*m.speeds.Link.burst((bytes-read)/missing)-ask)
	if read > 0 {
		w.diskMissSeconds = missing * slower * m.speeds.Link.burst(read/missing)
	}
}

// tripSeconds is how much longer a layer takes if it asks the host, and if it runs on a condition instead; conditional is 0 if a rehearsal found that the
// device can't run layers on a condition.
func (m *costModel) tripSeconds() (ask, conditional float64) {
	if r := m.speeds.Rehearsal; r.Sound() && r.HostTrip > 0 {
		return r.HostTrip, r.ConditionalTrip
	}
	return hostTrip, conditionalTrip
}

// routeSeconds is how much longer unit i takes in a step of rows because its experts are in slots, so that some may be missing; 0 for other units. If the
// host looks the chosen experts up, it is the wait for the host. If the device does, it is the time of the condition and, weighted by the probability of a
// miss, the wait for the host and the time of skipped dispatches. The time of uploads is not included.
func (m *costModel) routeSeconds(i, rows int) float64 {
	u := &m.plan.Units[i]
	if u.Tier != plan.Cached || rows == 0 {
		return 0
	}
	ask, conditional := m.tripSeconds()
	missing := m.missChance(u, rows)
	switch {
	case rows > shaders.FewRows: // a miss asks the host a second time
		return ask * (1 + missing)
	case rows > 1 || conditional == 0 || missing >= plan.ConditionalBelow:
		return ask
	}
	return conditional + missing*(ask+returnTrip+m.skippedLayers(missing)*skippedShare*float64(m.fewRowsWaitsOf(u.Layer))*m.speeds.Kernels.DispatchTime.Seconds())
}

// skippedLayers is how many layers are skipped, on average, after a layer that misses an expert: the rest of its submission,
// and the whole next submission, which the host submits before it sees the miss.
func (m *costModel) skippedLayers(missing float64) float64 {
	return min(1.5*float64(plan.LayersPerSubmission(missing))-0.5, float64(m.plan.Experts.Layers)/2)
}

// fewRowsWaitsOf is how many kernels of a layer wait for the kernel before them in steps of few rows.
func (m *costModel) fewRowsWaitsOf(layer int) (n int) {
	for i := range m.plan.Units {
		if m.plan.Units[i].Layer == layer {
			n += m.loads[i].fewRowsWaits
		}
	}
	return n
}
