package weights

import (
	"context"
	"errors"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/expertcache"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/xfer"
)

// resting is what is known of an expert outside of VRAM.
type resting struct {
	unit   *pack.Unit // of the model
	cached int        // its layer's unit of the plan
	block  int        // of the host tier; -1: none is its own
	pieces []piece
	failed bool // a read for a step did, of those under way

	// Under the store's lock.
	host  *vk.Buffer // its block, once that is pinned
	state restState
}

type restState int

const (
	absent  restState = iota // from host memory
	reading                  // into it
	present
)

// flight is a piece of an expert that comes from disk.
type flight struct {
	layer   int
	t       expertcache.Taken
	r       *resting
	piece   *piece
	request *file.Request // nil: somebody else reads all of it into host memory
	slot    *xfer.Slot    // nil: it is read into host memory
	last    bool          // of the expert
	orphan  bool          // the step that wanted it was stopped
}

// listing is copies to be submitted together, and what they come after.
type listing struct {
	copies []xfer.Copy
	waits  []vk.Point
	points []vk.Point // scratch
}

func (l *listing) clear() { l.copies, l.waits = l.copies[:0], l.waits[:0] }

// miss has an expert's bytes brought to the slot that it was given: it lists the copies of what is in host memory, and reads
// all else. now is where the compute timeline stands.
func (x *Experts) miss(ctx context.Context, layer int, t expertcache.Taken, now uint64) (here bool, err error) {
	r, s := x.of(layer, &t), x.slotOf(layer, &t)
	s.holds, s.before = expertcache.Taken{}, xfer.Ticket{}
	if s.unread {
		s.before = s.ticket
	}
	s.ticket, s.unread = xfer.Ticket{}, true
	state, err := x.claim(ctx, r)
	switch {
	case err != nil:
		return false, err
	case state == present:
		x.count.hostMisses.Add(1)
		x.after(s, now, &x.out)
		x.list(r, s, &x.out)
		return true, nil
	case state == reading:
		x.count.hostMisses.Add(1)
		return false, x.fly(ctx, flight{layer: layer, t: t, r: r, last: true})
	}
	x.count.diskMisses.Add(1)
	for i := range r.pieces {
		if err := x.fly(ctx, flight{layer: layer, t: t, r: r, piece: &r.pieces[i], request: x.spare(), last: i == len(r.pieces)-1}); err != nil {
			x.leave(r)
			return false, err
		}
	}
	return false, nil
}

// leave gives up what is read to host memory and has not been asked for whole.
func (x *Experts) leave(r *resting) {
	if r.block < 0 {
		return
	}
	for i := len(x.flying) - 1; i >= 0; i-- {
		if f := &x.flying[i]; f.r == r && f.request != nil {
			f.last, r.failed = true, true
			return
		}
	}
	x.s.rests(r, false)
}

// claim says where an expert is. Where it is to rest in host memory and nobody has begun to read it there, the caller
// has to: then, as where no host memory is its own, the state is absent.
func (x *Experts) claim(ctx context.Context, r *resting) (state restState, err error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if err := x.s.waitOr(ctx, func() bool { return r.block < 0 || r.host != nil }); err != nil {
		return absent, err
	}
	if state = r.state; r.block >= 0 && state == absent {
		r.state = reading
	}
	return state, nil
}

// after adds what an upload to the slot must come after.
func (x *Experts) after(s *slot, now uint64, l *listing) {
	if s.reads > now {
		l.wait(vk.Point{Timeline: x.s.o.Compute, Value: s.reads})
	}
	l.points = x.up.Points(s.before, l.points[:0]) // copies of two lanes may end in any order
	for _, p := range l.points {
		l.wait(p)
	}
}

// wait adds a point, or raises the one of its timeline.
func (l *listing) wait(p vk.Point) {
	for i := range l.waits {
		if l.waits[i].Timeline == p.Timeline {
			l.waits[i].Value = max(l.waits[i].Value, p.Value)
			return
		}
	}
	l.waits = append(l.waits, p)
}

// list adds the copies of an expert that is in host memory.
func (x *Experts) list(r *resting, s *slot, l *listing) {
	for i := range r.pieces {
		p := &r.pieces[i]
		l.copies = append(l.copies, xfer.Copy{Dst: s.span.Slice(p.unitOff, p.n), Src: r.host, SrcOff: p.hostOff, Bytes: p.n, Tag: x.tag(r)})
	}
}

func (x *Experts) tag(r *resting) uint64 { return uint64(x.step)<<32 | uint64(r.cached) }

// uploadListed submits the copies listed, which are of b.
func (x *Experts) uploadListed(b *Batch) error {
	if len(x.listed) == 0 {
		return nil
	}
	t, err := x.upload(&x.out)
	for _, i := range x.listed {
		s := x.slotOf(b.layer, &b.taken[i])
		if s.ticket = t; err == nil {
			s.holds = b.taken[i]
		}
	}
	return err
}

// upload submits copies and returns their ticket.
func (x *Experts) upload(l *listing) (t xfer.Ticket, err error) {
	var n int64
	for i := range l.copies {
		n += l.copies[i].Bytes
	}
	if x.s.o.LinkRate != nil {
		if err := x.s.o.LinkRate.Wait(x.ctx, n); err != nil {
			return t, err
		}
	}
	x.s.uploaded.Add(n)
	x.count.bytes.Add(n)
	return x.up.Submit(l.copies, l.waits...)
}

// spare is a request that nobody uses; nil: all are in use.
func (x *Experts) spare() *file.Request {
	n := len(x.free)
	if n == 0 {
		return nil
	}
	r := x.free[n-1]
	x.free = x.free[:n-1]
	return r
}

// fly starts a read, once there is room for it.
func (x *Experts) fly(ctx context.Context, f flight) (err error) {
	defer func() {
		if err != nil && f.request != nil {
			x.free = append(x.free, f.request)
		}
	}()
	if f.piece == nil {
		x.flying = append(x.flying, f)
		return nil
	}
	for f.request == nil || f.r.block < 0 && x.staged() == x.p.Staging.Slots {
		if err = x.land(ctx); err != nil {
			return err
		}
		if f.request == nil {
			f.request = x.spare()
		}
	}
	var into []byte
	p, skip := f.piece, file.Skip(f.piece.off)
	if f.r.block >= 0 {
		into = f.r.host.Mapped()[p.hostOff-skip:]
	} else {
		if f.slot, err = x.up.Acquire(x.ctx); err != nil { // it waits for copies at most, never for the disk
			return fmt.Errorf("stage %s: %w", f.r.unit.Name, err)
		}
		into = f.slot.Bytes()
	}
	q := f.request
	q.File, q.Off, q.N, q.Dst, q.Tag = x.s.files[p.file], p.off, p.n, into[:file.Room(p.off, p.n)], x.tag(f.r)
	if err = x.pool.Start(x.ctx, q); err != nil {
		if f.slot != nil {
			f.slot.Release(xfer.Ticket{})
		}
		return fmt.Errorf("read %s: %w", f.r.unit.Name, err)
	}
	x.s.fromDisk.Add(p.n)
	x.count.diskBytes.Add(p.n)
	x.flying = append(x.flying, f)
	return nil
}

// staged is how many slots of staging reads fill just now.
func (x *Experts) staged() (n int) {
	for i := range x.flying {
		if x.flying[i].slot != nil {
			n++
		}
	}
	return n
}

// land waits for the oldest read and has what it brought uploaded, together with what came meanwhile.
func (x *Experts) land(ctx context.Context) (err error) {
	if f := &x.flying[0]; f.request == nil {
		err = x.others(ctx, f.r)
	} else {
		err = f.request.Wait(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return err // it is still under way
	}
	x.landing.clear()
	n := 1
	err = x.ended(&x.flying[0], err)
	for err == nil && n < len(x.flying) && x.flying[n].request != nil && x.flying[n].request.Ready() {
		f := &x.flying[n]
		n++
		err = x.ended(f, f.request.Wait(context.Background()))
	}
	came := n
	if err != nil {
		came--
	}
	return errors.Join(err, x.handIn(n, came))
}

// ended lists the copies of what a read brought that is over, unless it failed or nobody wants it any more.
func (x *Experts) ended(f *flight, err error) error {
	if f.request != nil {
		x.free = append(x.free, f.request)
		if f.slot == nil {
			x.landed(f, err)
		}
	}
	if f.orphan {
		return nil
	}
	if err == nil {
		err = x.raise(f)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.r.unit.Name, err)
	}
	return nil
}

// handIn uploads what the n oldest reads brought, of which so many did not fail, and forgets them.
func (x *Experts) handIn(n, came int) (err error) {
	var t xfer.Ticket
	if len(x.landing.copies) > 0 {
		t, err = x.upload(&x.landing)
	}
	for i := range x.flying[:n] {
		f := &x.flying[i]
		if f.slot != nil {
			f.slot.Release(t)
		}
		if f.orphan || i >= came {
			continue
		}
		s := x.slotOf(f.layer, &f.t)
		s.ticket = s.ticket.With(t)
		if f.last && err == nil {
			s.holds = f.t
		}
	}
	x.flying = append(x.flying[:0], x.flying[n:]...)
	return err
}

// landed notes what became of a piece read to host memory.
func (x *Experts) landed(f *flight, err error) {
	f.r.failed = f.r.failed || err != nil
	if f.last {
		x.s.rests(f.r, !f.r.failed)
		f.r.failed = false
	}
}

// raise lists the copies of what a read brought.
func (x *Experts) raise(f *flight) error {
	s, l := x.slotOf(f.layer, &f.t), &x.landing
	now, err := x.s.o.Compute.Value()
	if err != nil {
		return err
	}
	x.after(s, now, l)
	switch p := f.piece; {
	case p == nil:
		x.list(f.r, s, l)
	case f.slot != nil:
		l.copies = append(l.copies, xfer.Copy{Dst: s.span.Slice(p.unitOff, p.n), Src: f.slot.Buffer, SrcOff: f.slot.Off + file.Skip(p.off), Bytes: p.n, Tag: x.tag(f.r)})
	default:
		l.copies = append(l.copies, xfer.Copy{Dst: s.span.Slice(p.unitOff, p.n), Src: f.r.host, SrcOff: p.hostOff, Bytes: p.n, Tag: x.tag(f.r)})
	}
	return nil
}

// others waits until somebody else has read an expert into host memory.
func (x *Experts) others(ctx context.Context, r *resting) error {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.waitOr(ctx, func() bool { return r.state == present })
}

// rests notes that a read into host memory has ended, or failed.
func (s *Store) rests(r *resting, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	if r.state = absent; ok {
		r.state = present
		s.arrived += r.unit.Bytes
		s.progress()
	}
}
