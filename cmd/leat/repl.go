package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"leat/engine"
)

// repl is a conversation at a terminal.
type repl struct {
	a       *app
	term    terminal
	model   *resident
	name    string // of the model, as it was given
	conv    conversation
	set     settings
	start   settings // what set was at the beginning
	attempt int      // retries of the last question
	pending string   // the last question, where it got no answer
	last    *answer
	total   totals
	quit    bool
	predict *predictor // nil: there is no prediction
}

// totals are sums over all answers of a run.
type totals struct{ answers, prompt, reused, tokens int }

// loop reads and answers until the person leaves. Only what makes going on pointless
// is an error; all others are shown.
func (r *repl) loop(ctx context.Context) error {
	interrupted := false // by the line before this one
	for !r.quit {
		text, quoted, err := readInput(r.term)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, errInterrupted) && !interrupted:
			interrupted = true
			r.note("Ctrl-C again, Ctrl-D or /quit leaves")
			continue
		case errors.Is(err, errInterrupted), errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read from the terminal: %w", err)
		}
		interrupted = false
		if err := r.do(ctx, text, quoted); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.a.explain(err)
		}
	}
	return nil
}

// do takes one input: a command, or a message. A blank in front of a slash makes it a message.
func (r *repl) do(ctx context.Context, text string, quoted bool) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.HasPrefix(text, "/") && !quoted:
		return r.command(ctx, text)
	}
	if trimmed := strings.TrimLeft(text, " \t"); strings.HasPrefix(trimmed, "/") && !quoted {
		text = trimmed
	}
	r.conv.ask(text)
	r.attempt = 0
	return r.reply(ctx)
}

// reply answers the last question. Without an answer the question is taken back, since
// most templates want a turn of each side; /retry asks it again.
func (r *repl) reply(ctx context.Context) error {
	ctx, stop := r.interruptible(ctx)
	defer stop()
	before := r.conv.Dropped
	var got *answer
	err := r.model.use(ctx, func(m *engine.Model, s *engine.Session) (err error) {
		if got, err = r.generate(ctx, m, s); got != nil {
			got.Stats.predict(r.predict, m)
		}
		return err
	})
	r.pending = ""
	if err != nil && (got == nil || got.Text == "" && got.Thinking == "") {
		r.conv.Dropped = before
		r.pending, _ = r.conv.retract()
		if interrupted(ctx, err) {
			r.note("stopped before an answer; /retry asks again")
			return nil
		}
		return err
	}
	r.conv.answer(got.Text, got.Thinking)
	r.last = got
	r.total.add(&got.Stats)
	switch {
	case err == nil && got.Text == "" && got.Thinking == "":
		r.note("the model had nothing to say")
	case interrupted(ctx, err):
		r.note("stopped")
		err = nil
	case errors.Is(err, engine.ErrContextFull):
		r.note("the context is full, so the answer ends here; the oldest turns make room for the next question")
		err = nil
	}
	for _, line := range got.Stats.Shrinks {
		r.note("%s", line)
	}
	if r.set.Stats {
		r.note("%s", got.Stats.speeds())
		if p := got.Stats.prediction(); p != "" {
			r.note("%s", p)
		}
	}
	fmt.Fprintln(r.a.out)
	return err
}

func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

func (r *repl) generate(ctx context.Context, m *engine.Model, s *engine.Session) (*answer, error) {
	ids, split, dropped, err := fit(ctx, m, s.Cap(), &r.conv, &r.set)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		r.note("the context of %d tokens is full: the oldest %d %s left out from here on", s.Cap(), dropped, plural(dropped, "message"))
	}
	scr := r.screen()
	defer scr.finish()
	return generate(ctx, m, s, request{ids: ids, split: split, p: r.set.params(m, r.attempt), show: scr.show})
}

func (r *repl) screen() *screen {
	return &screen{w: r.a.out, dim: dims(r.a.out), thinking: r.set.ShowThinking}
}

// interruptible is ctx until Ctrl-C; those of before don't count. A second one ends the
// program, should the answer not end.
func (r *repl) interruptible(ctx context.Context) (context.Context, func()) {
	interrupts := r.term.Interrupts() // the goroutine may outlive this terminal
	select {
	case <-interrupts:
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
			return
		}
		select {
		case <-interrupts:
			if r.a.exit != nil {
				r.a.exit(exitInterrupted)
			}
		case <-over:
		}
	}()
	return ctx, func() {
		cancel()
		close(over)
	}
}

// note is talk of the program: it goes to stderr.
func (r *repl) note(format string, args ...any) {
	fmt.Fprintf(r.a.err, "leat: "+format+"\n", args...)
}

func (t *totals) add(s *runStats) {
	t.answers++
	t.prompt += s.PromptTokens
	t.reused += s.ReusedTokens
	t.tokens += s.Tokens
}

// welcome is the first thing a person reads.
func (r *repl) welcome() {
	f, _ := r.model.facts()
	r.note("%s on %s, context of %d tokens", r.name, f.device, f.cap)
	switch {
	case r.conv.Raw && !f.hasTemplate:
		r.note("this file has no chat template: the model goes on with what you write")
	case r.conv.Raw:
		r.note("no chat template: the model goes on with what you write")
	case r.conv.System != "":
		r.note("system prompt: %s", firstLine(r.conv.System))
	}
	r.note("/help lists the commands, Ctrl-D leaves")
}

func firstLine(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	if more && rest != "" {
		line += " …"
	}
	return printable(line)
}
