package weights

import (
	"context"
	"fmt"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/xfer"
)

// Begin opens a step and says whether it needs the head: the pieces of the head are
// not streamed for a step in which no row asks for logits, and must not be acquired.
func (s *Store) Begin(head bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps++
	if !s.walked {
		s.begun = append(s.begun, head)
	}
	s.changed.Broadcast()
}

// Abort ends the step begun last before its time: what has yet to come for it is not
// read, what has come is dropped. The compute timeline must have reached value, the last
// one that the step submitted.
func (s *Store) Abort(value uint64) error {
	s.waited = xfer.Ticket{} // what was asked for may not have been submitted
	if s.held.Streamed {
		if err := s.up.Wait(context.Background(), s.held.ticket); err != nil {
			return err
		}
		s.Release(value)
	}
	if s.experts != nil {
		if err := s.experts.abort(value); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = s.steps
	s.changed.Broadcast()
	return nil
}

// skips tells the walker that a step has ended.
func (s *Store) skips(step int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return step <= s.aborted
}

// Wake lets an [Store.Acquire] that waits look at its context.
func (s *Store) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// wantsHead tells the walker, in the order of the steps, what was said to Begin.
func (s *Store) wantsHead() (head bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.crewWait(func() bool { return len(s.begun) > 0 }); err != nil {
		return false, err
	}
	head = s.begun[0]
	s.begun = append(s.begun[:0], s.begun[1:]...)
	return head, nil
}

// Loaded waits until all that is kept is there, in VRAM or in the host tier; once a step
// has begun, no longer than that can go on before the next one makes room in the ring.
func (s *Store) Loaded(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.Wake)()
	s.mu.Lock()
	err := s.wait(func() bool { return s.arrived == s.total || s.full || ctx.Err() != nil })
	last := s.last
	s.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.up.Wait(ctx, last)
	}
	if err != nil || s.embd.bytes == nil {
		return err
	}
	select {
	case <-s.embd.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Came reports whether [Store.Acquire] of unit i would not have to wait.
func (s *Store) Came(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.there(&s.units[i])
}

// there is Came, under the lock.
func (s *Store) there(u *unit) bool {
	if u.Tier == plan.VRAM {
		return u.loaded
	}
	return len(s.came) > 0 && s.came[0].step > s.aborted
}

// Acquire says where unit i of the plan is. Units must be asked for in execution
// order, and each streamed one released before the next is asked for. It returns
// once the unit's upload has been submitted: with a single queue, work that waits for
// a ticket must follow the copy. Where ctx ends while it waits, it returns ctx's error
// once [Store.Wake] is called.
func (s *Store) Acquire(ctx context.Context, i int) (Placed, error) {
	u := &s.units[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.waitOr(ctx, func() bool { return s.there(u) }); err != nil {
		return Placed{}, err
	}
	if u.Tier == plan.VRAM {
		return Placed{Address: s.at(u).Address(), ticket: u.ticket}, nil
	}
	a := s.came[0]
	if a.unit != i {
		return Placed{}, fmt.Errorf("acquire unit %d: the ring brings unit %d next", i, a.unit)
	}
	s.came = append(s.came[:0], s.came[1:]...)
	s.held = Placed{Address: a.address, Streamed: true, After: a.after, ticket: a.ticket}
	return s.held, nil
}

// Waits appends what the step's queue must wait for before it reads p: nothing, where
// it has waited for that or for something later. What is returned must be submitted.
func (s *Store) Waits(p Placed, points []vk.Point) []vk.Point {
	if s.waited.Covers(p.ticket) {
		return points
	}
	s.waited = s.waited.With(p.ticket)
	return s.up.Points(p.ticket, points)
}

// Release says that the streamed unit acquired last has been read once the compute
// timeline reaches value, which must be signalled by work already submitted.
func (s *Store) Release(value uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.release(value)
	s.held = Placed{}
	s.changed.Broadcast()
}
