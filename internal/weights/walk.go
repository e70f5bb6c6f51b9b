package weights

import (
	"context"
	"fmt"

	"leat/decompose/pack"
	"leat/internal/plan"
	"leat/vk/mem"
)

// walk runs the walker: it goes through the units in execution order, step after step, starts their reads and sends them to the feeder; kept bytes it
// reads only once. It ends when no unit is left to bring.
func (u *Units) walk(ctx context.Context) error {
	defer close(u.fetches)
	if err := u.load(ctx); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = u.walkStep(ctx); err != nil {
			return err
		}
	}
	u.lock.mu.Lock()
	defer u.lock.mu.Unlock()
	u.steps.ended, u.steps.heads = true, nil
	return nil
}

// load brings the bytes that are kept, to VRAM or to host copies, until the first step begins: from then on units come in the step's order.
func (u *Units) load(ctx context.Context) error {
	u.serving = 0
	for i := range u.list {
		if tier := u.list[i].Tier; tier != plan.VRAM && tier != plan.Host {
			continue
		}
		u.lock.mu.Lock()
		begun := len(u.steps.heads) > 0
		u.lock.mu.Unlock()
		if begun {
			return nil
		}
		if err := u.bring(ctx, i, true); err != nil {
			return err
		}
	}
	return nil
}

// walkStep starts the reads of the units that one step needs, in order, before the step begins if the ring has room. It returns once the step has
// begun. If no unit has to be brought, it returns immediately, with more false.
func (u *Units) walkStep(ctx context.Context) (more bool, err error) {
	u.lock.mu.Lock()
	u.serving = u.steps.next()
	u.lock.mu.Unlock()
	head, begun := false, false
	for i := range u.list {
		at := &u.list[i]
		if at.Tier == plan.Cached || at.Tier == plan.VRAM && u.sources.isClaimed(&u.sources.list[i]) {
			continue
		}
		more = true
		if at.Tier != plan.VRAM && at.Kind == pack.Head {
			if !begun {
				if head, err = u.wantsHead(ctx); err != nil {
					return more, err
				}
				begun = true
			}
			if !head {
				continue
			}
		}
		if at.Tier != plan.VRAM && u.isAborted(u.serving) {
			continue
		}
		if err := u.bring(ctx, i, false); err != nil {
			return more, err
		}
	}
	if more && !begun {
		_, err = u.wantsHead(ctx)
	}
	return more, err
}

// bring sends unit i to the feeder: piece by piece from the disk, or whole from its host copy. loading says that no step needs the unit yet: then bring
// skips units that are not kept, or that have been brought or claimed, and only fills host copies, without an upload.
func (u *Units) bring(ctx context.Context, i int, loading bool) error {
	at, src := &u.list[i], &u.sources.list[i]
	state, err := u.sources.claim(ctx, src)
	if err != nil || loading && (state != absent || !src.kept()) {
		return err
	}
	it := unitFetch{unit: i, step: u.serving, hostOnly: loading && src.tier == plan.Host, first: true}
	if at.Tier == plan.VRAM {
		it.step = 0
	}
	it.src, it.tag = src, tagOf(it.step, i)
	if u.vram.inPlace {
		if it.inPlace, err = u.inPlaceSpan(ctx, at); err != nil {
			return err
		}
	}
	if state != absent && src.tier == plan.Host || len(src.pieces) == 0 {
		it.last = true
		return u.send(ctx, it)
	}
	for k := range src.pieces {
		it.first, it.last, it.piece = k == 0, k == len(src.pieces)-1, &src.pieces[k]
		if err := u.read(ctx, it); err != nil {
			return err
		}
	}
	return nil
}

// inPlaceSpan is the memory of a unit's place, into which the disk is read if device and host share memory. The host waits until the device has read
// the bytes that this overwrites.
func (u *Units) inPlaceSpan(ctx context.Context, at *unit) (mem.Span, error) {
	if at.Tier == plan.VRAM {
		return u.vram.resident(at.Unit).span, nil
	}
	to, err := u.room(ctx, at.Bytes)
	if err == nil && to.After > 0 {
		if err = u.fetcher.o.Compute.Wait(ctx, to.After); err != nil {
			err = fmt.Errorf("wait for room in the ring: %w", err)
		}
	}
	return to.span, err
}

// read waits for a free read request, starts the read of one piece by it, and sends the piece to the feeder.
func (u *Units) read(ctx context.Context, it unitFetch) error {
	select {
	case it.request = <-u.fetcher.requests:
	case <-ctx.Done():
		return errClosing
	}
	if err := u.fetcher.read(ctx, &it.fetch); err != nil {
		return err
	}
	return u.send(ctx, it)
}

// send hands a fetch to the feeder.
func (u *Units) send(ctx context.Context, it unitFetch) error {
	select {
	case u.fetches <- it:
		return nil
	case <-ctx.Done():
		return errClosing
	}
}
