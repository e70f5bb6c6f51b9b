package weights

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"leat/decompose/pack"
	"leat/tools/testdata"
	"leat/vk"
)

func mixture(t testing.TB) string {
	t.Helper()
	return filepath.Join(testdata.Demo(t), "leat-demo-moe-q4_k_m.gguf")
}

// layersOf are the layers of the model that have experts in slots.
func (x *Experts) layersOf() (list []int) {
	for l := range x.layers {
		if x.layers[l].class >= 0 {
			list = append(list, l)
		}
	}
	return list
}

// run has a batch's experts copied back on the device, as kernels read them, and says what they were. Every second time
// nobody looks at what comes back before more is asked for.
func (r *rig) run(b *Batch, look bool) {
	r.t.Helper()
	x := r.s.Experts()
	r.ok(b.SubmitUploads(context.Background()))
	r.points = b.Waits(r.points[:0])
	last := x.fetcher.up.Last()
	for _, p := range r.points { // with one queue it would wait for itself
		if !slices.ContainsFunc(x.fetcher.up.Points(last, nil), func(s vk.Point) bool { return s.Timeline == p.Timeline && s.Value >= p.Value }) {
			r.t.Fatalf("the step would wait for %d of %s, which is not submitted", p.Value, p.Timeline.Name)
		}
	}
	r.ok(r.compute.Wait(context.Background(), r.value)) // the command buffer is free
	r.ok(r.cb.Begin())
	units := make([]*pack.Unit, b.Len())
	at, off := make([]int64, b.Len()), int64(0)
	for i := range b.Len() {
		address, id, unit, err := b.At(i)
		r.ok(err)
		s := &b.slot(i).place
		if address != s.Address() || unit.Expert != id || id != b.ID(i) || unit.Layer != b.layer {
			r.t.Fatalf("%s: at %#x, expert %d of layer %d", unit.Name, address, id, b.layer)
		}
		r.cb.Copy(r.back, off, s.span.Buffer, s.span.Off, unit.Bytes)
		units[i], at[i], off = unit, off, off+unit.Bytes
	}
	r.cb.HostBarrier()
	r.ok(r.cb.End())
	r.value++
	r.signal[0] = vk.Point{Timeline: r.compute, Value: r.value}
	r.ok(r.o.Device.Compute.Submit(vk.Submission{Commands: []*vk.CommandBuffer{r.cb}, Waits: r.points, Signals: r.signal[:]}))
	if !look {
		return
	}
	r.ok(r.compute.Wait(context.Background(), r.value))
	for i, u := range units {
		for _, tensor := range u.Tensors {
			want := make([]byte, tensor.Bytes)
			r.ok(r.o.Model.ReadAt(tensor.File, want, tensor.Off))
			if !bytes.Equal(r.back.Mapped()[at[i]+tensor.UnitOff:][:tensor.Bytes], want) {
				r.t.Fatalf("%s: %s differs from the file", u.Name, tensor.Name)
			}
		}
	}
}

// TestExpertBytes: whatever is asked for, in whatever batches, through a few slots, with steps that end before their
// time and slots that go, what a step reads is what the file holds.
func TestExpertBytes(t *testing.T) {
	path := mixture(t)
	for _, c := range []struct {
		name string
		setup
	}{
		{"from RAM", setup{host: 64 << 20}},
		{"from disk", setup{host: 1}},
		{"from both", setup{host: 4 << 20, extra: 1 << 20}},
		{"two lanes", setup{host: 64 << 20, extra: 2 << 20, lanes: 2}},
		{"two lanes, from both", setup{host: 4 << 20, lanes: 2, blocks: 600 << 10, extra: 3 << 20}},
		{"less RAM than planned", setup{host: 64 << 20, pinned: 5 << 20, extra: 1 << 20}},
		{"no host import", setup{host: 4 << 20, extra: 1 << 20, noImport: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, path, c.setup)
			x := r.s.Experts()
			layers, rng := x.layersOf(), rand.New(rand.NewPCG(3, 4))
			batches := []*Batch{x.NewBatch(), x.NewBatch()}
			for step := 1; step <= 60; step++ {
				r.s.Begin(false)
				stops := rng.IntN(6) == 0
			steps:
				for _, l := range layers {
					x.Begin(step, l)
					var ids []int32
					for _, id := range rng.Perm(x.p.Count)[:1+rng.IntN(x.p.Count)] {
						ids = append(ids, int32(id))
					}
					if hits, misses := x.Split(l, ids, nil, nil); len(hits)+len(misses) != len(ids) || len(hits) > x.Present(l) {
						t.Fatalf("%d hits and %d misses of %d, %d present", len(hits), len(misses), len(ids), x.Present(l))
					}
					asked := map[int]bool{}
					for _, id := range ids {
						asked[int(id)] = true
					}
					for len(ids) > 0 || batches[0].Len()+batches[1].Len() > 0 {
						if stops && rng.IntN(4) == 0 {
							break steps
						}
						for _, b := range batches[:1+rng.IntN(2)] { // sometimes the next ones come already
							if b.Len() > 0 || len(ids) == 0 {
								continue
							}
							n, err := b.Take(context.Background(), l, ids[:min(len(ids), 1+rng.IntN(x.p.Count))])
							r.ok(err)
							if n == 0 && b == batches[0] && batches[1].Len() == 0 {
								t.Fatal("no slot is free, and nothing is taken")
							}
							ids = ids[n:]
							for i := range b.Len() {
								if !asked[b.ID(i)] {
									t.Fatalf("expert %d of layer %d is taken, for which nobody asks any more", b.ID(i), l)
								}
								delete(asked, b.ID(i))
							}
						}
						if batches[0].Len() > 0 {
							r.run(batches[0], rng.IntN(2) == 0)
							if _, err := batches[0].Release(r.value, rng.IntN(3)*x.p.Count/2); err != nil {
								t.Fatal(err)
							}
						}
						batches[0], batches[1] = batches[1], batches[0]
					}
					if len(asked) > 0 {
						t.Fatalf("experts %v of layer %d were not taken", asked, l)
					}
				}
				r.ok(r.compute.Wait(context.Background(), r.value))
				if stops {
					r.ok(r.s.Abort(r.value))
				}
				if step%20 == 0 {
					if p, err := r.o.Plan.Shrink(r.o.Plan.DeviceBytes - 1<<20); err == nil {
						r.ok(r.s.Replan(t.Context(), p))
						r.o.Plan = p
					}
				}
			}
			s := x.Stats()
			if s.Asked() == 0 || s.Evictions == 0 || s.UploadedBytes == 0 || c.host == 1 && s.HostMisses > 0 {
				t.Errorf("%+v", s)
			}
			t.Logf("%d slots of %d, %d rest in RAM: %+v", r.o.Plan.Experts.Slots(), x.p.Total(), x.p.HostCount, s)
		})
	}
}

// TestWrongSlot: a slot that holds another than what was taken there, or was given to another meanwhile, is an error
// and never an address.
func TestWrongSlot(t *testing.T) {
	r := newRig(t, mixture(t), setup{host: 64 << 20, extra: 1 << 20})
	x := r.s.Experts()
	for name, spoil := range map[string]func(s *slot){
		"another expert":     func(s *slot) { s.expert.Expert++ },
		"another generation": func(s *slot) { s.expert.Generation++ },
		"nobody":             func(s *slot) { s.place.filled = false },
	} {
		b := x.NewBatch()
		x.Begin(1, 0)
		_, err := b.Take(t.Context(), 0, []int32{3, 5})
		r.ok(err)
		r.ok(b.SubmitUploads(t.Context()))
		_, _, _, err = b.At(1)
		r.ok(err)
		s := b.slot(1)
		was := *s
		spoil(s)
		var wrong *SlotError
		if _, _, _, err := b.At(1); !errors.As(err, &wrong) || wrong.Expert != b.ID(1) || wrong.Slot != b.taken[1].Slot {
			t.Errorf("%s: At says %v", name, err)
		}
		if err := b.SubmitUploads(t.Context()); !errors.As(err, &wrong) {
			t.Errorf("%s: Arrive says %v", name, err)
		}
		if _, err := b.Release(r.value, 2); !errors.As(err, &wrong) || fmt.Sprint(err) == "" {
			t.Errorf("%s: Release says %v", name, err)
		}
		*s = was
		r.ok(x.abort(r.value))
	}
}

// TestExpertFaults: while reads fail now and then, for a step or for host copies, each step either fails so or reads what the file holds. When they fail
// no more, all host copies are filled.
func TestExpertFaults(t *testing.T) {
	path, bad := mixture(t), errors.New("bad sector")
	for _, c := range []struct {
		name string
		setup
	}{
		{"from disk", setup{host: 1}},
		{"from both", setup{host: 4 << 20, extra: 1 << 20}},
		{"from RAM, two lanes", setup{host: 64 << 20, lanes: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fails atomic.Bool
			var reads atomic.Int64
			c.fault = func(string, int64, int64) error {
				if fails.Load() && reads.Add(1)%23 == 0 {
					return bad
				}
				return nil
			}
			fails.Store(true)
			r := newRig(t, path, c.setup)
			x, rng, failed := r.s.Experts(), rand.New(rand.NewPCG(5, 6)), 0
			layers, b := x.layersOf(), x.NewBatch()
			step := func(n int) error {
				r.s.Begin(false)
				for _, l := range layers {
					x.Begin(n, l)
					var ids []int32
					for _, id := range rng.Perm(x.p.Count) {
						ids = append(ids, int32(id))
					}
					for len(ids) > 0 {
						took, err := b.Take(t.Context(), l, ids)
						if err == nil {
							err = b.SubmitUploads(t.Context())
						}
						if err != nil {
							return err
						}
						r.run(b, true)
						_, err = b.Release(r.value, rng.IntN(x.p.Count))
						r.ok(err)
						ids = ids[took:]
					}
				}
				return nil
			}
			for n := 1; n <= 30; n++ {
				fails.Store(n <= 25)
				r.ok(r.s.Recover(t.Context()))
				err := step(n)
				if err == nil {
					continue
				}
				if !errors.Is(err, bad) || n > 26 { // what failed in the background shows in the step after
					t.Fatalf("step %d: %v", n, err)
				}
				failed++
				r.ok(r.compute.Wait(t.Context(), r.value))
				r.ok(r.s.Abort(r.value))
			}
			if done, total := x.sources.bytes(); failed == 0 || done != total {
				t.Errorf("%d steps failed; %d of %d bytes have host copies", failed, done, total)
			}
			t.Logf("%d steps failed", failed)
		})
	}
}
