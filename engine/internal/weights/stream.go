package weights

import (
	"context"
	"fmt"

	"leat/engine/plan"
	"leat/vk"
	"leat/vk/mem"
	"leat/vk/xfer"
)

// Acquire says where unit i of the plan is. Streamed units must be asked for in
// execution order, each followed by a Release before the one after next is asked
// for. It returns once the unit's upload has been submitted: with a single queue,
// work that waits for a ticket must follow the copy.
func (s *Store) Acquire(i int) (Placed, error) {
	if s.o.Plan.Units[i].Tier == plan.VRAM {
		return Placed{Address: s.resident[i].Address()}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := s.flow[s.uses%uint64(len(s.flow))]; want != i {
		return Placed{}, fmt.Errorf("acquire unit %d: the ring brings unit %d next", i, want)
	}
	for s.uploads <= s.uses && s.err == nil {
		s.changed.Wait()
	}
	if s.err != nil {
		return Placed{}, s.err
	}
	slot := int(s.uses % uint64(len(s.slots)))
	s.uses++
	return Placed{Address: s.slots[slot].Address, Ticket: s.tickets[slot]}, nil
}

// Release says that unit i has been read once the compute timeline reaches value,
// which must be signalled by work already submitted.
func (s *Store) Release(i int, value uint64) {
	if s.o.Plan.Units[i].Tier == plan.VRAM {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released[s.frees%uint64(len(s.slots))] = value
	s.frees++
	s.changed.Broadcast()
}

// stream uploads the streamed units in a circle, as far ahead as the slots allow; it
// runs across steps, so that a token's first units load while the last one ends.
func (s *Store) stream(ctx context.Context) {
	defer close(s.done)
	for k := uint64(0); ; k++ {
		err := s.streamUnit(ctx, k)
		s.mu.Lock()
		if err != nil {
			s.err = err
		} else {
			s.uploads++
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// streamUnit uploads the k-th unit of the endless sequence.
func (s *Store) streamUnit(ctx context.Context, k uint64) error {
	i := s.flow[k%uint64(len(s.flow))]
	u := &s.o.Plan.Units[i]
	slot := int(k % uint64(len(s.slots)))
	dst := mem.Span{Buffer: s.slots[slot], Bytes: u.Bytes}

	var waits []vk.Point
	free := func() error {
		value, err := s.waitFree(ctx, k)
		if err == nil && value > 0 {
			waits = []vk.Point{{Timeline: s.o.Compute, Value: value}}
		}
		return err
	}
	src, err := s.hostUnit(i)
	if err != nil {
		return err
	}
	if src != nil {
		if err := free(); err != nil {
			return err
		}
		ticket, err := s.up.SubmitFrom(src, []xfer.Copy{{Dst: dst, Bytes: u.Bytes}}, waits...)
		s.setTicket(slot, ticket)
		return err
	}
	first := true
	ticket, err := s.pieces(ctx, &u.Unit, func(from *xfer.Slot, off, n int64) (uint64, error) {
		if first { // the first piece is read while the slot is still in use
			first = false
			if err := free(); err != nil {
				return 0, err
			}
		}
		return s.up.Submit(from, []xfer.Copy{{Dst: dst.Slice(off, n), Bytes: n}}, waits...)
	})
	s.setTicket(slot, ticket)
	return err
}

// waitFree waits until the unit that used the slot before has been released and
// returns its compute value; 0 for a slot never used.
func (s *Store) waitFree(ctx context.Context, k uint64) (uint64, error) {
	n := uint64(len(s.slots))
	s.mu.Lock()
	defer s.mu.Unlock()
	for k >= n && s.frees < k-n+1 && ctx.Err() == nil {
		s.changed.Wait()
	}
	return s.released[k%n], ctx.Err()
}

func (s *Store) setTicket(slot int, ticket uint64) {
	s.mu.Lock()
	s.tickets[slot] = ticket
	s.mu.Unlock()
}

// hostUnit returns host-tier unit i in pinned memory, read from disk on first use so
// that loading a model does not wait for it; nil for a unit that stays on disk.
func (s *Store) hostUnit(i int) (*vk.Buffer, error) {
	u := &s.o.Plan.Units[i]
	if b := s.host[i]; b != nil || u.Tier != plan.Host {
		return b, nil
	}
	bytes := (u.Bytes + granule - 1) / granule * granule
	b, err := s.o.Host.Alloc("host tier "+u.Name, bytes, vk.Upload)
	if err != nil { // less can be pinned than the plan thought: this unit comes from disk
		s.o.Logger.Warn("host tier: unit stays on disk", "unit", u.Name, "error", err)
		u.Tier = plan.Disk
		return nil, nil
	}
	s.host[i] = b
	return b, s.o.Model.ReadUnit(&u.Unit, b.Mapped()[:u.Bytes])
}

const granule = 64 << 10 // as the plan rounds host-tier allocations
