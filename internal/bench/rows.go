package bench

import (
	"context"
	"slices"
	"time"

	"leat/engine/token"
	"leat/internal/predict"
)

// ids are n tokens for the positions from on. Which they are changes nothing for a dense
// model; a mixture spreads them over its experts.
func (b *run) ids(from, n int) []token.ID {
	ids := make([]token.ID, n)
	for i := range ids {
		x := uint64(from+i+1) * 0x9e3779b97f4a7c15 // a hash: no two positions alike
		x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
		ids[i] = token.ID((x >> 20) % uint64(b.expect.hyper.VocabSize))
	}
	return ids
}

// first reads n tokens at a depth that the session has, and chooses the next one.
func (b *run) first(ctx context.Context, depth, n int) error {
	if err := b.s.Truncate(depth); err != nil {
		return err
	}
	if _, err := b.s.Next(ctx, b.ids(depth, n)); err != nil {
		return err
	}
	return b.s.Truncate(depth)
}

// prompt times the reading of a prompt up to the choice of the next token.
func (b *run) prompt(ctx context.Context, t Test) (*Row, error) {
	asked := t.Prompt
	if t.Prompt = b.expect.fitPrompt(asked); t.Prompt < asked {
		b.note("pp%d became pp%d: %d tokens would take about %s, --limit is %s", asked, t.Prompt, asked, about(b.expect.promptSeconds(asked)), b.o.Limit)
	}
	row := b.newRow(t, asked, t.Prompt)
	if err := b.warmPrompt(ctx, t); err != nil {
		return row, err
	}
	b.watch.take()
	b.takeOps(nil)
	err := b.repeat(row, t.Prompt, func() (timing, error) {
		if err := b.rest(ctx); err != nil {
			return timing{}, err
		}
		a := take(b.m)
		err := b.first(ctx, t.Depth, t.Prompt)
		return timing{a, take(b.m), nil}, err
	})
	if b.expect.speeds != nil && t.Depth == 0 {
		p := predict.PlanWithHits(&b.expect.plan, *b.expect.speeds, &b.expect.hyper, t.Prompt, t.Prompt, nil, b.found(row, true))
		row.Predicted, row.PredictedBottleneck = p.PrefillPerSec, p.PrefillBottleneck
		row.compare()
	}
	if t.Depth == 0 && len(row.Seconds) > 0 {
		l := &b.result.Load
		seconds := NewSpread(row.Seconds).Median
		if l.WarmPrompt == 0 {
			l.WarmTTFTSeconds, l.WarmPrompt = seconds, t.Prompt
		}
		b.expect.promptTook(t.Prompt, seconds)
	}
	return row, err
}

const (
	restLook  = 5 * time.Millisecond  // between two looks at what has been asked for
	restStill = 50 * time.Millisecond // without more of it, in which the last of it comes
	restMost  = 10 * time.Second
)

// rest waits until what a step begins with has come: a prompt comes to a model that was at rest, and is predicted so.
func (b *run) rest(ctx context.Context) error {
	if b.expect.plan.StreamedBytes == 0 {
		return nil
	}
	begin := time.Now()
	since, uploaded, read := begin, int64(0), int64(0)
	for time.Since(since) < restStill && time.Since(begin) < restMost {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restLook):
		}
		if st := b.m.Stats(); st.UploadedBytes != uploaded || st.DiskBytes != read {
			since, uploaded, read = time.Now(), st.UploadedBytes, st.DiskBytes
		}
	}
	return nil
}

// generation times tokens one by one.
func (b *run) generation(ctx context.Context, t Test) (*Row, error) {
	asked, warm := t.Generate, warmTokens
	row := b.newRow(t, asked, asked)
	var each []float64
	if err := b.warmGeneration(ctx, t); err != nil {
		return row, err
	}
	b.watch.take()
	b.takeOps(nil)
	err := b.repeat(row, 0, func() (timing, error) {
		g, err := b.generate(ctx, t.Depth, t.Generate, warm, len(row.Seconds) == 0)
		warm = 1
		if n := len(g.tokens); err == nil && n < t.Generate {
			b.note("tg%d became tg%d: more tokens than that take longer than --limit %s", t.Generate, n, b.o.Limit)
			t.Generate = n
			*row = *b.newRow(t, asked, n)
		}
		if err == nil {
			each = append(each, g.tokens...)
		}
		return g, err
	})
	if b.expect.speeds != nil {
		p := predict.PlanWithHits(&b.expect.plan, *b.expect.speeds, &b.expect.hyper, t.Depth+1+t.Generate/2, 1, b.found(row, false), nil)
		row.Predicted, row.PredictedBottleneck = p.DecodePerSec, p.DecodeBottleneck
		row.compare()
	}
	if len(each) > 0 {
		for i := range each {
			each[i] *= 1000
		}
		s := NewSpread(each)
		s.Values = nil
		row.TokenMS = &s
	}
	return row, err
}

// timing is one repetition.
type timing struct {
	from, to sample
	tokens   []float64 // generations: seconds of each
}

// generate times n tokens after some that aren't. With bounded it stops when the limit is
// over, after one token at least. The tokens are given, as a prompt's are: a model without sense, and not it alone, would
// soon say the same again and again, and find the same experts. What it would say is computed all the same.
func (b *run) generate(ctx context.Context, depth, n, warm int, bounded bool) (g timing, err error) {
	if err := b.s.Truncate(depth); err != nil {
		return g, err
	}
	begin := time.Now()
	var last time.Time
	late := func(limits float64) bool {
		return b.o.Limit > 0 && time.Since(begin).Seconds() > limits*b.o.Limit.Seconds()
	}
	for i := 0; ; i++ {
		if _, err := b.s.Next(ctx, b.ids(depth+i, 1)); err != nil {
			return g, err
		}
		now := time.Now()
		if warm > 0 {
			if warm--; warm > 0 && late(0.25) {
				warm = 0
			}
			if warm == 0 {
				g.from, last, begin = take(b.m), now, now
				g.from.at = now
			}
			continue
		}
		g.tokens, last = append(g.tokens, now.Sub(last).Seconds()), now
		if len(g.tokens) == n || bounded && late(1) {
			break
		}
	}
	g.to = take(b.m)
	g.to.at = last
	return g, b.s.Truncate(depth)
}

// repeat runs repetitions of a row, as many as asked for or as there is time for. tokens
// are of one; 0: the row's own.
func (b *run) repeat(row *Row, tokens int, once func() (timing, error)) (err error) {
	var u usage
	var rates []float64
	var each []*Experts
	begin, total := time.Now(), 0
	for i := range b.o.Repetitions {
		if i > 0 && b.o.Limit > 0 && time.Since(begin)*time.Duration(i+1)/time.Duration(i) > b.o.Limit {
			b.note("%s: %d of %d repetitions within --limit %s", row.Test, i, b.o.Repetitions, b.o.Limit)
			break
		}
		var g timing
		if g, err = once(); err != nil {
			break
		}
		if i == 0 {
			if text := b.expect.learnDisk(&b.loaded, &g.from); text != "" {
				b.note("%s", text)
			}
		}
		n := max(tokens, len(g.tokens))
		seconds := g.to.at.Sub(g.from.at).Seconds()
		row.Seconds = append(row.Seconds, seconds)
		rates = append(rates, float64(n)/seconds)
		each = append(each, ExpertsOf(&g.from.stats, &g.to.stats))
		u.add(g.from, g.to)
		total += n
		b.doing("%s: %d of %d, %.3g tok/s", row.Test, i+1, b.o.Repetitions, rates[i])
	}
	row.PerSec = NewSpread(rates)
	u.fill(row, b.o.Ceilings)
	row.typical = typicalOf(rates, each)
	b.watch.take().fill(row, u.wall.Seconds(), total)
	b.takeOps(row)
	return err
}

// found is how a row's steps found the experts that share slots, nil where there are none, and has the row say so: what is predicted is
// the machine's speed, not the text's habits. Prompts also tell how many of a layer's experts each of their steps needed.
func (b *run) found(row *Row, prompt bool) *predict.ExpertHits {
	x := row.Experts
	if x == nil || b.expect.plan.Experts == nil {
		return nil
	}
	if row.typical != nil {
		x = row.typical
	}
	f := x.ExpertHits()
	if prompt {
		f.Needed = x.Distinct / float64(b.expect.plan.Experts.Count)
	}
	row.PredictedHit = &f.HitRate
	return f
}

// typicalOf is how the repetition with the median speed found its experts: the first one still brings some that the others find. nil: no one
// repetition has that speed.
func typicalOf(rates []float64, each []*Experts) *Experts {
	if len(rates)%2 == 0 {
		return nil
	}
	return each[slices.Index(rates, NewSpread(rates).Median)]
}

// takeOps takes what was summed up of the kernels: into row, or to forget it.
func (b *run) takeOps(row *Row) {
	if b.ops == nil {
		return
	}
	ops, steps := b.ops.Take()
	if row != nil && len(ops) > 0 {
		row.Ops = &Ops{steps, ops}
	}
}

func (b *run) newRow(t Test, asked, n int) *Row {
	r := &Row{Test: t.Name(), Prompt: t.Prompt, Generate: t.Generate, Depth: t.Depth, Seconds: []float64{}}
	if n < asked {
		r.Asked = asked
	}
	return r
}

// compare holds what was measured against what was predicted.
func (r *Row) compare() {
	if r.Predicted > 0 && r.PerSec.Median > 0 {
		r.Difference = r.PerSec.Median/r.Predicted - 1
	}
}
