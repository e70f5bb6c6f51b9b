package weights

import (
	"context"
	"fmt"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// feeder uploads items in the order they were sent.
type feeder struct {
	s      *Store
	ctx    context.Context
	step   int         // that it is for
	dst    mem.Span    // of the unit under way
	after  uint64      // compute value that its place waits for
	ticket xfer.Ticket // of what was submitted of it
	copies []xfer.Copy // not submitted yet
	slots  []*xfer.Slot
	waits  [1]vk.Point
}

// feed ends when the walker has.
func (s *Store) feed(ctx context.Context) error {
	f := &feeder{s: s, ctx: ctx}
	it, ok := <-s.items
	for ok {
		if it.lands() {
			if err := f.land(it); err != nil {
				return err
			}
			it, ok = <-s.items
			continue
		}
		if err := f.add(it); err != nil {
			return err
		}
		var next item
		more := false
		select {
		case next, more = <-s.items:
			if !more {
				return f.flush(it.last, it.unit)
			}
		default:
		}
		// What is ready goes out together; what is not must not hold it up.
		if it.last || !more || !next.request.Ready() {
			if err := f.flush(it.last, it.unit); err != nil {
				return err
			}
		}
		if !more {
			next, ok = <-s.items
		}
		it = next
	}
	return nil
}

// lands reports whether the disk brings the bytes to where they are to be.
func (it *item) lands() bool { return it.stay || it.dst.Buffer != nil }

// land waits for such an item's bytes.
func (f *feeder) land(it item) error {
	if it.request != nil {
		if err := it.request.Wait(f.ctx); err != nil {
			return fmt.Errorf("read %s: %w", f.s.units[it.unit].Name, err)
		}
		f.s.requests <- it.request
	}
	switch {
	case it.last && it.stay:
		f.s.arrive(it.unit)
	case it.last:
		f.dst, f.ticket, f.after, f.step = it.dst, xfer.Ticket{}, 0, it.step
		f.done(it.unit)
	}
	return nil
}

// add waits for an item's bytes and lists the copies; the first of a unit finds it a place.
func (f *feeder) add(it item) error {
	u := &f.s.units[it.unit]
	if it.first {
		f.step = it.step
		if err := f.place(it.unit); err != nil {
			return err
		}
	}
	if it.request == nil {
		for k := range u.pieces {
			p := &u.pieces[k]
			f.copies = append(f.copies, xfer.Copy{Dst: f.dst.Slice(p.unitOff, p.n), Src: it.src, SrcOff: p.hostOff, Bytes: p.n, Tag: it.tag})
		}
		return nil
	}
	if err := it.request.Wait(f.ctx); err != nil {
		return fmt.Errorf("read %s: %w", u.Name, err)
	}
	f.s.requests <- it.request
	p := it.piece
	f.copies = append(f.copies, xfer.Copy{Dst: f.dst.Slice(p.unitOff, p.n), Src: it.src, SrcOff: it.srcOff, Bytes: p.n, Tag: it.tag})
	if it.slot != nil {
		f.slots = append(f.slots, it.slot)
	}
	return nil
}

// place finds where a unit goes.
func (f *feeder) place(i int) (err error) {
	s, u := f.s, &f.s.units[i]
	f.ticket, f.after = xfer.Ticket{}, 0
	if u.Tier == plan.VRAM {
		f.dst = s.at(u)
		return nil
	}
	f.dst, f.after, err = s.place(f.ctx, u.Bytes)
	return err
}

// place finds room in the ring: it waits until the step has released what is in the way,
// or has ended before it asked for it.
// The room may be overwritten once the compute timeline has reached after.
func (s *Store) place(ctx context.Context, bytes int64) (dst mem.Span, after uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost error
	err = s.crewWait(func() bool {
		if lost = s.drop(ctx); lost != nil {
			return true
		}
		to, value, ok := s.ring.place(bytes)
		dst, after = mem.Span{Buffer: s.rings[to.block], Off: to.off, Bytes: bytes}, value
		if !ok && !s.full {
			s.changed.Broadcast()
		}
		s.full = !ok
		return ok
	})
	if err == nil {
		err = lost
	}
	return dst, after, err
}

// drop frees what came for steps that ended before they asked for it. No kernel has read
// it, so its place is free as soon as the upload itself is done.
func (s *Store) drop(ctx context.Context) error {
	for len(s.came) > 0 && s.came[0].step <= s.aborted {
		if err := s.up.Wait(ctx, s.came[0].ticket); err != nil {
			return err
		}
		s.ring.release(0)
		s.came = append(s.came[:0], s.came[1:]...)
		s.changed.Broadcast() // what the next step waits for may be behind it
	}
	return nil
}

// flush submits the copies listed; after a unit's last ones the step may have it.
func (f *feeder) flush(last bool, i int) error {
	s, u := f.s, &f.s.units[i]
	if s.o.LinkRate != nil {
		if err := s.o.LinkRate.Wait(f.ctx, f.bytes()); err != nil {
			return err
		}
	}
	waits := f.waits[:0]
	if f.after > 0 {
		now, err := s.o.Compute.Value()
		if err != nil {
			return err
		}
		if now < f.after { // else the host has seen it, and the submission comes later
			waits = append(waits, vk.Point{Timeline: s.o.Compute, Value: f.after})
		}
	}
	ticket, err := s.up.Submit(f.copies, waits...)
	f.ticket = f.ticket.With(ticket)
	for _, slot := range f.slots {
		slot.Release(ticket)
	}
	for _, c := range f.copies {
		s.uploaded.Add(c.Bytes)
	}
	f.copies, f.slots = f.copies[:0], f.slots[:0]
	if err != nil {
		return fmt.Errorf("upload %s: %w", u.Name, err)
	}
	if last {
		f.done(i)
	}
	return nil
}

// bytes are those listed.
func (f *feeder) bytes() (n int64) {
	for i := range f.copies {
		n += f.copies[i].Bytes
	}
	return n
}

// done tells the step that a unit's upload is submitted.
func (f *feeder) done(i int) {
	s, u := f.s, &f.s.units[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if u.Tier != plan.VRAM {
		s.came = append(s.came, arrival{unit: i, step: f.step, after: f.after, address: f.dst.Address(), ticket: f.ticket})
	} else {
		u.ticket, s.last = f.ticket, s.last.With(f.ticket)
	}
	s.keep(u)
}

// arrive notes that a unit is in the host tier.
func (s *Store) arrive(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	s.keep(&s.units[i])
}

// keep is called under the lock when a unit is where it stays, if it does.
func (s *Store) keep(u *unit) {
	if u.kept() && !u.loaded {
		u.loaded = true
		s.arrived += u.Bytes
		s.progress()
	}
}
