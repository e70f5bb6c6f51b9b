package weights

import (
	"context"

	"leat/internal/plan"
)

// Replan goes on with p, which [plan.Plan.Shrink] made of the plan in use. It is called between two steps, when the device has done all that was
// submitted of them. What was prefetched is dropped; what is kept in VRAM or in host memory stays there.
//
// What failed before is tried again. After an error nothing can be acquired until Replan is called again: where the ring cannot be allocated, with a
// plan that takes less.
func (s *Store) Replan(ctx context.Context, p *plan.Plan) error {
	s.lock.pause()
	s.stopLoading()
	err := s.adopt(ctx, p)
	s.lock.resume(err)
	if err != nil {
		return err
	}
	s.startLoading()
	return nil
}

// Recover begins anew after a failure, with what is in VRAM and in host memory by now. It is called as [Store.Replan] is; the end of ctx does not
// interrupt it.
func (s *Store) Recover(ctx context.Context) error {
	if !s.lock.failed() {
		return nil
	}
	return s.Replan(context.WithoutCancel(ctx), s.o.Plan)
}

// adopt makes p the plan in use, while no goroutine is loading.
func (s *Store) adopt(ctx context.Context, p *plan.Plan) error {
	up := s.units.fetcher.up
	if err := up.Wait(ctx, up.Last()); err != nil {
		return err
	}
	up.Reclaim()
	if s.experts != nil {
		up := s.experts.fetcher.up
		if err := up.Wait(ctx, up.Last()); err != nil {
			return err
		}
		s.experts.shrink(p.Experts)
	}
	s.o.Plan = p
	s.lock.mu.Lock()
	s.units.adopt(p)
	s.lock.mu.Unlock()
	s.count()
	return s.vram.fit(ctx, p)
}
