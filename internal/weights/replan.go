package weights

import (
	"context"
	"fmt"
	"slices"

	"leat/internal/plan"
	"leat/vk/file"
	"leat/vk/mem"
)

// start sets the goroutines to work.
func (s *Store) start() {
	const spare = 8 // reads of the host tier, which take no slot
	n := s.o.Plan.Staging.Slots + spare
	s.items, s.requests, s.pinned = make(chan item, 2*n), make(chan *file.Request, n), make(chan hostBlock)
	for range n {
		s.requests <- file.NewRequest()
	}
	pool := file.NewPool(min(plan.ReadDepth*s.drives, s.o.Plan.Staging.Slots), s.o.Fault)
	pool.Limit(s.o.DiskRate)
	pool.Watch(s.read())
	s.mu.Lock()
	s.pool = pool
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, do := range []func(context.Context) error{s.pin, s.walk, s.feed} {
		s.work.Go(func() {
			if err := do(ctx); err != nil {
				s.fail(err)
				cancel()
			}
		})
	}
}

// stop ends the goroutines and the reads under way; safe twice.
func (s *Store) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.work.Wait()
	s.pool.Close() // before the memory that it reads into goes
	s.mu.Lock()
	s.reading, s.pool = s.reading+s.pool.Busy(), nil
	s.mu.Unlock()
	s.cancel = nil
}

// Replan goes on with p, which [plan.Plan.Shrink] made of the plan in use. It is called
// between two steps, when the device has done all that was submitted of them. What was
// prefetched is dropped; what is kept in VRAM or in the host tier stays there.
//
// What failed before is tried again. After an error nothing can be acquired until it is called again: where the ring cannot be allocated,
// with a plan that takes less.
func (s *Store) Replan(ctx context.Context, p *plan.Plan) error {
	s.pause()
	err := s.replan(ctx, p)
	s.resume(err)
	if err != nil {
		return err
	}
	s.start()
	if s.experts != nil {
		s.experts.fillAgain()
	}
	return nil
}

// Recover begins anew, after a failure: with what is in VRAM and in the host tier by now. It is called as [Store.Replan] is;
// the end of ctx does not interrupt it.
func (s *Store) Recover(ctx context.Context) error {
	s.mu.Lock()
	failed := s.err != nil
	s.mu.Unlock()
	if !failed {
		return nil
	}
	return s.Replan(context.WithoutCancel(ctx), s.o.Plan)
}

// replan is Replan while nobody is at work.
func (s *Store) replan(ctx context.Context, p *plan.Plan) error {
	if err := s.up.Wait(ctx, s.up.Last()); err != nil {
		return err
	}
	s.up.Reclaim()
	if s.experts != nil {
		if err := s.experts.up.Wait(ctx, s.experts.up.Last()); err != nil {
			return err
		}
		s.experts.shrink(p.Experts)
	}
	s.adopt(p)
	for b, bytes := range p.Blocks {
		if bytes == 0 && s.blocks[b] != nil {
			s.o.VRAM.Free(s.blocks[b])
			s.blocks[b] = nil
		}
	}
	if !slices.Equal(s.ring.blocks, p.Ring) || len(s.rings) != len(p.Ring) {
		s.free(s.rings)
		var err error
		if s.rings, err = s.alloc(ctx, "ring", p.Ring); err != nil {
			s.free(s.rings)
			s.rings = nil
			return fmt.Errorf("make a ring: %w", err)
		}
	}
	s.ring = ring{blocks: p.Ring}
	return nil
}

// resume lets what failed be noted again, and says what has by now.
func (s *Store) resume(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pausing, s.err = false, err
}

// pause stops the goroutines so that no error of theirs is the store's.
func (s *Store) pause() {
	s.mu.Lock()
	s.pausing = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.stop()
}

// adopt takes p's verdicts. A unit that was on its way is brought anew.
func (s *Store) adopt(p *plan.Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Plan = p
	for i := range s.units {
		u := &s.units[i]
		was := u.Unit.Tier
		u.Unit = &p.Units[i]
		if u.Tier != was {
			u.tier, u.host, u.loaded = u.Tier, nil, false
			u.pieces = pieces(u.Unit, p.Staging.SlotBytes, stripeOf(s.o.Model))
		}
		u.read = u.loaded
	}
	s.came, s.begun, s.walked, s.full, s.held = nil, nil, false, false, Placed{}
	s.count()
}

// at is where a resident unit is.
func (s *Store) at(u *unit) mem.Span {
	return mem.Span{Buffer: s.blocks[u.Block], Off: u.Off, Bytes: u.Bytes}
}
