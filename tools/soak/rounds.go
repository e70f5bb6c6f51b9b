package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"leat/engine"
	"leat/engine/token"
)

// rounds generates the same text again and again.
type rounds struct {
	m      *engine.Model
	s      *engine.Session
	o      options
	speeds []point // of whole rounds, decode tok/s; read once run has returned
	cpu    []point // the same rounds, CPU seconds a token, prompt included

	tokens, whole atomic.Int64 // so far; rounds
}

// run returns when ctx is over, or enough tokens are made; neither is an error.
func (r *rounds) run(ctx context.Context) error {
	begin := time.Now()
	prompt := make([]token.ID, r.o.prompt)
	for i := range prompt {
		prompt[i] = token.ID((i*7919 + 3) % r.m.Info().VocabSize)
	}
	var first []token.ID
	for round := 1; ; round++ {
		if r.o.tokens > 0 && r.tokens.Load() >= r.o.tokens {
			return nil
		}
		if err := r.s.Truncate(0); err != nil {
			return err
		}
		cpu := cpuSeconds()
		var ids []token.ID
		var start time.Time
		for t, err := range r.s.Generate(ctx, prompt, engine.Params{MaxTokens: r.o.n, IgnoreEOG: true}) {
			if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if ids = append(ids, t.ID); len(ids) == 1 {
				start = time.Now()
			}
			r.tokens.Add(1)
		}
		now := time.Now()
		if first == nil {
			first = ids
		}
		if i := differ(first, ids); i >= 0 {
			return fmt.Errorf("round %d: token %d differs from that of the first round", round, i)
		}
		r.speeds = append(r.speeds, point{now.Sub(begin).Seconds(), float64(len(ids)-1) / now.Sub(start).Seconds()})
		r.cpu = append(r.cpu, point{now.Sub(begin).Seconds(), (cpuSeconds() - cpu) / float64(len(ids))})
		r.whole.Add(1)
	}
}

// differ is the first place where a and b do; -1: nowhere.
func differ(a, b []token.ID) int {
	if slices.Equal(a, b) {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
