package weights

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"leat/decompose/pack"
	"leat/vk"
	"leat/vk/mem"
)

// abortStep begins a step, reads its first n units, and ends it; with holding the last
// streamed one is acquired but not released.
func (r *rig) abortStep(ctx context.Context, n int, holding bool) error {
	r.s.Begin(true)
	var err error
	for i := range n {
		var p Place
		if p, err = r.s.Units().Acquire(ctx, i); err != nil {
			break
		}
		if !p.Streamed || holding && i == n-1 {
			r.s.Units().Waits(p, nil) // and nothing that waits is submitted
			continue
		}
		r.value++
		r.signal[0] = vk.Point{Timeline: r.compute, Value: r.value}
		r.ok(r.o.Device.Compute.Submit(vk.Submission{Waits: r.s.Units().Waits(p, nil), Signals: r.signal[:]}))
		r.s.Units().Release(r.value)
	}
	r.ok(r.compute.Wait(context.Background(), r.value))
	r.ok(r.s.Abort(r.value))
	return err
}

// TestAbort: whenever a step ends early, those after it find the bytes that the file holds.
func TestAbort(t *testing.T) {
	path := model(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"all from disk", setup{host: 1}},
		{"disk, some resident, two lanes", setup{extra: 1 << 20, host: 1, lanes: 2}},
		{"host", setup{extra: 1 << 19, host: 64 << 20}},
		{"host and disk, two lanes", setup{extra: 1 << 20, host: 3 << 20, lanes: 2}},
		{"all resident", setup{extra: 64 << 20, host: 1}},
		{"in place, imported", setup{shared: mem.Imported}},
		{"in place, mapped, some resident", setup{extra: 1 << 20, shared: mem.Mapped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 8))
			r := newRig(t, path, c.setup)
			units := len(r.o.Plan.Units)
			for r.o.Plan.Units[units-1].Kind == pack.Head && units > 2 {
				units-- // so that the walker may stand before a head when the step ends
			}
			for n := range units + 1 {
				r.ok(r.abortStep(t.Context(), n, n%2 == 0))
				for range rng.IntN(3) { // more than one in a row
					r.ok(r.abortStep(t.Context(), rng.IntN(units+1), rng.IntN(2) == 0))
				}
				if n%3 > 0 {
					r.ok(r.step(rng.IntN(2) == 0, true))
				}
			}
			r.ok(r.step(true, true))
		})
	}
}

// TestAbortReplan: steps end early, VRAM is taken, steps go on, in any order, and find the
// bytes that the file holds.
func TestAbortReplan(t *testing.T) {
	path := model(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"all resident, then disk", setup{extra: 64 << 20, host: 1}},
		{"all resident, then host, two lanes", setup{extra: 64 << 20, host: 64 << 20, lanes: 2}},
		{"some resident, host and disk", setup{extra: 2 << 20, host: 3 << 20}},
		{"in place", setup{extra: 64 << 20, shared: mem.Imported}},
		{"in place, some resident", setup{extra: 2 << 20, shared: mem.Mapped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.setup.blocks = 256 << 10
			for seed := range uint64(4) {
				rng := rand.New(rand.NewPCG(9, seed))
				r := newRig(t, path, c.setup)
				units := len(r.o.Plan.Units)
				shrinks := 0
				for more := true; more; shrinks++ {
					for range rng.IntN(4) {
						r.ok(r.abortStep(t.Context(), rng.IntN(units+1), rng.IntN(2) == 0))
					}
					if rng.IntN(3) == 0 {
						r.ok(r.step(rng.IntN(2) == 0, true))
						r.ok(r.abortStep(t.Context(), rng.IntN(units+1), rng.IntN(2) == 0))
					}
					more = r.shrink(500 << 10)
					if rng.IntN(2) == 0 {
						r.ok(r.step(true, true))
					}
				}
				r.ok(r.step(true, true))
				if shrinks < 3 {
					t.Errorf("%d shrinks", shrinks)
				}
				r.ok(r.s.Close())
			}
		})
	}
}

// TestAbortSkips: what a step has yet to read when it ends is not read for it.
func TestAbortSkips(t *testing.T) {
	r := newRig(t, model(t), setup{host: 1})
	r.ok(r.step(true, false))
	_, before := r.s.Traffic()
	const steps = 20
	for range steps {
		r.ok(r.abortStep(t.Context(), 1, false))
	}
	ring, largest := int64(0), int64(0)
	for _, n := range r.o.Plan.Ring {
		ring += n
	}
	for i := range r.o.Plan.Units {
		largest = max(largest, r.o.Plan.Units[i].Bytes)
	}
	staged := int64(r.o.Plan.Staging.Slots) * r.o.Plan.Staging.SlotBytes
	_, after := r.s.Traffic()
	if most := steps * (ring + staged + 2*largest); after-before > most || most > steps*r.o.Plan.StreamedBytes*3/4 {
		t.Errorf("%d steps of one unit read %d bytes, wanted at most %d: a whole one has %d", steps, after-before, most, r.o.Plan.StreamedBytes)
	}
}

// TestAcquireCanceled: a step that waits for a disk which does not answer ends with its
// context, and the next one finds its bytes once the disk does.
func TestAcquireCanceled(t *testing.T) {
	for n := range 16 {
		shared := mem.NotShared
		if n >= 12 {
			shared = mem.Imported
		}
		var mu sync.Mutex
		reads, gate, stuck := 0, make(chan struct{}), make(chan struct{}, 100)
		r := newRig(t, model(t), setup{extra: int64(n) << 17, host: 1 + int64(n%3)<<19, shared: shared, fault: func(string, int64, int64) error {
			mu.Lock()
			reads++
			hangs := reads > 2*n
			mu.Unlock()
			if hangs {
				select {
				case stuck <- struct{}{}:
				default:
				}
				<-gate
			}
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		stop := context.AfterFunc(ctx, r.s.Wake)
		go func() {
			<-stuck
			cancel()
		}()
		var err error
		for k := 0; k < 40 && err == nil; k++ { // until the disk hangs
			err = r.abortStep(ctx, len(r.o.Plan.Units), false)
		}
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d reads: %v", 2*n, err)
		}
		close(gate)
		r.ok(r.step(true, true))
	}
}
