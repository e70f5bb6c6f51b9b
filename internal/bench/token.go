package bench

import (
	"context"
	"slices"
	"strings"
	"time"

	"leat/internal/plan"
	"leat/internal/trace"
)

// Timeline is what the lanes did in a span of time.
type Timeline struct {
	Begin, End time.Duration
	Spans      []trace.Span // that reach into it
	Tiers      []plan.Tier  // of each: where the weights rest that it moves or reads; [NoWeights]: none
}

// NoWeights stands for the tier of a span that touches none.
const NoWeights plan.Tier = -1

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
	for i := range min(room, n+1) {
		if _, err := b.s.Next(ctx, b.ids(i, 1)); err != nil {
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
	tiers := tiersOf(&b.expect.plan)
	for _, s := range b.result.Token.Spans {
		b.result.Token.Tiers = append(b.result.Token.Tiers, tiers.of(s.Name))
	}
	return nil
}

// tierNames finds units by their names.
type tierNames struct {
	p  *plan.Plan
	at map[string]int
}

func tiersOf(p *plan.Plan) tierNames {
	t := tierNames{p, map[string]int{}}
	for i := range p.Units {
		t.at[p.Units[i].Name] = i
	}
	return t
}

// of is the tier of a span that is named as a unit, or as a run of them, "first to last":
// then the slowest one's.
func (t tierNames) of(name string) plan.Tier {
	if i, ok := t.at[name]; ok {
		return t.p.Units[i].Tier
	}
	for cut := 0; ; { // a unit's own name may hold a "to"
		n := strings.Index(name[cut:], runTo)
		if n < 0 {
			return NoWeights
		}
		first, ok := t.at[name[:cut+n]]
		last, found := t.at[name[cut+n+len(runTo):]]
		if ok && found {
			tier := plan.VRAM
			for i := first; i <= last; i++ {
				tier = max(tier, t.p.Units[i].Tier)
			}
			return tier
		}
		cut += n + len(runTo)
	}
}

// runTo is how the engine names a run of units.
const runTo = " to "

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
