package weights

import (
	"context"

	"leat/internal/plan"
)

// Replan stops loading, goes on with p, which [plan.Plan.Shrink] made of the plan in use, and starts loading again. It is called between two steps, when
// the device has done all work of earlier steps. Memory that p does not have is freed, prefetched units are dropped; bytes that p keeps in VRAM or in
// host memory stay there.
//
// Loading that failed is tried again. After an error nothing can be acquired until Replan is called again; if the ring could not be allocated, with a
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

// Recover starts loading again if it has failed, with the bytes that are already in VRAM and in host memory. Call it between two steps, as [Store.Replan];
// the end of ctx does not interrupt it.
func (s *Store) Recover(ctx context.Context) error {
	if !s.lock.failed() {
		return nil
	}
	return s.Replan(context.WithoutCancel(ctx), s.o.Plan)
}

// adopt switches to plan p: it waits for all uploads, frees the slots and resident blocks that are not in p, and makes an empty ring. No goroutine may
// be loading.
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
	s.countProgress()
	return s.vram.fit(ctx, p)
}
