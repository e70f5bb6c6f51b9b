package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"leat/engine/token"
	"leat/internal/kv"
	"leat/internal/plan"
	"leat/internal/step"
)

// EmbedOptions shape [Model.Embed]. The zero value is what the model's author meant.
type EmbedOptions struct {
	Pooling  Pooling // "": as the model's file says; by mean if the file of an encoder doesn't say it
	Unscaled bool    // vectors keep their length; false: their length is 1
}

// Embed makes a vector of each text, shape (D), D being [Info].EmbeddingLength, or the width of the last dense layer of a file with such; with [PoolingNone] it is a vector of
// each token, shape (T, EmbeddingLength), before dense layers. Tokens are those of
// [Model.Encode] with addSpecial. Texts do not see each other, and a text's vector is the same whichever others are beside it.
//
// It works with encoders, of which a text must fit into one step, and with models that generate. Several goroutines may call it: their steps take turns. Memory is that
// of a session: while all sessions are open, it fails with a [*BudgetError]. It fails with a [*PoolingError] if neither o nor the file says how to pool, a [*TextError] for a text that is empty or too long,
// a [*TokenError] for an id that is none of the model's, and otherwise as [Session.Forward] does.
func (m *Model) Embed(ctx context.Context, texts [][]token.ID, o EmbedOptions) ([][]float32, error) {
	pooling, err := m.pooled(o.Pooling)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	for i, ids := range texts {
		if err := m.checkText(i, len(texts), ids); err != nil {
			return nil, fmt.Errorf("embed: %w", err)
		}
	}
	during, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.life, func() { cancel(context.Cause(m.life)) })()
	e := embedding{m: m, texts: texts, pooling: pooling, hidden: make([][]float32, len(texts))}
	if m.life.Err() == nil {
		defer context.AfterFunc(during, m.runner.weights.Wake)()
	}
	if err := e.run(during); err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	for i, hidden := range e.hidden {
		width := m.prepared.hyper.EmbeddingLength
		v := pooling.pool(hidden, width)
		if pooling != PoolingNone {
			v = m.prepared.hyper.Project(v)
			width = len(v)
		}
		if !o.Unscaled {
			normalise(v, width)
		}
		e.hidden[i] = v
	}
	return e.hidden, nil
}

// EncoderError says that a model is an encoder: it makes vectors of texts, and neither logits nor text.
type EncoderError struct {
	Architecture string // as "bert"
}

// Error names the architecture.
func (e *EncoderError) Error() string {
	return fmt.Sprintf("%s is an encoder: it generates no text and has no logits", e.Architecture)
}

// Hint says what encoders are for.
func (e *EncoderError) Hint() string { return "leat embed makes vectors of texts with it" }

// Unwrap makes errors.Is(err, errors.ErrUnsupported) true.
func (e *EncoderError) Unwrap() error { return errors.ErrUnsupported }

// TextError says that a text does not fit, or is empty.
type TextError struct {
	Index, Count int // of the text among those that were given
	Tokens, Most int // tokens that it has, and that fit
	trained      int // tokens that the model was trained for
}

// Error names the text and both numbers.
func (e *TextError) Error() string {
	return fmt.Sprintf("text %d of %d has %d tokens, wanted 1 to %d", e.Index+1, e.Count, e.Tokens, e.Most)
}

// Hint says what to change.
func (e *TextError) Hint() string {
	switch {
	case e.Tokens == 0:
		return ""
	case e.Tokens > e.trained:
		return fmt.Sprintf("the model was trained for at most %d tokens: cut the text into parts", e.trained)
	}
	return fmt.Sprintf("--ctx %d asks for a context that holds it; that may take a larger --vram, and no --chunk below it", e.Tokens)
}

// Unwrap is [ErrNoTokens] or [ErrContextFull].
func (e *TextError) Unwrap() error {
	if e.Tokens == 0 {
		return ErrNoTokens
	}
	return ErrContextFull
}

// checkText checks text number i of count.
func (m *Model) checkText(i, count int, ids []token.ID) error {
	h := m.prepared.hyper
	if most := m.prepared.plan.ContextLength; len(ids) == 0 || len(ids) > most {
		return &TextError{Index: i, Count: count, Tokens: len(ids), Most: most, trained: h.ContextLength}
	}
	for k, id := range ids {
		if id < 0 || int(id) >= h.VocabSize {
			return fmt.Errorf("text %d of %d: %w", i+1, count, &TokenError{ID: id, Index: k, Count: len(ids), VocabSize: h.VocabSize})
		}
	}
	return nil
}

// embedding is a call of [Model.Embed].
type embedding struct {
	m       *Model
	texts   [][]token.ID
	pooling Pooling
	hidden  [][]float32 // by text: hidden states of the tokens that the pooling keeps, (tokens, D)

	rows   []step.Row
	ofText []int // by row with Row.Logits: its text
}

// reading is a text that is run, and where its keys and values are.
type reading struct {
	text int // index in embedding.texts
	seq  *kv.Sequence
}

// run computes the hidden states of all texts, the longest first, as many texts in a step as fit.
func (e *embedding) run(ctx context.Context) error {
	left := make([]int, len(e.texts))
	for i := range left {
		left[i] = i
	}
	slices.SortStableFunc(left, func(a, b int) int { return cmp.Compare(len(e.texts[b]), len(e.texts[a])) })
	for len(left) > 0 {
		n, err := e.runFirst(ctx, left)
		if err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// runFirst runs the first of texts, of which the longest comes first: as many as one step can hold. It waits until no other call of [Model.Embed] holds memory, and
// returns how many texts it has run.
func (e *embedding) runFirst(ctx context.Context, texts []int) (int, error) {
	select {
	case e.m.embedding <- struct{}{}:
		defer func() { <-e.m.embedding }()
	case <-ctx.Done():
		return 0, ended(ctx)
	}
	batch, err := e.open(texts)
	if err == nil {
		err = e.runBatch(ctx, batch)
	}
	for _, r := range batch {
		r.seq.Release()
	}
	return len(batch), err
}

// open gives the first of texts, of which the longest comes first, sequences: as many as one step can hold, or one text that may need several steps.
func (e *embedding) open(texts []int) (batch []reading, err error) {
	e.m.open.RLock()
	defer e.m.open.RUnlock()
	if e.m.life.Err() != nil {
		return nil, context.Cause(e.m.life)
	}
	cache := e.m.runner.cache
	for _, i := range texts[:e.fitting(texts)] {
		n := len(e.texts[i])
		seq, err := cache.NewSequence(n)
		if err != nil && len(batch) == 0 {
			return nil, &BudgetError{
				What: fmt.Sprintf("a KV cache of %d tokens beside the open sessions", n),
				Need: int64(pagesOf(n)) * e.m.prepared.plan.KV.PageBytes, Have: int64(cache.Free()) * e.m.prepared.plan.KV.PageBytes,
				Remedy: "close a session, or load the model with more Sessions",
			}
		}
		if err != nil { // sessions have the rest
			break
		}
		batch = append(batch, reading{i, seq})
	}
	return batch, nil
}

// fitting is how many of texts, of which the longest comes first, one step can hold; 1 if not even the first fits.
func (e *embedding) fitting(texts []int) (n int) {
	p := e.m.prepared.plan
	pages := pagesOf(p.ContextLength) * p.Sessions // of the page table, where all texts have the length of the longest, and of the cache
	rows, kept := 0, 0
	for _, i := range texts {
		rows += len(e.texts[i])
		kept += e.kept(len(e.texts[i]))
		if rows > p.Chunk || kept > p.LogitRows || (n+1)*pagesOf(len(e.texts[texts[0]])) > pages || p.KV.States > 0 && n == p.Sessions {
			break
		}
		n++
	}
	return max(n, 1)
}

// pagesOf is the number of pages that hold n positions.
func pagesOf(n int) int { return (n + plan.PagePositions - 1) / plan.PagePositions }

// kept is how many hidden states of a text of n tokens the pooling keeps.
func (e *embedding) kept(n int) int {
	if e.pooling == PoolingFirst || e.pooling == PoolingLast {
		return 1
	}
	return n
}

// runBatch runs texts to their ends: in one step, but for a text that is longer than a step of a model that generates.
func (e *embedding) runBatch(ctx context.Context, batch []reading) error {
	p, longest := e.m.prepared.plan, len(e.texts[batch[0].text])
	most := p.Chunk
	if e.kept(longest) > 1 {
		most = min(most, p.LogitRows)
	}
	for from := 0; from < longest; from += most {
		if err := e.step(ctx, batch, from, most); err != nil {
			return err
		}
	}
	return nil
}

// step runs up to n tokens of each text of a batch, from a position on.
func (e *embedding) step(ctx context.Context, batch []reading, from, n int) error {
	e.rows, e.ofText = e.rows[:0], e.ofText[:0]
	for _, r := range batch {
		ids := e.texts[r.text]
		for i := from; i < min(from+n, len(ids)); i++ {
			row := step.NewRow(e.rows, r.seq, ids[i], i, step.Prompt)
			if row.Logits = e.pooling.keeps(i, len(ids)); row.Logits {
				e.ofText = append(e.ofText, r.text)
			}
			e.rows = append(e.rows, row)
		}
	}
	width := e.m.prepared.hyper.EmbeddingLength
	return e.m.runner.step(ctx, e.m.life, e.rows, step.WantHidden, func(res step.Result) error {
		for i, text := range e.ofText {
			e.hidden[text] = append(e.hidden[text], res.Hidden[i*width:][:width]...)
		}
		for _, r := range batch {
			if err := r.seq.Append(min(from+n, len(e.texts[r.text])) - r.seq.Len()); err != nil {
				return err
			}
		}
		return nil
	})
}
