package predict

import "leat/internal/plan"

// flow simulates steps, one after another, on three lanes that work at the same time. The disk
// reads ahead of the link until staging is full, the link uploads ahead of the kernels until the ring is full.
// With one queue, link and kernels take turns.
type flow struct {
	m              *machine
	stagingSeconds float64 // the disk takes to fill staging

	read, uploaded, computed float64 // when disk, link and kernels have ended their work so far

	ringBytes int64
	ringUsed  int64
	ring      []ringUnit // oldest first
	unused    int        // units at the end of ring that were uploaded before any step used them
}

// ringUnit is a unit in the ring. Its memory can be used anew from free on.
type ringUnit struct {
	bytes int64
	free  float64
}

func (m *machine) newFlow() *flow {
	f := &flow{m: m, ringBytes: m.p.RingSize()}
	f.stagingSeconds = over(float64(int64(m.p.Staging.Slots)*m.p.Staging.SlotBytes), m.s.Disk.BytesPerSec)
	return f
}

// prefilled has the flow begin as a loaded model does that has computed nothing yet: the ring holds the first units of a step, and staging
// is full.
func (f *flow) prefilled() *flow {
	f.read = -f.stagingSeconds
	for i := range f.m.p.Units {
		u := &f.m.p.Units[i]
		if u.Resident() || u.Tier == plan.Cached {
			continue
		}
		if f.ringUsed+u.Bytes > f.ringBytes || f.m.loads[i].head { // the head is brought once a step needs it
			break
		}
		f.hold(u.Bytes)
		f.unused++
	}
	return f
}

// hold adds a unit to the ring.
func (f *flow) hold(bytes int64) {
	f.ringUsed += bytes
	f.ring = append(f.ring, ringUnit{bytes: bytes})
}

// run simulates one step, given each unit's work, with or without the head. The device first waits host seconds for the
// host. It returns the time at which the step's last kernel ends.
func (f *flow) run(works []Work, host float64, head bool) (end float64) {
	f.computed += host
	for i, w := range works {
		u := &f.m.p.Units[i]
		if f.m.loads[i].head && !head {
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

// runExperts simulates a layer's experts. Uploads begin once the router has chosen, except for the share w.prefetchShare of a long step,
// which needs almost all experts. Experts that come in waves run wave by wave, each while the next is uploaded.
func (f *flow) runExperts(w Work) {
	if w.missSeconds > 0 || w.diskMissSeconds > 0 {
		f.runFewRows(w)
		return
	}
	end := func(free, seconds float64) float64 { // of a lane's work
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

// runFewRows simulates a layer's experts in a step of few rows. The missing ones are uploaded in a burst; those on disk are read first.
func (f *flow) runFewRows(w Work) {
	begin := f.computed
	arrived := max(f.uploaded, begin) + w.missSeconds // the rest of the upload is hidden, as is the host's part, which w.ComputeSeconds includes
	f.uploaded = max(f.uploaded, begin) + w.LinkSeconds
	if w.DiskSeconds > 0 {
		f.read = max(f.read, begin+uploadDelay) + w.DiskSeconds
		arrived = max(arrived, f.read+w.diskMissSeconds)
	}
	f.computed = arrived + w.ComputeSeconds
}

// upload simulates the upload of a unit, and returns the time at which its bytes are in the ring.
func (f *flow) upload(bytes int64, w Work) float64 {
	start := f.uploaded
	for f.ringUsed+bytes > f.ringBytes && len(f.ring) > 0 {
		start = max(start, f.ring[0].free)
		f.ringUsed -= f.ring[0].bytes
		f.ring = f.ring[1:]
	}
	f.hold(bytes)
	end := start + w.LinkSeconds
	if w.OneQueue { // after the kernels before it
		end = max(end, f.computed+w.LinkSeconds)
	}
	if w.DiskSeconds > 0 { // piece by piece: the link brings what has been read while the disk reads on
		f.read = max(f.read, start-f.stagingSeconds) + w.DiskSeconds
		end = max(end, f.read)
	}
	f.uploaded = end
	return end
}
