package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"leat/engine/sample"
	"leat/engine/token"
	"leat/internal/step"
)

// Params shapes one generation. The zero value is greedy and ends at the model's stop.
type Params struct {
	sample.Params             // Temperature, TopK, …; DRYBreakers nil: what [Model.Breakers] gives for its defaults
	MaxTokens     int         // 0: until a stop or a full context
	Stop          []string    // matched across token borders, not yielded
	IgnoreEOG     bool        // go on past the model's own stop
	Logprobs      int         // so many of the likeliest tokens in Token.Top, and Token.Logprob; 0: neither, -1: Logprob only
	Mask          sample.Mask // restricts the choice; told of each token of this generation
}

// Validate reports a parameter out of its range, as a [*sample.RangeError].
func (p *Params) Validate() error {
	if p.MaxTokens < 0 {
		return &sample.RangeError{Param: "max tokens", Found: fmt.Sprint(p.MaxTokens), Wanted: "0 (no limit) or more"}
	}
	if p.Logprobs < -1 || p.Logprobs > sample.MaxLogprobs {
		return &sample.RangeError{Param: "logprobs", Found: fmt.Sprint(p.Logprobs), Wanted: fmt.Sprintf("-1 to %d", sample.MaxLogprobs)}
	}
	return p.Params.Validate()
}

// onDevice reports whether the device can choose, so that no logits need come back.
func (p *Params) onDevice() bool { return p.Greedy() && p.Mask == nil && p.Logprobs == 0 }

// Stop says why a generation ended.
type Stop int

// StopNone on every token but the last.
const (
	StopNone   Stop = iota
	StopEOG         // the model ended its turn
	StopLength      // MaxTokens
	StopString      // one of Params.Stop
)

// String names the reason, as --json prints it.
func (s Stop) String() string {
	return [...]string{"none", "end of generation", "length", "stop string"}[s]
}

// Token is one step of a generation.
type Token struct {
	ID   token.ID
	Text string // whole runes only; "" while a rune, or what may be a stop string, is incomplete
	Stop Stop   // StopNone until the last

	// Control is the spelling of a control token that did not end the generation, such as a tag around thinking. It is no text, and comes
	// after Text, which is what was held back until then: no stop string spans a control token.
	Control string

	Logprob float64          // in nats, by the model alone, before any sampling parameter; with Params.Logprobs
	Top     []sample.Logprob // the likeliest tokens in order, ID among them or not; with Params.Logprobs
}

// Generate appends ids, shape (T), to the session and yields tokens as they are
// sampled. Canceling ctx stops a step in the midst: it waits for no disk, and on the
// device for half a second of work at most. The session keeps every token yielded, and
// can go on. A failure comes once, last, with a zero
// Token: [ErrContextFull], [ErrNoTokens], [ErrClosed], [ErrBusy], ctx.Err(), a [*TokenError], a [*sample.RangeError], a [*NotFiniteError], a
// [*SourceChangedError], another error of reading weights, or [ErrDeviceLost]:
// after that the Model is dead, after all others it is as good as before.
func (s *Session) Generate(ctx context.Context, ids []token.ID, p Params) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if err := s.claim(); err != nil {
			yield(Token{}, fmt.Errorf("generate: %w", err))
			return
		}
		defer s.release()
		g, err := s.start(ids, p)
		if err != nil {
			yield(Token{}, err)
			return
		}
		ctx := s.during(ctx)
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
	v := s.r.p.hyper.VocabSize
	for id := range p.LogitBias {
		if int(id) >= v {
			return nil, &sample.RangeError{Param: "logit bias", Found: fmt.Sprintf("token %d", id), Wanted: fmt.Sprintf("0 to %d", v-1)}
		}
	}
	if err := s.take(ids); err != nil {
		return nil, err
	}
	if p.DRYMultiplier > 0 && p.DRYBreakers == nil {
		p.DRYBreakers = s.m.Breakers("\n", ":", "\"", "*") // as the field has it
	}
	g := &generation{s: s, p: p, sampler: sample.New(p.Params)}
	g.sampler.SetMask(p.Mask)
	g.sampler.Prime(s.ids...)
	if s.m.text.tok != nil {
		g.text = s.m.text.tok.NewStream()
	}
	return g, nil
}

// next runs what has yet to run and samples one token, the n-th of this generation.
func (g *generation) next(ctx context.Context, n int) (Token, error) {
	t, err := g.sample(ctx)
	if err != nil {
		return Token{}, err
	}
	id := t.ID
	if err := g.s.take([]token.ID{id}); err != nil {
		return Token{}, err
	}
	g.sampler.Accept(id)
	if g.s.m.text.tok != nil && g.s.m.text.tok.IsEOG(id) && !g.p.IgnoreEOG {
		t.Stop, t.Text = StopEOG, g.flush()
		return t, nil
	}
	switch {
	case g.text == nil:
	case g.s.m.text.tok.IsControl(id):
		t.Text, t.Control = g.flush(), g.s.m.text.tok.Text(id)
	default:
		var stopped bool
		if t.Text, stopped = g.release(g.text.Push(id)); stopped {
			t.Stop = StopString
			return t, nil
		}
	}
	if g.p.MaxTokens > 0 && n >= g.p.MaxTokens {
		t.Stop = StopLength
		t.Text += g.flush()
	}
	return t, nil
}

// sample runs what has yet to run and chooses, on the device where that is enough.
func (g *generation) sample(ctx context.Context) (t Token, err error) {
	if g.p.onDevice() {
		err = g.s.run(ctx, step.WantArgmax, false, func(r step.Result) { t.ID = r.IDs[0] })
		return t, err
	}
	// Kept, so that other sessions' steps needn't wait for the choice.
	if err := g.s.run(ctx, step.WantLogits, false, g.s.keep); err != nil {
		return t, err
	}
	if t.ID, err = g.sampler.Next(g.s.logits); err != nil {
		return t, err
	}
	if g.p.Logprobs != 0 {
		t.Logprob, t.Top = sample.Logprobs(g.s.logits, t.ID, g.p.Logprobs)
	}
	return t, nil
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
