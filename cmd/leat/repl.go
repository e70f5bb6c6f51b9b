package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	reply   func(context.Context, *repl) (*answer, error) // answers the last question
	keep    *keeper
	safe    []message // the talk as a file has it, by /save, /load or --resume
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
		case errors.Is(err, errCleared):
			interrupted = false
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

// do takes one input: a command, or a message. A blank in front makes a message of what
// would be a command.
func (r *repl) do(ctx context.Context, text string, quoted bool) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.HasPrefix(text, "/") && !quoted:
		return r.command(ctx, text)
	case !quoted && bareCommand(text) != "":
		r.note("%s; with a blank in front %q goes to the model", bareCommand(text), text)
		return nil
	}
	if trimmed := strings.TrimLeft(text, " \t"); !quoted && (strings.HasPrefix(trimmed, "/") || bareCommand(trimmed) != "") {
		text = trimmed
	}
	r.conv.ask(text)
	r.attempt = 0
	return r.ask(ctx)
}

// hold keeps the talk as it stands, a question without an answer included.
func (r *repl) hold() {
	talk := r.conv.saved(r.name, &r.set)
	if r.pending != "" {
		talk.Messages = append(talk.Messages, message{Role: roleUser, Content: r.pending})
	}
	r.keep.hold(talk)
}

// unsaved tells whether the talk would be lost, were it not for what is kept by itself.
func (r *repl) unsaved() bool {
	return len(r.conv.Messages) > 0 && !slices.Equal(r.conv.Messages, r.safe)
}

// isSaved notes that a file has the talk as it stands.
func (r *repl) isSaved() { r.safe = slices.Clone(r.conv.Messages) }

// resume goes on with a conversation that was read from a file.
func (r *repl) resume(c conversation, set settings) {
	r.conv, r.set, r.last, r.attempt = c, set, nil, 0
	r.pending = r.conv.unanswered()
	r.isSaved()
}

// endTalk ends what is kept as one talk; the next one gets a file of its own.
func (r *repl) endTalk() {
	if path := r.keep.end(); path != "" {
		r.note("this talk is kept in %s; \"leat run --resume\" goes on with the last one", path)
	}
}

// confirm asks a question. All but y and yes are a no, the end of the input too.
func (r *repl) confirm(format string, args ...any) bool {
	answer, err := r.term.ReadLine(fmt.Sprintf(format, args...) + " [y/N] ")
	answer = strings.ToLower(strings.TrimSpace(answer))
	if err == nil && (answer == "y" || answer == "yes") {
		return true
	}
	r.note("nothing was changed")
	return false
}

// ask has the last question answered, and keeps the talk before and after.
func (r *repl) ask(ctx context.Context) error {
	r.pending = ""
	r.hold()
	err := r.answerLast(ctx)
	r.hold() // not deferred: a panic leaves this to what ends the talk
	return err
}

// answerLast has the last question answered and takes the answer in. Without one the question
// is taken back, since most templates want a turn of each side; /retry asks it again.
func (r *repl) answerLast(ctx context.Context) error {
	ctx, stop := r.interruptible(ctx)
	defer stop()
	before := r.conv.Dropped
	got, err := r.reply(ctx, r)
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
	case err == nil && got.cut():
		r.note("cut at %s, as /set tokens has it; /set tokens 0 lets an answer end by itself", got.length())
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
	r.a.toldTests(r.set.Stats)
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

// modelReplies is reply by the model; predict may be nil.
func modelReplies(predict *predictor) func(context.Context, *repl) (*answer, error) {
	return func(ctx context.Context, r *repl) (got *answer, err error) {
		err = r.model.use(ctx, func(m *engine.Model, s *engine.Session) (err error) {
			if got, err = r.generate(ctx, m, s); got != nil {
				h := m.Hyper()
				got.Stats.predict(predict, m.Plan(), &h)
			}
			return err
		})
		return got, err
	}
}

func (r *repl) generate(ctx context.Context, m *engine.Model, s *engine.Session) (*answer, error) {
	ids, split, dropped, err := fit(ctx, m, s.Cap(), &r.conv, &r.set)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		r.note("the context of %d tokens is full: the oldest %d %s left out from here on", s.Cap(), dropped, plural(dropped, "message"))
	}
	show, finish := r.show()
	defer finish()
	return generate(ctx, m, s, request{ids: ids, split: split, p: r.set.params(m, r.attempt), show: show})
}

// show is where the pieces of an answer go; finish ends it.
func (r *repl) show() (show func(thinking, text string) error, finish func()) {
	scr := r.a.newScreen(r.set.ShowThinking)
	return func(thinking, text string) error {
		r.keep.said(thinking, text)
		return scr.show(thinking, text)
	}, scr.finish
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
				r.a.lastWord()
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
	printWrapped(r.a.err, "leat: "+fmt.Sprintf(format, args...))
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
