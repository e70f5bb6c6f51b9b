package bench

import (
	"context"
	"slices"
	"time"

	"leat/engine"
	"leat/engine/trace"
)

// Timeline is what the lanes did in a span of time.
type Timeline struct {
	Begin, End time.Duration
	Spans      []trace.Span // that reach into it
}

// record traces some tokens, generated in an empty context.
func (b *run) record(ctx context.Context) error {
	if err := b.s.Truncate(0); err != nil {
		return err
	}
	n := b.o.TraceTokens
	b.doing("tracing %d tokens", n)
	room := b.s.Cap() - 1
	var epoch time.Time
	var ends []time.Duration // of the tokens, the first of them untraced
	for _, err := range b.s.Generate(ctx, b.ids(0, 1), engine.Params{MaxTokens: min(room, n+1), IgnoreEOG: true}) {
		if err != nil {
			return err
		}
		if ends == nil {
			epoch = time.Now()
			b.trace.Start()
		}
		ends = append(ends, time.Since(epoch))
	}
	b.trace.Stop()
	b.result.Spans = b.trace.Spans()
	if dropped := b.trace.Dropped(); dropped > 0 {
		b.note("the trace has no room for %d of its spans", dropped)
	}
	if len(ends) < 2 {
		return nil
	}
	at := len(ends) / 2
	b.result.Token = cut(b.result.Spans, ends[at-1], ends[at])
	return nil
}

// cut is the part of spans within [begin, end).
func cut(spans []trace.Span, begin, end time.Duration) Timeline {
	t := Timeline{Begin: begin, End: end}
	for _, s := range spans {
		if s.End > begin && s.Begin < end {
			t.Spans = append(t.Spans, s)
		}
	}
	t.Spans = slices.Clip(t.Spans)
	return t
}
