package weights

import (
	"context"
	"fmt"

	"leat/internal/plan"
)

// feeder takes fetches in the order in which the walker sent them, finds each unit a place, and uploads it there.
type feeder struct {
	u    *Units          // the units that it uploads
	ctx  context.Context // ends when loading is stopped
	to   Place           // place of the unit that is being uploaded
	step int             // step that the unit is uploaded for; 0: it stays in VRAM
	out  upload          // copies of pieces of the unit that were read, to be submitted together
}

// feed runs the feeder, until the walker has ended and the uploads of all that it sent are submitted.
func (u *Units) feed(ctx context.Context) error {
	f := &feeder{u: u, ctx: ctx, out: upload{f: u.fetcher}}
	it, ok := <-u.fetches
	for ok {
		if it.hostOnly || it.inPlace.Buffer != nil { // the read itself brings the bytes to where they are kept
			if err := f.finishInPlace(it); err != nil {
				return err
			}
			it, ok = <-u.fetches
			continue
		}
		if err := f.add(it); err != nil {
			return err
		}
		var next unitFetch
		more, closed := false, false
		select {
		case next, more = <-u.fetches:
			closed = !more
		default:
		}
		// Pieces that have been read are submitted together, without a wait for a piece whose read is still under way.
		if it.last || !more || !next.request.Ready() {
			if err := f.submit(it); err != nil {
				return err
			}
		}
		if !more && !closed {
			next, more = <-u.fetches
		}
		it, ok = next, more
	}
	return nil
}

// wait waits for the read of a fetch, if it has one, and makes the read request available again.
func (f *feeder) wait(it *unitFetch) error {
	if it.request == nil {
		return nil
	}
	if err := it.request.Wait(f.ctx); err != nil {
		return fmt.Errorf("read %s: %w", it.src.unit.Name, err)
	}
	f.u.fetcher.requests <- it.request
	return nil
}

// finishInPlace waits for the read of a fetch whose bytes are not uploaded now: they go to a host copy, or to VRAM that the host shares. After the
// last piece it marks the unit's source present.
func (f *feeder) finishInPlace(it unitFetch) error {
	if err := f.wait(&it); err != nil || !it.last {
		return err
	}
	if it.hostOnly {
		f.u.lock.mu.Lock()
		defer f.u.lock.mu.Unlock()
		f.u.sources.markPresent(it.src)
		f.u.lock.changed.Broadcast()
		return nil
	}
	f.to, f.step = Place{Streamed: f.u.list[it.unit].Tier != plan.VRAM, span: it.inPlace}, it.step
	f.markSubmitted(it.unit)
	return nil
}

// add waits for the read of a fetch and adds its bytes to the upload. With the first fetch of a unit it finds the unit a place, and waits until the ring
// has room for it.
func (f *feeder) add(it unitFetch) (err error) {
	if it.first {
		f.step = it.step
		if at := &f.u.list[it.unit]; at.Tier == plan.VRAM {
			f.to = f.u.vram.resident(at.Unit)
		} else if f.to, err = f.u.room(f.ctx, at.Bytes); err != nil {
			return err
		}
	}
	if err := f.wait(&it); err != nil {
		return err
	}
	f.out.add(&it.fetch, &f.to)
	return nil
}

// submit submits the upload, in which the fetch "it" was added last. After the last piece of a unit a step may acquire the unit.
func (f *feeder) submit(it unitFetch) error {
	if err := f.out.submit(f.ctx); err != nil {
		return fmt.Errorf("upload %s: %w", it.src.unit.Name, err)
	}
	if it.last {
		f.markSubmitted(it.unit)
	}
	return nil
}

// markSubmitted lets a step acquire unit i at the place f.to, and marks the unit's source present, see [sources.markPresent]. All uploads of the unit,
// if there are any, must be submitted.
func (f *feeder) markSubmitted(i int) {
	u := f.u
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	defer u.lock.changed.Broadcast()
	if f.to.Streamed {
		u.submitted = append(u.submitted, submittedUnit{unit: i, step: f.step, place: f.to})
	} else {
		u.list[i].place, u.resident = f.to, u.resident.With(f.to.ticket)
	}
	u.sources.markPresent(&u.sources.list[i])
}
