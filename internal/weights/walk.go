package weights

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/vk"
	"leat/vk/file"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// piece is a part of a unit that is read at a time.
type piece struct {
	file    int
	off, n  int64 // on disk
	unitOff int64
	hostOff int64 // in the unit's host block
}

// stripeOf is how many bytes of a file lie on one drive together; 0: all.
func stripeOf(m *pack.Model) int64 {
	if m.Manifest == nil || m.Manifest.Stripe == nil {
		return 0
	}
	return m.Manifest.Stripe.Bytes
}

// pieces cuts a unit's extents where blocks of the disk begin, so that no block is
// read twice, and where stripes do, so that each is one drive's.
func pieces(u *plan.Unit, most, stripe int64) []piece {
	var list []piece
	plan.HostExtents(&u.Unit, func(e pack.Extent, at int64) {
		for done := int64(0); done < e.Bytes; {
			n := min(most-file.Skip(e.Off+done), e.Bytes-done)
			if stripe > 0 {
				n = min(n, stripe-(e.Off+done)%stripe)
			}
			list = append(list, piece{file: e.File, off: e.Off + done, n: n, unitOff: e.UnitOff + done, hostOff: u.Off + at + done})
			done += n
		}
	})
	return list
}

// item is a piece on its way: bytes in pinned memory, or coming there.
type item struct {
	unit        int
	step        int // that it is for; 0: for all
	first, last bool
	request     *file.Request // nil: all of the unit is in its host block
	slot        *xfer.Slot    // nil: the bytes stay where they are
	stay        bool          // they go no further now
	src         *vk.Buffer
	srcOff      int64
	tag         uint64
	piece       *piece
	dst         mem.Span // of the unit that is read in place; there is nothing to upload
}

// walk goes through the units in execution order, step after step, and sends their
// pieces; resident units only once. It ends when nothing is left to bring.
func (s *Store) walk(ctx context.Context) error {
	defer close(s.items)
	if err := s.fill(ctx); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = s.walkStep(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walked, s.begun = true, nil
	return nil
}

// fill brings what is to be kept, to VRAM or to the host tier, until a first step
// begins: from then on a step's order is the order.
func (s *Store) fill(ctx context.Context) error {
	s.serving = 0
	for i := range s.units {
		if u := &s.units[i]; u.read || !u.kept() {
			continue
		}
		s.mu.Lock()
		begun := len(s.begun) > 0
		s.mu.Unlock()
		if begun {
			return nil
		}
		if err := s.bring(ctx, i, true); err != nil {
			return err
		}
	}
	return nil
}

// walkStep sends what one step needs and reports whether there was anything. It is
// done with a step when that has begun, at the earliest.
func (s *Store) walkStep(ctx context.Context) (more bool, err error) {
	s.serve()
	head, asked := false, false
	for i := range s.units {
		u := &s.units[i]
		if u.Tier == plan.Cached || u.Tier == plan.VRAM && u.read {
			continue
		}
		more = true
		if u.Tier != plan.VRAM && u.Kind == pack.Head {
			if !asked {
				if head, err = s.wantsHead(); err != nil {
					return more, err
				}
				asked = true
			}
			if !head {
				continue
			}
		}
		if u.Tier != plan.VRAM && s.skips(s.serving) {
			continue
		}
		if err := s.bring(ctx, i, false); err != nil {
			return more, err
		}
	}
	if more && !asked {
		_, err = s.wantsHead()
	}
	return more, err
}

// bring sends one unit: piece by piece from the disk, or at once from where it rests
// in host memory. With stay a unit of the host tier goes there and no further.
func (s *Store) bring(ctx context.Context, i int, stay bool) error {
	u := &s.units[i]
	for u.tier == plan.Host && u.host == nil {
		if err := s.takePinned(ctx); err != nil {
			return err
		}
	}
	if stay && !u.kept() {
		return nil
	}
	if s.o.Plan.InPlace {
		return s.bringInPlace(ctx, i)
	}
	stay = stay && u.tier == plan.Host
	if u.tier == plan.Host && u.read {
		return s.send(ctx, item{unit: i, first: true, last: true, src: u.host})
	}
	u.read = true
	if len(u.pieces) == 0 {
		return s.send(ctx, item{unit: i, first: true, last: true, stay: stay})
	}
	for k := range u.pieces {
		it := item{unit: i, first: k == 0, last: k == len(u.pieces)-1, stay: stay, piece: &u.pieces[k]}
		if err := s.ask(ctx, u, it); err != nil {
			return err
		}
	}
	return nil
}

// bringInPlace has a unit read to where the device will read it: its block, or the ring.
// There the disk is its writer, so the host waits for the step that reads what is
// overwritten.
func (s *Store) bringInPlace(ctx context.Context, i int) error {
	u := &s.units[i]
	u.read = true
	dst := mem.Span{}
	if u.Tier == plan.VRAM {
		dst = s.at(u)
	} else {
		var after uint64
		var err error
		if dst, after, err = s.place(ctx, u.Bytes); err != nil {
			return err
		}
		if after > 0 {
			if err := s.o.Compute.Wait(ctx, after); err != nil {
				return fmt.Errorf("wait for room in the ring: %w", err)
			}
		}
	}
	if len(u.pieces) == 0 {
		return s.send(ctx, item{unit: i, first: true, last: true, dst: dst})
	}
	for k := range u.pieces {
		it := item{unit: i, first: k == 0, last: k == len(u.pieces)-1, piece: &u.pieces[k], dst: dst}
		if err := s.ask(ctx, u, it); err != nil {
			return err
		}
	}
	return nil
}

// ask has one piece read and sends it on.
func (s *Store) ask(ctx context.Context, u *unit, it item) error {
	p := it.piece
	select {
	case it.request = <-s.requests:
	case <-ctx.Done():
		return errClosing
	}
	var into []byte // where the block begins that holds the piece's first byte
	skip := file.Skip(p.off)
	switch {
	case it.dst.Buffer != nil:
		into = it.dst.Buffer.Mapped()[it.dst.Off+p.unitOff-skip:]
	case u.tier == plan.Host:
		it.src, it.srcOff = u.host, p.hostOff
		into = u.host.Mapped()[p.hostOff-skip:]
	default:
		slot, err := s.up.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("stage %s: %w", u.Name, err)
		}
		it.slot, it.src, it.srcOff, into = slot, slot.Buffer, slot.Off+skip, slot.Bytes()
	}
	r := it.request
	r.File, r.Off, r.N, r.Dst = s.files[p.file], p.off, p.n, into[:file.Room(p.off, p.n)]
	r.Tag = s.tag(it.unit)
	if err := s.pool.Start(ctx, r); err != nil {
		return fmt.Errorf("read %s: %w", u.Name, err)
	}
	s.fromDisk.Add(p.n)
	return s.send(ctx, it)
}

func (s *Store) send(ctx context.Context, it item) error {
	it.tag, it.step = s.tag(it.unit), s.serving
	select {
	case s.items <- it:
		return nil
	case <-ctx.Done():
		return errClosing
	}
}

// hostBlock is a block of the host tier, pinned, or why it could not be.
type hostBlock struct {
	index  int
	buffer *vk.Buffer
	err    error
}

// pin allocates the blocks of the host tier, one ahead of the walker: a GiB takes
// a good part of a second.
func (s *Store) pin(ctx context.Context) error {
	for i := s.taken; i < len(s.o.Plan.HostBlocks); i++ {
		if i == len(s.pins) {
			s.pins = append(s.pins, nil)
		}
		b := hostBlock{index: i, buffer: s.pins[i]}
		if b.buffer == nil {
			b.buffer, b.err = s.o.Host.AllocHost(fmt.Sprintf("host block %d", i), s.o.Plan.HostBlocks[i])
			s.pins[i] = b.buffer
		}
		select {
		case s.pinned <- b:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// takePinned gives the next block to its units. Where less can be pinned than was
// planned they come from disk, token after token.
func (s *Store) takePinned(ctx context.Context) error {
	select {
	case b := <-s.pinned:
		if b.err != nil {
			s.o.Logger.Warn("host tier: units stay on disk", "bytes", s.o.Plan.HostBlocks[b.index], "error", b.err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = b.index + 1
		for i := range s.units {
			u := &s.units[i]
			switch {
			case u.Tier != plan.Host || u.Block != b.index:
			case b.err != nil:
				u.tier = plan.Disk
				s.total -= u.Bytes
			default:
				u.host = b.buffer
			}
		}
		s.progress()
		s.changed.Broadcast()
		return nil
	case <-ctx.Done():
		return errClosing
	}
}
