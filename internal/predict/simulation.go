package predict

import "leat/internal/plan"

// simulation runs steps, one after another, on three lanes that work at the same time. The disk
// reads ahead of the link until staging is full. The link uploads ahead of the kernels until the ring is full.
// If uploads and kernels share one queue, link and kernels take turns. Times are seconds since the simulation began.
type simulation struct {
	model          *costModel // the work to simulate
	stagingSeconds float64    // time that the disk takes to fill staging

	read     float64 // time at which the disk has ended its work so far
	uploaded float64 // time at which the link has ended its work so far
	computed float64 // time at which the kernels have ended their work so far

	ringBytes int64      // size of the ring
	ringUsed  int64      // bytes of the units in the ring
	ring      []ringUnit // units in the ring, the oldest first
	unused    int        // number of units at the end of ring that no step has used yet
}

// ringUnit is a unit in the ring.
type ringUnit struct {
	bytes int64   // size of the unit
	free  float64 // time at which the unit's memory can be used again
}

// newSimulation begins with an empty ring and empty staging.
func (m *costModel) newSimulation() *simulation {
	f := &simulation{model: m, ringBytes: m.plan.RingSize()}
	f.stagingSeconds = over(float64(int64(m.plan.Staging.Slots)*m.plan.Staging.SlotBytes), m.speeds.Disk.BytesPerSec)
	return f
}

// afterLoading sets the simulation's start to that of a model that was just loaded: the ring holds the first units of a step, and staging
// is full.
func (f *simulation) afterLoading() *simulation {
	f.read = -f.stagingSeconds
	for i := range f.model.plan.Units {
		u := &f.model.plan.Units[i]
		if u.Resident() || u.Tier == plan.Cached {
			continue
		}
		if f.ringUsed+u.Bytes > f.ringBytes || f.model.loads[i].head { // the head is uploaded once a step needs it
			break
		}
		f.addToRing(u.Bytes)
		f.unused++
	}
	return f
}

// addToRing adds a unit of bytes to the ring, as the newest.
func (f *simulation) addToRing(bytes int64) {
	f.ringUsed += bytes
	f.ring = append(f.ring, ringUnit{bytes: bytes})
}

// run simulates one step. works has the work of each unit. The device first waits host seconds for the
// host. head says whether the step computes the head. It returns the time at which the step's last kernel ends.
func (f *simulation) run(works []Work, host float64, head bool) (end float64) {
	f.computed += host
	for i, w := range works {
		u := &f.model.plan.Units[i]
		if f.model.loads[i].head && !head {
			continue
		}
		if u.Resident() {
			f.computed += w.ComputeSeconds
			continue
		}
		if u.Tier == plan.Cached {
			f.runExperts(w)
			continue
		}
		if f.unused == 0 {
			f.computed = max(f.computed, f.upload(u.Bytes, w))
			f.unused = 1
		}
		f.computed += w.ComputeSeconds
		f.ring[len(f.ring)-f.unused].free = f.computed
		f.unused--
	}
	return f.computed
}

// runExperts simulates a layer's experts in slots. Missing experts are read and uploaded once the router has chosen. A step of many rows
// prefetches w.prefetchShare of them. Experts that are uploaded in waves run wave by wave, each while the next wave is uploaded.
func (f *simulation) runExperts(w Work) {
	if w.missSeconds > 0 || w.diskMissSeconds > 0 {
		f.runFewRows(w)
		return
	}
	end := func(free, seconds float64) float64 { // when a lane that is free from time free on has worked for seconds
		early := w.prefetchShare * seconds
		return max(free+early, f.computed) + seconds - early
	}
	arrived := f.computed
	if w.DiskSeconds > 0 {
		f.read = end(f.read, w.DiskSeconds)
		arrived = max(arrived, f.read)
	}
	if w.LinkSeconds > 0 {
		f.uploaded = end(f.uploaded, w.LinkSeconds)
		arrived = max(arrived, f.uploaded)
	}
	if w.waveShare == 0 || w.OneQueue {
		f.computed = arrived + w.ComputeSeconds
		return
	}
	f.computed = max(f.computed+w.ComputeSeconds, arrived+w.waveShare*w.ComputeSeconds)
}

// runFewRows simulates a layer's experts in a step of few rows. Missing experts are uploaded in a burst; experts on disk are read first.
func (f *simulation) runFewRows(w Work) {
	begin := f.computed
	arrived := max(f.uploaded, begin) + w.missSeconds // asking the host, which w.ComputeSeconds includes, hides the rest of the upload
	f.uploaded = max(f.uploaded, begin) + w.LinkSeconds
	if w.DiskSeconds > 0 {
		f.read = max(f.read, begin+uploadDelay) + w.DiskSeconds
		arrived = max(arrived, f.read+w.diskMissSeconds)
	}
	f.computed = arrived + w.ComputeSeconds
}

// upload simulates the upload of a unit of the given size to the ring. It begins when the ring has room. w is the unit's work, with the times that link and
// disk need. upload returns the time at which the unit's bytes are in the ring.
func (f *simulation) upload(bytes int64, w Work) float64 {
	start := f.uploaded
	for f.ringUsed+bytes > f.ringBytes && len(f.ring) > 0 {
		start = max(start, f.ring[0].free)
		f.ringUsed -= f.ring[0].bytes
		f.ring = f.ring[1:]
	}
	f.addToRing(bytes)
	end := start + w.LinkSeconds
	if w.OneQueue { // the upload begins after the kernels before it
		end = max(end, f.computed+w.LinkSeconds)
	}
	if w.DiskSeconds > 0 { // the link uploads pieces that have been read while the disk reads on
		f.read = max(f.read, start-f.stagingSeconds) + w.DiskSeconds
		end = max(end, f.read)
	}
	f.uploaded = end
	return end
}
