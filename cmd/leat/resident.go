package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"leat/engine"
	"leat/internal/plan"
)

// resident is a loaded model and its one session. What a session holds is kept from
// one use to the next, so that only what is new has to run. After idle without a use
// the model leaves the device, and the next use loads it again.
type resident struct {
	load func(context.Context) (*engine.Model, error)
	idle time.Duration // 0: it stays

	mu    sync.Mutex // held during a use: the timer waits
	m     *engine.Model
	s     *engine.Session
	timer *time.Timer
	uses  int
	last  modelFacts
	took  time.Duration // of the last load
	loads int
}

// modelFacts are what is known of a model whether it is loaded just now or not.
type modelFacts struct {
	device      string
	arch        string
	trained     int // tokens of context
	cap         int
	hasTemplate bool
	plan        plan.Plan
}

// use loads the model where it isn't and lends it to do.
func (r *resident) use(ctx context.Context, do func(*engine.Model, *engine.Session) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses++
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.m == nil {
		if err := r.open(ctx); err != nil {
			return err
		}
	}
	err := do(r.m, r.s)
	r.last.plan = engine.DetailsOf(r.m).Plan // less may be resident than before
	if errors.Is(err, engine.ErrDeviceLost) {
		r.free() // it can do no more; the next use may find the device again
		return err
	}
	if r.idle > 0 {
		use := r.uses
		r.timer = time.AfterFunc(r.idle, func() { r.expire(use) })
	}
	return err
}

func (r *resident) open(ctx context.Context) error {
	begin := time.Now()
	m, err := r.load(ctx)
	if err != nil {
		return err
	}
	if err := tokenizerNeeded(m); err != nil {
		m.Close()
		return err
	}
	s, err := m.NewSession()
	if err != nil {
		m.Close()
		return err
	}
	info := m.Info()
	r.m, r.s, r.took = m, s, time.Since(begin)
	r.loads++
	r.last = modelFacts{
		device: m.DeviceName(), arch: info.Architecture, trained: info.ContextLength, cap: s.Cap(),
		hasTemplate: m.HasChatTemplate(), plan: engine.DetailsOf(m).Plan,
	}
	return nil
}

// expire frees the model unless it was used again: a timer that fired while a use
// stopped it waits here until that use is over.
func (r *resident) expire(use int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uses == use {
		r.free()
	}
}

// facts are those of the last load, and whether the model is loaded now.
func (r *resident) facts() (f modelFacts, loaded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.m != nil
}

func (r *resident) free() {
	if r.m == nil {
		return
	}
	r.s.Close()
	r.m.Close()
	r.m, r.s = nil, nil
}

// Close frees the model; safe to call twice.
func (r *resident) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.free()
}

// pace is what the model's pacer does; off when the model isn't loaded.
func (r *resident) pace() paceStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		return paceStats{By: "off"}
	}
	return paceStatsOf(r.m.Stats().Pace)
}

// memory is the VRAM in use and the number of tokens the session holds; 0 when the
// model isn't loaded.
func (r *resident) memory() (used int64, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		return 0, 0
	}
	return r.m.Stats().VRAMBytes, r.s.Len()
}
