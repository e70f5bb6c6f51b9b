package weights

import (
	"context"
	"fmt"

	"leat/internal/plan"
	"leat/vk"
	"leat/vk/file"
)

// pin allocates the host tier, of blocks of so many bytes.
func (x *Experts) pin(blocks []int64) error {
	for b, bytes := range blocks {
		if x.ctx.Err() != nil {
			return nil
		}
		buffer, err := x.s.o.Host.AllocHost(fmt.Sprintf("experts' host block %d", b), bytes)
		if err != nil {
			x.s.o.Logger.Warn("host tier: experts stay on disk", "bytes", bytes, "error", err)
		}
		x.pinned(b, buffer)
	}
	return nil
}

// pinned gives a block to its experts; nil: they have none.
func (x *Experts) pinned(block int, buffer *vk.Buffer) {
	s := x.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if buffer != nil {
		x.pins = append(x.pins, buffer)
	}
	for i := range x.resting {
		r := &x.resting[i]
		switch {
		case r.unit == nil || r.block != block:
		case buffer == nil:
			r.block = -1
			s.total -= r.unit.Bytes
		default:
			r.host = buffer
		}
	}
	s.progress()
	s.changed.Broadcast()
}

// fillDepth is how many reads of the host tier are under way: a step's own must not wait long behind them.
const fillDepth = plan.ReadDepth / 2

// fill reads what is to rest in host memory, in order, a few at a time, less what a step has read before.
func (x *Experts) fill() error {
	type read struct {
		r       *resting
		request *file.Request
		last    bool
	}
	var under []read
	var failed error
	end := func() {
		f := under[0]
		under = under[1:]
		err := f.request.Wait(context.Background()) // memory is its until then
		if err != nil && failed == nil && x.ctx.Err() == nil {
			failed = fmt.Errorf("read %s: %w", f.r.unit.Name, err)
		}
		if f.last {
			x.s.rests(f.r, err == nil && failed == nil)
		}
	}
	for i := range x.resting {
		r := &x.resting[i]
		begins, err := x.begins(r)
		if err != nil {
			break
		}
		if !begins {
			continue
		}
		for k := range r.pieces {
			if len(under) == fillDepth {
				end()
			}
			p, q := &r.pieces[k], file.NewRequest()
			skip := file.Skip(p.off)
			q.File, q.Off, q.N, q.Dst, q.Tag = x.s.files[p.file], p.off, p.n, r.host.Mapped()[p.hostOff-skip:][:file.Room(p.off, p.n)], uint64(r.cached)
			if err := x.pool.Start(x.ctx, q); err != nil { // closing
				x.s.rests(r, false)
				break
			}
			x.s.fromDisk.Add(p.n)
			under = append(under, read{r, q, k == len(r.pieces)-1})
		}
		if failed != nil || x.ctx.Err() != nil {
			break
		}
	}
	for len(under) > 0 {
		end()
	}
	return failed
}

// begins claims an expert for fill, once its memory is pinned.
func (x *Experts) begins(r *resting) (bool, error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if r.unit == nil {
		return false, nil
	}
	if err := x.s.waitOr(x.ctx, func() bool { return r.block < 0 || r.host != nil }); err != nil {
		return false, err
	}
	if r.block < 0 || r.state != absent {
		return false, nil
	}
	r.state = reading
	return true, nil
}

// kept is how many bytes of experts are to rest in host memory, and how many do; under the lock.
func (x *Experts) kept() (arrived, total int64) {
	for i := range x.resting {
		r := &x.resting[i]
		if r.unit != nil && r.block >= 0 {
			total += r.unit.Bytes
			if r.state == present {
				arrived += r.unit.Bytes
			}
		}
	}
	return arrived, total
}
