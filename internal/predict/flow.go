package predict

import "leat/internal/plan"

// flow runs steps one after another through three lanes that work at the same time: the
// disk reads ahead of the link by what staging holds, the link uploads ahead of the kernels by what
// the ring holds. With one queue, the link and the kernels are one lane.
type flow struct {
	m              *machine
	stagingSeconds float64 // that the disk reads before its bytes can go on

	read, uploaded, computed float64 // when each lane is free

	ringBytes int64
	ringUsed  int64
	ring      []ringUnit // oldest first
	unused    int        // how many of ring, the last ones, no step has used
}

// ringUnit is a unit in the ring, and when its memory comes free.
type ringUnit struct {
	bytes int64
	free  float64
}

func (m *machine) newFlow() *flow {
	f := &flow{m: m, ringBytes: m.p.RingSize()}
	f.stagingSeconds = over(float64(int64(m.p.Staging.Slots)*m.p.Staging.SlotBytes), m.s.Disk.BytesPerSec)
	return f
}

// prefilled begins with a model at rest: the ring holds the first units of a step, and staging what is read next.
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

func (f *flow) hold(bytes int64) {
	f.ringUsed += bytes
	f.ring = append(f.ring, ringUnit{bytes: bytes})
}

// run lets one step flow through, with the head or without. First the device waits host seconds for the
// host. It returns when the step's last kernel ends.
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

// runExperts runs a layer's experts. Which ones is known only once its router has chosen, except that a long step needs almost all.
// Experts that come in waves run wave by wave, each while the next one comes.
func (f *flow) runExperts(w Work) {
	if w.missSeconds > 0 || w.diskMissSeconds > 0 {
		f.runFewRows(w)
		return
	}
	end := func(free, seconds float64) float64 { // of a lane's work
		early := w.earlyShare * seconds
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

// runFewRows runs the experts of few rows. The missing ones come in a burst: from RAM, and from disk after all that is read before.
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

// upload returns when a unit's bytes are in the ring.
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
