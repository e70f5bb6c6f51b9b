package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"leat/internal/expertcache"
	"leat/internal/kv"
	"leat/internal/pace"
	"leat/internal/plan"
	"leat/internal/step"
	"leat/internal/weights"
	"leat/vk"
	"leat/vk/limit"
	"leat/vk/mem"
)

// runner is a prepared model's memory, and what runs steps in it.
type runner struct {
	p          *prepared
	vram, host *mem.Heap
	compute    *vk.Timeline
	weights    *weights.Store
	cache      *kv.Cache
	stepper    *step.Stepper
	pacer      *pace.Pacer         // nil: nothing is paced
	routing    *expertcache.Writer // nil: nobody wants to know
	shrinker   shrinker
	rates      rates

	mu   sync.Mutex // held during a step
	dead error      // the device is lost: no step can run any more
}

// rates are limits that are shared by all that goes over the link, comes from disk, or is read in VRAM; nil: no limit.
type rates struct{ link, disk, vram *limit.Rate }

func newRates(l *Limits) rates {
	return rates{limit.New(l.LinkBytesPerSec), limit.New(l.DiskBytesPerSec), limit.New(l.VRAMBytesPerSec)}
}

// build makes everything that lives on the device, in order of dependence. What was built before a failure is for the caller to close.
func (r *runner) build(ctx context.Context) (err error) {
	if err = r.p.device.makeKernels(&r.p.o, &r.p.hooks); err != nil {
		return err
	}
	r.vram = mem.NewHeap(r.p.device.vk, "VRAM", r.p.plan.DeviceBudget)
	r.host = mem.NewHeap(r.p.device.vk, "host", 0)
	r.rates = newRates(&r.p.o.Tuning.Limits)
	if r.compute, err = r.p.device.vk.NewTimeline("compute"); err != nil {
		return err
	}
	if r.cache, err = kv.New(r.vram, r.p.plan.KV); err != nil {
		return err
	}
	r.weights, err = weights.New(ctx, weights.Options{
		Device: r.p.device.vk, VRAM: r.vram, Host: r.host, Model: r.p.file, Plan: r.p.plan, Compute: r.compute, Logger: r.p.o.Logger, Progress: r.p.o.Progress,
		Queues: r.lanes(), Fault: r.p.hooks.fail.read, Trace: r.p.o.Tuning.Trace.recorder(), Shared: r.p.shared, Policy: r.p.o.Tuning.ExpertPolicy,
		LinkRate: r.rates.link, DiskRate: r.rates.disk,
	})
	if err != nil {
		return err
	}
	r.pacer = r.newPacer()
	r.shrinker.init(r)
	routed, err := r.newRouting()
	if err != nil {
		return err
	}
	r.stepper, err = step.New(step.Options{
		Device: r.p.device.vk, Kernels: r.p.device.kernels, VRAM: r.vram, Host: r.host, Model: r.p.file, Hyper: r.p.hyper, Plan: r.p.plan,
		Weights: r.weights, Compute: r.compute, Logger: r.p.o.Logger, MaxSubmit: r.p.o.Tuning.MaxSubmit,
		Pacer: r.pacer, Ran: r.shrinker.ran(), Trace: r.p.o.Tuning.Trace.recorder(), Ops: r.p.o.Tuning.Trace.kernels(), ReadRate: r.rates.vram,
		Routed: routed, EveryRow: r.p.hooks.everyRow,
		ConditionalBelow: r.conditionalBelow(), MergeExperts: r.mergesExperts(), Poll: r.p.hooks.polls || !r.p.device.onCPU(),
	})
	return err
}

// lanes are the queues to upload on: nil, the device's own choice, outside tests.
func (r *runner) lanes() (queues []*vk.Queue) {
	for i := range r.p.hooks.lanes {
		queues = append(queues, r.p.device.vk.Transfers[i%len(r.p.device.vk.Transfers)])
	}
	return queues
}

// conditionalBelow is the miss rate below which layers run without asking the host.
func (r *runner) conditionalBelow() float64 {
	switch {
	case r.p.hooks.always:
		return 2 // above any rate
	case r.p.device.onCPU():
		return 0
	}
	return plan.ConditionalBelow
}

// mergesExperts reports whether a layer's experts in VRAM run together with those that are being uploaded.
func (r *runner) mergesExperts() bool {
	return r.p.hooks.waves == wavesTogether || r.p.hooks.waves == byDevice && r.p.device.onCPU()
}

// step runs one step for a session that lives as long as life. ctx is of [Session.during]. Only a lost device ends the model.
func (r *runner) step(ctx, life context.Context, rows []step.Row, want step.Want, use func(step.Result) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != nil {
		return fmt.Errorf("the model can run no more steps: %w", r.dead)
	}
	if life.Err() != nil {
		return context.Cause(life)
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	res, err := r.try(ctx, rows, want)
	if errors.Is(err, step.ErrStopped) {
		return fmt.Errorf("%w: %w", step.ErrStopped, ended(ctx))
	}
	if err != nil {
		if errors.Is(err, ErrDeviceLost) {
			r.dead = err
		}
		return public(err)
	}
	r.p.device.kernels.SaveInBackground()
	return use(res)
}

// try runs one step, with weights that take as much VRAM as there is for them, and are read again where that failed before.
func (r *runner) try(ctx context.Context, rows []step.Row, want step.Want) (step.Result, error) {
	if err := r.shrinker.look(ctx); err != nil {
		return step.Result{}, err
	}
	if err := r.weights.Recover(ctx); err != nil {
		return step.Result{}, err
	}
	return r.stepper.Step(ctx, rows, want)
}

// close waits for the device and frees what was built.
func (r *runner) close() error {
	var errs []error
	if r.routing != nil {
		errs = append(errs, r.routing.Flush())
	}
	if r.p.device != nil && r.p.device.vk != nil {
		errs = append(errs, r.p.device.vk.WaitIdle())
	}
	if r.weights != nil {
		errs = append(errs, r.weights.Close())
	}
	if r.stepper != nil {
		r.stepper.Close()
	}
	if r.pacer != nil {
		errs = append(errs, r.pacer.Close())
	}
	if r.cache != nil {
		r.cache.Close()
	}
	if r.compute != nil {
		r.compute.Close()
	}
	for _, h := range []*mem.Heap{r.vram, r.host} {
		if h != nil {
			h.Close()
		}
	}
	return errors.Join(errs...)
}
