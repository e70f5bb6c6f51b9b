package weights

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"leat/internal/plan"
	"leat/tools/await"
	"leat/vk/mem"
)

// shrink takes VRAM from a rig between two steps. It reports false once nothing is left to take.
func (r *rig) shrink(bytes int64) bool {
	r.t.Helper()
	before := r.o.Plan
	q, err := before.Shrink(before.DeviceBytes - bytes)
	var small *plan.BudgetError
	if errors.As(err, &small) {
		if small.Need >= before.DeviceBytes {
			return false
		}
		q, err = before.Shrink(small.Need)
	}
	r.ok(err)
	r.ok(r.compute.Wait(r.t.Context(), r.value)) // as a step does at its end
	r.ok(r.s.Replan(r.t.Context(), q))
	r.o.Plan = q
	var want int64
	for _, n := range append(slices.Clone(q.Blocks), q.Ring...) {
		want += n
	}
	if used := r.o.VRAM.Used(); used != want {
		r.t.Fatalf("%d bytes of VRAM are in use, the plan says %d", used, want)
	}
	return true
}

// TestReplan: residents become streamed step after step, and every step finds what the
// file holds; what the host tier has is not read again.
func TestReplan(t *testing.T) {
	path := model(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"all resident, disk", setup{extra: 64 << 20, host: 1}},
		{"all resident, host", setup{extra: 64 << 20, host: 64 << 20}},
		{"some resident, disk, two lanes", setup{extra: 2 << 20, host: 1, lanes: 2}},
		{"some resident, host and disk", setup{extra: 2 << 20, host: 3 << 20}},
		{"less RAM than planned", setup{extra: 2 << 20, host: 64 << 20, pinned: 5 << 20}},
		{"in place", setup{extra: 64 << 20, host: 1, shared: mem.Imported}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.setup.blocks = 256 << 10
			r := newRig(t, path, c.setup)
			rng := rand.New(rand.NewPCG(1, 2))
			shrinks := 0
			for more := true; more; shrinks++ {
				for range rng.IntN(3) {
					r.ok(r.step(rng.IntN(2) == 0, true))
				}
				if rng.IntN(2) == 0 {
					r.ok(r.s.Loaded(t.Context()))
				}
				more = r.shrink(300 << 10)
			}
			r.ok(r.step(true, true))
			r.ok(r.step(true, true))
			if shrinks < 4 || len(r.o.Plan.Ring) == 0 {
				t.Errorf("%d shrinks, ring %v", shrinks, r.o.Plan.Ring)
			}
			p := r.o.Plan
			if c.pinned == 0 {
				_, before := r.s.Traffic()
				const steps = 3
				for range steps {
					r.ok(r.step(true, false))
				}
				if _, after := r.s.Traffic(); after-before > p.DiskBytes*(steps+1) {
					t.Errorf("%d bytes were read in %d steps, wanted %d each: the host tier is read again", after-before, steps, p.DiskBytes)
				}
			}
		})
	}
}

// TestReplanKeeps: after a shrink nothing that stays is read again.
func TestReplanKeeps(t *testing.T) {
	r := newRig(t, model(t), setup{extra: 3 << 20, host: 2 << 20, blocks: 256 << 10})
	r.ok(r.step(true, false))
	r.ok(r.s.Loaded(t.Context()))
	r.ok(r.compute.Wait(t.Context(), r.value))
	old := r.o.Plan
	if !r.shrink(1 << 20) {
		t.Fatal("nothing to shrink")
	}
	_, before := r.s.Traffic()
	r.ok(r.step(true, true))
	var fresh int64 // what was resident and is not
	for i := range old.Units {
		if u := &r.o.Plan.Units[i]; old.Units[i].Tier != u.Tier {
			fresh += u.Bytes
		}
	}
	_, after := r.s.Traffic()
	if most := fresh + 2*r.o.Plan.DiskBytes; fresh == 0 || after-before > most {
		t.Errorf("%d bytes were read, wanted at most %d", after-before, most)
	}
}

// TestReplanAnyMoment: while all is still loading, with reads that fail or a store that
// closes, nothing hangs and nothing is left.
func TestReplanAnyMoment(t *testing.T) {
	path := model(t)
	bad := errors.New("bad sector")
	before := runtime.NumGoroutine()
	rng := rand.New(rand.NewPCG(5, 6))
	for k := range 16 {
		t.Run("", func(t *testing.T) {
			reads, last := atomic.Int64{}, rng.Int64N(400)
			r := newRig(t, path, setup{extra: 1<<20 + rng.Int64N(3<<20), host: rng.Int64N(6 << 20), lanes: k % 3, blocks: 256 << 10, fault: func(string, int64, int64) error {
				if k%4 == 3 && reads.Add(1) > last {
					return bad
				}
				return nil
			}})
			for range 4 {
				for range rng.IntN(2) {
					if err := r.step(rng.IntN(2) == 0, true); err != nil {
						if !errors.Is(err, bad) {
							t.Fatal(err)
						}
						return
					}
				}
				q, err := r.o.Plan.Shrink(r.o.Plan.DeviceBytes - 200<<10)
				if err != nil {
					break
				}
				r.ok(r.compute.Wait(t.Context(), r.value))
				if err := r.s.Replan(t.Context(), q); err != nil {
					if !errors.Is(err, bad) {
						t.Fatal(err)
					}
					if _, err := r.s.Units().Acquire(t.Context(), 0); !errors.Is(err, bad) {
						t.Errorf("after a failure: %v", err)
					}
					return
				}
				r.o.Plan = q
			}
		})
	}
	await.Goroutines(t, before)
}

// TestReplanNoRing: where the driver has no room for a ring, a plan with a smaller one goes on.
func TestReplanNoRing(t *testing.T) {
	r := newRig(t, model(t), setup{extra: 64 << 20, host: 1, blocks: 256 << 10})
	r.ok(r.step(true, true))
	q, err := r.o.Plan.Shrink(r.o.Plan.DeviceBytes - 1<<20)
	r.ok(err)
	r.ok(r.compute.Wait(t.Context(), r.value))
	r.o.VRAM.SetBudget(1)
	if err := r.s.Replan(t.Context(), q); err == nil {
		t.Fatal("a ring was made without memory")
	}
	r.o.VRAM.SetBudget(0)
	least, err := q.Shrink(q.DeviceBytes - 100<<10)
	r.ok(err)
	r.ok(r.s.Replan(t.Context(), least))
	r.o.Plan = least
	r.ok(r.step(true, true))
}

// TestProgress: the resident bytes and those of the host tier are told, up to the end,
// before any step; the total is what can be kept.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name   string
		pinned int64
	}{{"as planned", 0}, {"less RAM than planned", 5 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			var done, total atomic.Int64
			calls, first := atomic.Int64{}, atomic.Int64{}
			r := newRig(t, model(t), setup{extra: 1 << 20, host: 64 << 20, pinned: c.pinned, progress: func(d, n int64) {
				if d < done.Load() || d > n {
					t.Errorf("%d of %d bytes after %d", d, n, done.Load())
				}
				first.CompareAndSwap(0, n)
				calls.Add(1)
				done.Store(d)
				total.Store(n)
			}})
			r.ok(r.s.Loaded(t.Context()))
			var kept int64
			for i := range r.o.Plan.Units {
				kept += r.o.Plan.Units[i].Bytes
			}
			if done.Load() != total.Load() || c.pinned == 0 && first.Load() != kept || (total.Load() < kept) != (c.pinned > 0) {
				t.Errorf("%d of %d bytes, at first %d; the plan keeps %d", done.Load(), total.Load(), first.Load(), kept)
			}
			_, before := r.s.Traffic()
			n := calls.Load()
			r.ok(r.step(true, true))
			if _, after := r.s.Traffic(); c.pinned == 0 && after != before {
				t.Errorf("a step read %d bytes though all was kept", after-before)
			}
			if calls.Load() != n {
				t.Error("more progress was told after the end")
			}
		})
	}
}
