package predict

import "leat/internal/plan"

// flow runs steps one after another through three lanes that work at the same time: the
// disk ahead of the link by what staging holds, the link ahead of the kernels by what
// the ring holds. With one queue, the link and the kernels are one lane.
type flow struct {
	m                        *machine
	ring                     int64
	ahead                    float64 // seconds the disk reads before its bytes can go on
	read, uploaded, computed float64 // when each lane is free
	inRing                   []held
	there                    int // of inRing, the last ones, that no step has used
	used                     int64
}

// held is a unit in the ring, and when its memory comes free.
type held struct {
	bytes int64
	free  float64
}

func (m *machine) newFlow() *flow {
	f := &flow{m: m, ring: m.p.RingSize()}
	f.ahead = over(float64(int64(m.p.Staging.Slots)*m.p.Staging.SlotBytes), m.s.DiskBytesPerSec)
	return f
}

// rested is a model that was at rest: what a step begins with has come already, as much as
// the ring holds, and what is read next waits in staging.
func (f *flow) rested() *flow {
	f.read = -f.ahead
	for i := range f.m.p.Units {
		u := &f.m.p.Units[i]
		if u.Resident() || u.Tier == plan.Cached {
			continue
		}
		if f.used+u.Bytes > f.ring || f.m.loads[i].head { // the head comes for a step that asks for it
			break
		}
		f.hold(u.Bytes)
		f.there++
	}
	return f
}

func (f *flow) hold(bytes int64) {
	f.used += bytes
	f.inRing = append(f.inRing, held{bytes: bytes})
}

// run lets one step flow through, with the head or without, which waits so many seconds for
// the host, and returns when its last kernel ends.
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
			f.routed(w)
			continue
		}
		if f.there == 0 {
			f.computed = max(f.computed, f.upload(u.Bytes, w))
			f.there = 1
		}
		f.computed += w.ComputeSeconds
		f.inRing[len(f.inRing)-f.there].free = f.computed
		f.there--
	}
	return f.computed
}

// routed runs experts of which nobody knows which ones they are before the layer has chosen, but that a long step needs almost all.
// Where they come in waves, each runs while the next one comes.
func (f *flow) routed(w Work) {
	if w.behind > 0 || w.late > 0 {
		f.missed(w)
		return
	}
	came := func(free, seconds float64) float64 {
		early := w.early * seconds
		return max(free+early, f.computed) + seconds - early
	}
	there := f.computed
	if w.DiskSeconds > 0 {
		f.read = came(f.read, w.DiskSeconds)
		there = max(there, f.read)
	}
	if w.LinkSeconds > 0 {
		f.uploaded = came(f.uploaded, w.LinkSeconds)
		there = max(there, f.uploaded)
	}
	if w.wave == 0 || w.OneQueue {
		f.computed = there + w.ComputeSeconds
		return
	}
	f.computed = max(f.computed+w.ComputeSeconds, there+w.wave*w.ComputeSeconds)
}

// missed runs experts of few rows, of which those that are missing come in a burst: from RAM, and from disk behind all that is read.
func (f *flow) missed(w Work) {
	begin := f.computed
	there := max(f.uploaded, begin) + w.behind // the rest of their way is hidden, as the host's is that w's computing holds
	f.uploaded = max(f.uploaded, begin) + w.LinkSeconds
	if w.DiskSeconds > 0 {
		f.read = max(f.read, begin+heard) + w.DiskSeconds
		there = max(there, f.read+w.late)
	}
	f.computed = there + w.ComputeSeconds
}

// upload returns when a unit's bytes are there.
func (f *flow) upload(bytes int64, w Work) float64 {
	start := f.uploaded
	for f.used+bytes > f.ring && len(f.inRing) > 0 {
		start = max(start, f.inRing[0].free)
		f.used -= f.inRing[0].bytes
		f.inRing = f.inRing[1:]
	}
	f.hold(bytes)
	end := start + w.LinkSeconds
	if w.OneQueue { // behind the kernels before it
		end = max(end, f.computed+w.LinkSeconds)
	}
	if w.DiskSeconds > 0 { // piece by piece: what the disk has read is on its way
		f.read = max(f.read, start-f.ahead) + w.DiskSeconds
		end = max(end, f.read)
	}
	f.uploaded = end
	return end
}
