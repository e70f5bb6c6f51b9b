package engine

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"leat/engine/token"
	"leat/internal/kv"
	"leat/internal/step"
)

// Session is one conversation and its KV cache. It does one thing at a time: what runs or forgets tokens while another such call has
// not returned, or its sequence is being ranged over, gives [ErrBusy]. [Session.Len], [Session.Cap] and [Session.Tokens] may be called
// at any time, by any goroutine; so may [Session.Close], which ends the call that runs with [ErrClosed].
type Session struct {
	m    *Model
	r    *runner
	life context.Context // until Close, of the session or of the model
	end  context.CancelCauseFunc

	mu    sync.Mutex // also guards changes of seq, which are made under the runner's mu too where a step reads it
	busy  bool       // a call runs: it alone changes ids and what is below
	seq   *kv.Sequence
	ids   []token.ID // all tokens taken in; those past seq.Len() have yet to run
	until until

	ran    int       // of ids, how many ran before a truncation that their state couldn't follow: they run again unseen
	logits []float32 // of the last step that was asked for them
	rows   []step.Row
}

// until is a context for a session's steps, kept for as long as it is called with the same.
type until struct {
	done <-chan struct{} // of the context that it was made of
	ctx  context.Context
	stop func()
}

// claim begins a call that runs or forgets tokens, release ends it.
func (s *Session) claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return context.Cause(s.life)
	}
	if s.busy {
		return ErrBusy
	}
	s.busy = true
	return nil
}

func (s *Session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// during returns a context for steps that ends with ctx and with the session, and then wakes a
// step that waits for weights. It is made once for all steps under one ctx: so that a step
// allocates nothing.
func (s *Session) during(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.until
	switch done := ctx.Done(); {
	case done == nil, s.life.Err() != nil:
		return s.life
	case done == u.done:
	default:
		s.forget()
		all, cancel := context.WithCancelCause(ctx)
		closed := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
		woken := context.AfterFunc(all, s.r.weights.Wake)
		*u = until{done: done, ctx: all, stop: func() { closed(); woken(); cancel(nil) }}
	}
	return u.ctx
}

// forget frees what during keeps.
func (s *Session) forget() {
	if s.until.stop != nil {
		s.until.stop()
	}
	s.until = until{}
}

// NewSession reserves a KV cache of the model's full context, or fails with a
// [*BudgetError] when as many sessions as were planned are open, or with an
// [*EncoderError] if the model is an encoder.
func (m *Model) NewSession() (*Session, error) {
	m.open.RLock()
	defer m.open.RUnlock()
	if m.life.Err() != nil {
		return nil, fmt.Errorf("new session: %w", context.Cause(m.life))
	}
	if h := m.prepared.hyper; h.Encoder {
		return nil, fmt.Errorf("new session: %w", &EncoderError{Architecture: h.Architecture})
	}
	p, cache := m.prepared.plan, m.runner.cache
	seq, err := cache.NewSequence(p.ContextLength)
	if err != nil {
		need := int64(p.KV.Pages/p.Sessions) * p.KV.PageBytes
		return nil, fmt.Errorf("new session: %w", &BudgetError{
			What: fmt.Sprintf("a KV cache of %d tokens beside the open sessions", p.ContextLength),
			Need: need, Have: int64(cache.Free()) * p.KV.PageBytes, Remedy: "close a session, or load the model with more Sessions",
		})
	}
	s := &Session{m: m, r: &m.runner, seq: seq}
	s.life, s.end = context.WithCancelCause(m.life)
	context.AfterFunc(s.life, s.r.weights.Wake)
	return s, nil
}

// Close gives the session's cache back, once the step that runs has stopped; safe to call twice, and beside any other call. Nothing
// else may be done with the session afterwards: all that could fail gives [ErrClosed].
func (s *Session) Close() {
	s.end(errSessionClosed)
	s.r.mu.Lock() // no step is reading the pages
	defer s.r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.seq.Release()
}

// Len is the number of tokens the session holds.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// Cap is the number of tokens the session can hold.
func (s *Session) Cap() int { return s.r.p.plan.ContextLength }

// Tokens returns the ids the session holds, oldest first.
func (s *Session) Tokens() []token.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]token.ID(nil), s.ids...)
}

// Truncate forgets positions n and later; n may be up to [Session.Len]. Where layers have a state in place of a cache, what is left may
// have to run again, as a part of the next call that runs tokens.
func (s *Session) Truncate(n int) error {
	if err := s.claim(); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	defer s.release()
	return s.truncate(n)
}

func (s *Session) truncate(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil { // by now
		return context.Cause(s.life)
	}
	if n < 0 || n > len(s.ids) {
		return fmt.Errorf("truncate a session of %d tokens to %d", len(s.ids), n)
	}
	s.ids = s.ids[:n]
	s.ran = min(s.ran, n)
	if n < s.seq.Len() {
		s.ran = n
		return s.seq.Truncate(n)
	}
	return nil
}

// Reuse keeps the longest beginning that the session has in common with ids, forgets
// the rest, and returns the ids that have yet to run: at least the last one.
func (s *Session) Reuse(ids []token.ID) (rest []token.ID, err error) {
	if err := s.claim(); err != nil {
		return nil, fmt.Errorf("reuse: %w", err)
	}
	defer s.release()
	n := 0
	for n < len(s.ids) && n < len(ids)-1 && s.ids[n] == ids[n] {
		n++
	}
	if err := s.truncate(n); err != nil {
		return nil, err
	}
	return ids[n:], nil
}

// Forward runs ids, shape (T), and returns the F32 logits after the last, shape
// (V). The slice belongs to the session; the next call overwrites it. It fails as
// [Session.Generate] does.
func (s *Session) Forward(ctx context.Context, ids []token.ID) ([]float32, error) {
	if err := s.claim(); err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	defer s.release()
	if err := s.take(ids); err != nil {
		return nil, err
	}
	if err := s.run(s.during(ctx), step.WantLogits, false, s.keep); err != nil {
		return nil, err
	}
	return s.logits, nil
}

// Next is Forward for callers who want the likeliest token alone, the one of the lowest id where several are: the device chooses it. The
// session does not take it.
func (s *Session) Next(ctx context.Context, ids []token.ID) (id token.ID, err error) {
	if err := s.claim(); err != nil {
		return 0, fmt.Errorf("next: %w", err)
	}
	defer s.release()
	if err := s.take(ids); err != nil {
		return 0, err
	}
	err = s.run(s.during(ctx), step.WantArgmax, false, func(r step.Result) { id = r.IDs[0] })
	return id, err
}

// keep copies a step's logits, which the next step of any session overwrites.
func (s *Session) keep(r step.Result) { s.logits = append(s.logits[:0], r.Logits...) }

// Logits runs ids and yields the logits after each of them in order, shape (V); a
// yielded slice is valid until the next. A failure comes last. Leaving the loop
// early keeps the tokens up to the end of the step in flight.
func (s *Session) Logits(ctx context.Context, ids []token.ID) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		if err := s.claim(); err != nil {
			yield(nil, fmt.Errorf("logits: %w", err))
			return
		}
		defer s.release()
		ctx := s.during(ctx)
		for len(ids) > 0 {
			part := ids[:min(len(ids), s.r.p.plan.LogitRows)]
			ids = ids[len(part):]
			if err := s.take(part); err != nil {
				yield(nil, err)
				return
			}
			if err := s.run(ctx, step.WantLogits, true, s.keep); err != nil {
				yield(nil, err)
				return
			}
			v := s.r.p.hyper.VocabSize
			for at := 0; at < len(s.logits); at += v {
				if !yield(s.logits[at:at+v], nil) {
					return
				}
			}
		}
	}
}

// take adds ids to the session, to be run by the next step.
func (s *Session) take(ids []token.ID) error {
	if len(s.ids)+len(ids) > s.Cap() {
		return fmt.Errorf("%w: it holds %d tokens, %d more do not fit into %d", ErrContextFull, len(s.ids), len(ids), s.Cap())
	}
	for i, id := range ids {
		if id < 0 || int(id) >= s.r.p.hyper.VocabSize {
			return &TokenError{ID: id, Index: i, Count: len(ids), VocabSize: s.r.p.hyper.VocabSize}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, ids...)
	return nil
}

// length is how many positions have run.
func (s *Session) length() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq.Len()
}

// run brings the cache up to the tokens taken, a chunk at a time, and hands the
// output of the last row (or, with all, of every row of each chunk) to use.
func (s *Session) run(ctx context.Context, want step.Want, all bool, use func(step.Result)) error {
	from := s.length()
	if from == len(s.ids) {
		return fmt.Errorf("forward: %w", ErrNoTokens)
	}
	role := step.Prompt
	if len(s.ids)-from == 1 && !all {
		role = step.Decode
	}
	for from < len(s.ids) {
		n := min(len(s.ids)-from, s.r.p.plan.Chunk)
		seen := from >= s.ran
		if !seen {
			n = min(n, s.ran-from)
		}
		s.rows = s.rows[:0]
		for i, id := range s.ids[from : from+n] {
			last := from+i == len(s.ids)-1
			row := step.NewRow(s.rows, s.seq, id, from+i, role)
			row.Logits = all && seen || last
			s.rows = append(s.rows, row)
		}
		err := s.r.step(ctx, s.life, s.rows, want, func(r step.Result) error {
			if s.rows[n-1].Logits {
				use(r)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.seq.Append(n)
		})
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}
