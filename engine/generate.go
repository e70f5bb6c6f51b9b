package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"leat/engine/internal/exec"
	"leat/engine/sample"
	"leat/engine/token"
)

// Params shapes one generation. The zero value is greedy and ends at the model's stop.
type Params struct {
	sample.Params          // Temperature, Seed; 0: off
	MaxTokens     int      // 0: until a stop or a full context
	Stop          []string // matched across token borders, not yielded
	IgnoreEOG     bool     // go on past the model's own stop
}

// Stop says why a generation ended.
type Stop int

// StopNone on every token but the last.
const (
	StopNone   Stop = iota
	StopEOG         // the model ended its turn
	StopLength      // MaxTokens
	StopString      // one of Params.Stop
)

func (s Stop) String() string {
	return [...]string{"none", "end of generation", "length", "stop string"}[s]
}

// Token is one step of a generation.
type Token struct {
	ID   token.ID
	Text string // whole runes only; "" while a rune, or what may be a stop string, is incomplete
	Stop Stop   // StopNone until the last
}

// Generate appends ids, shape (T), to the session and yields tokens as they are
// sampled. Breaking the loop or canceling ctx stops after the step in flight; the
// session keeps every token yielded. A failure comes once, last, with a zero
// Token: [ErrContextFull], [ErrDeviceLost] (the Model is dead) or ctx.Err().
func (s *Session) Generate(ctx context.Context, ids []token.ID, p Params) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		g, err := s.start(ids, p)
		if err != nil {
			yield(Token{}, err)
			return
		}
		for n := 1; ; n++ {
			t, err := g.next(ctx, n)
			if err != nil {
				yield(Token{}, fmt.Errorf("generate token %d: %w", n, err))
				return
			}
			if !yield(t, nil) || t.Stop != StopNone {
				return
			}
		}
	}
}

// generation is one call of Generate.
type generation struct {
	s       *Session
	p       Params
	sampler *sample.Sampler
	text    *token.Stream
	held    string // text that may be the beginning of a stop string
}

func (s *Session) start(ids []token.ID, p Params) (*generation, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := s.take(ids); err != nil {
		return nil, err
	}
	g := &generation{s: s, p: p, sampler: sample.New(p.Params)}
	if s.m.tok != nil {
		g.text = s.m.tok.NewStream()
	}
	return g, nil
}

// next runs what has yet to run and samples one token, the n-th of this generation.
func (g *generation) next(ctx context.Context, n int) (Token, error) {
	id, err := g.sample(ctx)
	if err != nil {
		return Token{}, err
	}
	if err := g.s.take([]token.ID{id}); err != nil {
		return Token{}, err
	}
	t := Token{ID: id}
	if g.s.m.tok != nil && g.s.m.tok.IsEOG(id) && !g.p.IgnoreEOG {
		t.Stop, t.Text = StopEOG, g.flush()
		return t, nil
	}
	text := ""
	if g.text != nil {
		text = g.text.Push(id)
	}
	var stopped bool
	if t.Text, stopped = g.release(text); stopped {
		t.Stop = StopString
		return t, nil
	}
	if g.p.MaxTokens > 0 && n >= g.p.MaxTokens {
		t.Stop = StopLength
		t.Text += g.flush()
	}
	return t, nil
}

func (g *generation) sample(ctx context.Context) (id token.ID, err error) {
	greedy := g.p.Greedy()
	runErr := g.s.run(ctx, greedy, false, func(r exec.Result) {
		if greedy {
			id = r.IDs[0]
			return
		}
		id, err = g.sampler.Next(r.Logits)
	})
	if runErr != nil {
		return 0, runErr
	}
	return id, err
}

// release adds text to what is held and lets go of all that no stop string can claim.
func (g *generation) release(text string) (out string, stopped bool) {
	g.held += text
	for _, stop := range g.p.Stop {
		if i := strings.Index(g.held, stop); stop != "" && i >= 0 {
			out, g.held = g.held[:i], ""
			return out, true
		}
	}
	keep := 0
	for _, stop := range g.p.Stop {
		for n := min(len(stop)-1, len(g.held)); n > keep; n-- {
			if strings.HasSuffix(g.held, stop[:n]) {
				keep = n
			}
		}
	}
	out, g.held = g.held[:len(g.held)-keep], g.held[len(g.held)-keep:]
	return out, false
}

// flush returns everything held, at the end of a generation.
func (g *generation) flush() string {
	out := g.held
	if g.text != nil {
		out += g.text.Flush()
	}
	g.held = ""
	return out
}
