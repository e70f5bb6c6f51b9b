package weights

import (
	"context"
	"fmt"

	"leat/engine/plan"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// feeder uploads items in the order they were sent.
type feeder struct {
	s      *Store
	ctx    context.Context
	step   uint64
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
			f.copies = append(f.copies, xfer.Copy{Dst: f.dst.Slice(p.unitOff, p.n), Src: it.src, SrcOff: p.hostOff, Bytes: p.n})
		}
		return nil
	}
	if err := it.request.Wait(f.ctx); err != nil {
		return fmt.Errorf("read %s: %w", u.Name, err)
	}
	f.s.requests <- it.request
	p := it.piece
	f.copies = append(f.copies, xfer.Copy{Dst: f.dst.Slice(p.unitOff, p.n), Src: it.src, SrcOff: it.srcOff, Bytes: p.n})
	if it.slot != nil {
		f.slots = append(f.slots, it.slot)
	}
	return nil
}

// place finds where a unit goes. For one that is streamed it waits until the step has
// released what is in the way.
func (f *feeder) place(i int) error {
	s, u := f.s, &f.s.units[i]
	f.ticket, f.after = xfer.Ticket{}, 0
	if u.Tier == plan.VRAM {
		f.dst = mem.Span{Buffer: s.blocks[u.Block], Off: u.Off, Bytes: u.Bytes}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost error
	err := s.wait(func() bool {
		if lost = f.drop(); lost != nil {
			return true
		}
		to, after, ok := s.ring.place(u.Bytes)
		f.dst, f.after = mem.Span{Buffer: s.rings[to.block], Off: to.off, Bytes: u.Bytes}, after
		if !ok && !s.full {
			s.changed.Broadcast()
		}
		s.full = !ok
		return ok
	})
	if err == nil {
		err = lost
	}
	return err
}

// drop frees what came for steps that ended before they asked for it. No kernel has read
// it, so its place is free as soon as the upload itself is done.
func (f *feeder) drop() error {
	s := f.s
	for len(s.came) > 0 && s.came[0].step <= s.aborted {
		if err := s.up.Wait(f.ctx, s.came[0].ticket); err != nil {
			return err
		}
		s.ring.release(0)
		s.came = append(s.came[:0], s.came[1:]...)
	}
	return nil
}

// flush submits the copies listed; after a unit's last ones the step may have it.
func (f *feeder) flush(last bool, i int) error {
	s, u := f.s, &f.s.units[i]
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

// done tells the step that a unit's upload is submitted.
func (f *feeder) done(i int) {
	s, u := f.s, &f.s.units[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if u.Tier != plan.VRAM {
		s.came = append(s.came, arrival{unit: i, step: f.step, after: f.after, address: f.dst.Address(), ticket: f.ticket})
		return
	}
	u.loaded, u.ticket = true, f.ticket
	s.arrived, s.last = s.arrived+u.Bytes, s.last.With(f.ticket)
	if s.o.Progress != nil {
		s.o.Progress(s.arrived, s.total)
	}
}
