package weights

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/engine/plan"
	"leat/vk"
	"leat/vk/file"
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
	step        uint64
	first, last bool
	request     *file.Request // nil: all of the unit is in its host block
	slot        *xfer.Slot    // nil: the bytes stay where they are
	src         *vk.Buffer
	srcOff      int64
	piece       *piece
}

// walk goes through the units in execution order, step after step, and sends their
// pieces; resident units only once. It ends when nothing is left to bring.
func (s *Store) walk(ctx context.Context) error {
	defer close(s.items)
	more := true
	for step := uint64(1); more; step++ {
		var err error
		if more, err = s.walkStep(ctx, step); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.walked, s.begun = true, nil
	return nil
}

// walkStep sends what one step needs and reports whether there was anything. It is
// done with a step when that has begun, at the earliest.
func (s *Store) walkStep(ctx context.Context, step uint64) (more bool, err error) {
	head, asked := false, false
	for i := range s.units {
		u := &s.units[i]
		if u.Tier == plan.VRAM && u.read {
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
		if u.Tier != plan.VRAM && s.skips(step) {
			continue
		}
		if err := s.bring(ctx, i, step); err != nil {
			return more, err
		}
	}
	if more && !asked {
		_, err = s.wantsHead()
	}
	return more, err
}

// bring sends one unit: piece by piece from the disk, or at once from where it rests
// in host memory.
func (s *Store) bring(ctx context.Context, i int, step uint64) error {
	u := &s.units[i]
	if u.tier == plan.Host && u.host == nil {
		if err := s.takePinned(ctx); err != nil {
			return err
		}
	}
	if u.tier == plan.Host && u.read {
		return s.send(ctx, item{unit: i, step: step, first: true, last: true, src: u.host})
	}
	u.read = true
	if len(u.pieces) == 0 {
		return s.send(ctx, item{unit: i, step: step, first: true, last: true})
	}
	for k := range u.pieces {
		it := item{unit: i, step: step, first: k == 0, last: k == len(u.pieces)-1, piece: &u.pieces[k]}
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
	if u.tier == plan.Host {
		it.src, it.srcOff = u.host, p.hostOff
		into = u.host.Mapped()[p.hostOff-skip:]
	} else {
		slot, err := s.up.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("stage %s: %w", u.Name, err)
		}
		it.slot, it.src, it.srcOff, into = slot, slot.Buffer, slot.Off+skip, slot.Bytes()
	}
	r := it.request
	r.File, r.Off, r.N, r.Dst = s.files[p.file], p.off, p.n, into[:file.Room(p.off, p.n)]
	if err := s.pool.Start(ctx, r); err != nil {
		return fmt.Errorf("read %s: %w", u.Name, err)
	}
	s.fromDisk.Add(p.n)
	return s.send(ctx, it)
}

func (s *Store) send(ctx context.Context, it item) error {
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
	for i, bytes := range s.o.Plan.HostBlocks {
		b := hostBlock{index: i}
		b.buffer, b.err = s.o.Host.AllocHost(fmt.Sprintf("host block %d", i), bytes)
		if b.err == nil {
			s.mu.Lock()
			s.pins = append(s.pins, b.buffer)
			s.mu.Unlock()
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
		for i := range s.units {
			u := &s.units[i]
			switch {
			case u.Tier != plan.Host || u.Block != b.index:
			case b.err != nil:
				u.tier = plan.Disk
			default:
				u.host = b.buffer
			}
		}
		return nil
	case <-ctx.Done():
		return errClosing
	}
}
