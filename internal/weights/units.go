package weights

import (
	"context"
	"fmt"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/xfer"
)

// Units brings the units of the plan, except experts in slots, to VRAM in the order of execution: resident ones once, the others through the ring, step
// after step. The goroutine that runs the steps calls the exported methods.
type Units struct {
	lock    *monitor       // guards the fields from steps on, and the states of sources
	vram    *vram          // memory for resident units and the ring
	sources *sources       // where each unit's bytes come from, by index in the plan
	fetcher *fetcher       // reads and uploads for units
	list    []unit         // the units with their places, by index in the plan
	fetches chan unitFetch // fetches whose reads the walker has started, on their way to the feeder
	serving int            // step that the walker brings bytes for, counted from 1; 0: it loads bytes to keep. Only the walker uses the field.

	// The fields below are guarded by lock.
	steps     stepLog         // steps begun and aborted
	submitted []submittedUnit // streamed units whose uploads are submitted and that no step has acquired, oldest first
	acquired  Place           // place of the streamed unit that is acquired and not released; the zero Place: none is
	ringFull  bool            // the ring has no room for the next unit until a step releases one
	resident  xfer.Ticket     // ticket of the uploads of resident units submitted so far
}

// unit is a unit of the plan, with its place if it is resident.
type unit struct {
	*plan.Unit
	place Place // where a resident unit is, once its upload is submitted
}

// unitFetch is a fetch of a piece of a unit, on its way from the walker, which has started the read if there is one, to the feeder, which uploads it.
type unitFetch struct {
	fetch
	unit     int  // index in the plan
	step     int  // step that the bytes are for; 0: they stay in VRAM
	first    bool // no other piece of the unit comes before
	hostOnly bool // the bytes go to the host copy, and are not uploaded now
}

// submittedUnit is a streamed unit in the ring whose upload is submitted.
type submittedUnit struct {
	unit  int   // index of the unit in the plan
	step  int   // step that the bytes are for
	place Place // where the unit is in the ring
}

// stepLog tells the walker which steps have begun and been aborted. It is used under the lock.
type stepLog struct {
	begun   int    // steps that have begun
	aborted int    // number of the last step that was aborted, whose bytes are dropped
	heads   []bool // for each step that has begun and that the walker has not come to: does it want the head?
	ended   bool   // the walker has ended, because no unit is streamed
}

// newUnits makes the units of the store's plan, not loaded yet, and allocates their staging. It starts no goroutine and takes no VRAM. After an error
// the caller closes u.
func newUnits(s *Store) (u *Units, err error) {
	p := s.o.Plan
	u = &Units{lock: &s.lock, vram: &s.vram, sources: s.newSources("units", len(p.Units)), list: make([]unit, len(p.Units))}
	if u.fetcher, err = newFetcher(s, p.Staging, min(plan.ReadDepth*s.disk.drives, p.Staging.Slots)); err != nil {
		return u, err
	}
	u.adopt(p)
	return u, nil
}

// adopt switches the units to plan p. Units with a new tier, or on their way to VRAM, are brought again. No goroutine may be loading.
func (u *Units) adopt(p *plan.Plan) {
	for i := range p.Units {
		v, at, src := &p.Units[i], &u.list[i], &u.sources.list[i]
		if at.Unit == nil || at.Tier != v.Tier {
			*src = source{unit: &v.Unit, tag: i, tier: v.Tier, block: v.Block, pieces: pieces(v, p.Staging.SlotBytes, u.fetcher.disk.stripe)}
		}
		if at.Unit = v; src.state == reading {
			src.state = absent
		}
	}
	u.submitted, u.acquired, u.ringFull = nil, Place{}, false
	u.steps.heads, u.steps.ended = nil, false
}

// start starts the readers of the disk, and makes the channel to the feeder. The walker and the feeder must not run yet.
func (u *Units) start() {
	u.fetcher.start()
	u.fetches = make(chan unitFetch, 2*u.fetcher.maxReads)
}

// close frees staging and pinned memory. The store frees the units' VRAM.
func (u *Units) close() error {
	var err error
	if u.fetcher != nil {
		err = u.fetcher.close()
	}
	u.sources.close()
	return err
}

// begin notes that a step begins, and whether it wants the head.
func (l *stepLog) begin(head bool) {
	l.begun++
	if !l.ended {
		l.heads = append(l.heads, head)
	}
}

// next is the number of the first step that the walker has not come to.
func (l *stepLog) next() int { return l.begun - len(l.heads) + 1 }

// wantsHead waits until the step that the walker is at has begun, and reports whether it wants the head.
func (u *Units) wantsHead(ctx context.Context) (head bool, err error) {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	l := &u.steps
	if err := u.lock.wait(ctx, func() bool { return len(l.heads) > 0 }); err != nil {
		return false, err
	}
	head = l.heads[0]
	l.heads = append(l.heads[:0], l.heads[1:]...)
	return head, nil
}

// isAborted reports whether a step, or one after it, has been aborted.
func (u *Units) isAborted(step int) bool {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	return step <= u.steps.aborted
}

// UploadSubmitted reports whether [Units.Acquire] of unit i would not wait: the unit's upload is submitted, though perhaps not ended. For a streamed unit,
// i must be the next in the order of execution.
func (u *Units) UploadSubmitted(i int) bool {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	return u.uploadSubmittedLocked(i)
}

// uploadSubmittedLocked is [Units.UploadSubmitted] for callers that hold the lock.
func (u *Units) uploadSubmittedLocked(i int) bool {
	if u.list[i].Tier == plan.VRAM {
		return u.sources.list[i].state == present
	}
	return len(u.submitted) > 0 && u.submitted[0].step > u.steps.aborted
}

// Acquire waits until the upload of unit i of the plan is submitted, and gives the unit's place; the reader must still wait for the upload's end, see
// [Units.Waits]. Units must be acquired in execution order, and each streamed one released before the next is acquired. If ctx ends while Acquire waits,
// it returns ctx's error once [Store.Wake] is called.
func (u *Units) Acquire(ctx context.Context, i int) (Place, error) {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	if err := u.lock.wait(ctx, func() bool { return u.uploadSubmittedLocked(i) }); err != nil {
		return Place{}, err
	}
	if u.list[i].Tier == plan.VRAM {
		return u.list[i].place, nil
	}
	a := u.submitted[0]
	if a.unit != i {
		return Place{}, fmt.Errorf("acquire unit %d: the ring brings unit %d next", i, a.unit)
	}
	u.submitted = append(u.submitted[:0], u.submitted[1:]...)
	u.acquired = a.place
	return a.place, nil
}

// Waits appends to points the points that the step's queue must wait for before it reads the bytes of a place: none if the queue has waited for their
// upload before. The caller must submit work that waits for all of them, because Waits does not give them again.
func (u *Units) Waits(p Place, points []vk.Point) []vk.Point {
	return u.fetcher.waits(p.ticket, points)
}

// Release gives back the streamed unit acquired last: its place in the ring may be overwritten once the compute timeline reaches value, which work already
// submitted must signal.
func (u *Units) Release(value uint64) {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	u.vram.ring.release(value)
	u.acquired = Place{}
	u.lock.changed.Broadcast()
}

// abort drops streamed units that have arrived and are to arrive for the step begun last, whose last submission signals value. It releases the unit that
// is acquired, and waits for its upload.
func (u *Units) abort(value uint64) error {
	u.fetcher.waitedFor = xfer.Ticket{} // work that waits for these uploads may not have been submitted
	if u.acquired.Streamed {
		if err := u.fetcher.up.Wait(context.Background(), u.acquired.ticket); err != nil {
			return err
		}
		u.Release(value)
	}
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	u.steps.aborted = u.steps.begun
	u.lock.changed.Broadcast()
	return nil
}

// loaded waits as [Store.Loaded] does, but not for the embedding.
func (u *Units) loaded(ctx context.Context) error {
	u.lock.mu.Lock()
	p := u.sources.progress
	err := u.lock.wait(ctx, func() bool { return p.done == p.total || u.ringFull })
	last := u.resident
	u.lock.mu.Unlock()
	if err != nil {
		return err
	}
	return u.fetcher.up.Wait(ctx, last)
}

// room finds a place in the ring for the next unit. It waits until no step needs the units in the way: each was released by the step that acquired it,
// or was brought for a step that is aborted.
func (u *Units) room(ctx context.Context, bytes int64) (to Place, err error) {
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	var failed error
	err = u.lock.wait(ctx, func() (ok bool) {
		if failed = u.dropAborted(ctx); failed != nil {
			return true
		}
		if to, ok = u.vram.room(bytes); !ok && !u.ringFull {
			u.lock.changed.Broadcast() // see loaded
		}
		u.ringFull = !ok
		return ok
	})
	if err == nil {
		err = failed
	}
	return to, err
}

// dropAborted gives back, under the lock, the room in the ring of units that arrived for an aborted step and were not acquired. No kernel has read them,
// so the host waits only for their own uploads.
func (u *Units) dropAborted(ctx context.Context) error {
	for len(u.submitted) > 0 && u.submitted[0].step <= u.steps.aborted {
		if err := u.fetcher.up.Wait(ctx, u.submitted[0].place.ticket); err != nil {
			return err
		}
		u.vram.ring.release(0)
		u.submitted = append(u.submitted[:0], u.submitted[1:]...)
		u.lock.changed.Broadcast() // the next step may wait for the unit after these
	}
	return nil
}
