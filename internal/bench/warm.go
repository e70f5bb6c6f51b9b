package bench

import (
	"context"
	"time"
)

// An idle GPU's clock is a fraction of a busy one's, and rises only with work: on an H100 the first prompt after a load of 11 s
// ran at a third of the speed that later ones had.
const (
	warmWork = 0.5  // seconds of work that is not timed; what takes so long by itself warms itself
	warmMost = 3    // seconds of it at most
	warmGain = 0.03 // what gets faster by so much is not warm yet
	warmPart = 0.1  // seconds of tokens at a time
)

// warming judges from work that is not timed whether what follows may be.
type warming struct {
	most      float64 // seconds
	sum       float64 // of work so far
	last      float64 // seconds a token
	best      float64 // of those before; 0: none
	untilNext float64 // seconds that the next piece of work takes, about
}

// enough reports whether more of it would change nothing, or take too long.
func (w *warming) enough() bool {
	switch {
	case w.untilNext >= warmWork || w.sum+w.untilNext > w.most:
		return true
	case w.sum < warmWork || w.best == 0:
		return false
	}
	return w.last > (1-warmGain)*w.best
}

// took counts n tokens more.
func (w *warming) took(n int, seconds float64) {
	if w.last > 0 && (w.best == 0 || w.last < w.best) {
		w.best = w.last
	}
	w.last, w.sum, w.untilNext = seconds/float64(max(1, n)), w.sum+seconds, seconds
}

// warmUp repeats work, at least so often, until the device is at its pace. about is how many seconds it takes.
func (b *run) warmUp(least int, about float64, work func() (tokens int, err error)) error {
	w := warming{most: warmMost, untilNext: about}
	if b.o.Limit > 0 {
		w.most = min(w.most, b.o.Limit.Seconds()/4)
	}
	for n := 0; n < least || !w.enough(); n++ {
		begin := time.Now()
		tokens, err := work()
		if err != nil {
			return err
		}
		w.took(tokens, time.Since(begin).Seconds())
	}
	return nil
}

// warmPrompt reads a prompt as it will be timed.
func (b *run) warmPrompt(ctx context.Context, t Test) error {
	seconds, least := b.expect.promptSeconds(t.Prompt), 1
	if b.result.Load.ColdPrompt == t.Prompt || b.o.Limit > 0 && 2*seconds >= b.o.Limit.Seconds() {
		least = 0 // what this length needs is built, or there is no time for it
	}
	return b.warmUp(least, seconds, func() (int, error) { return t.Prompt, b.first(ctx, t.Depth, t.Prompt) })
}

// warmGeneration generates others than those that will be timed: these must not find their experts in VRAM for having been there.
func (b *run) warmGeneration(ctx context.Context, t Test) error {
	return b.warmUp(0, b.expect.tokenSeconds(t.Depth), func() (n int, err error) {
		if err := b.s.Truncate(t.Depth); err != nil {
			return 0, err
		}
		begin := time.Now()
		for n < warmTokens+t.Generate && time.Since(begin).Seconds() <= warmPart {
			if _, err := b.s.Next(ctx, b.ids(t.Depth+b.s.Cap()+n, 1)); err != nil {
				return n, err
			}
			n++
		}
		return n, b.s.Truncate(t.Depth)
	})
}
