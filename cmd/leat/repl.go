package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"leat/engine"
)

// repl is a conversation at a terminal: it reads commands and questions, and has a model answer.
type repl struct {
	a     *app
	ui    *console
	model *resident
	talk  *openTalk
	reply func(context.Context, *repl) (*answer, error) // answers the last question
	quit  bool
}

func newRepl(a *app, model *resident, talk *openTalk, reply func(context.Context, *repl) (*answer, error)) *repl {
	return &repl{a: a, ui: &console{a: a}, model: model, talk: talk, reply: reply}
}

// loop reads and answers until the person leaves. Only what makes going on pointless
// is an error; all others are shown.
func (r *repl) loop(ctx context.Context) error {
	interrupted := false // by the line before this one
	for !r.quit {
		text, quoted, err := readInput(r.ui.term)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, errInterrupted) && !interrupted:
			interrupted = true
			r.ui.note("Ctrl-C again, Ctrl-D or /quit leaves")
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
		r.ui.note("%s; with a blank in front %q goes to the model", bareCommand(text), text)
		return nil
	}
	if trimmed := strings.TrimLeft(text, " \t"); !quoted && (strings.HasPrefix(trimmed, "/") || bareCommand(trimmed) != "") {
		text = trimmed
	}
	r.talk.conv.ask(text)
	r.talk.attempt = 0
	return r.ask(ctx)
}

// endTalk ends what is kept as one talk; the next one gets a file of its own.
func (r *repl) endTalk() {
	if path := r.talk.keep.end(); path != "" {
		r.ui.note("this talk is kept in %s; \"leat run --resume\" goes on with the last one", path)
	}
}

// ask has the last question answered, and keeps the talk before and after.
func (r *repl) ask(ctx context.Context) error {
	r.talk.pending = ""
	r.talk.hold()
	err := r.answerLast(ctx)
	r.talk.hold() // not deferred: a panic leaves this to what ends the talk
	return err
}

// answerLast has the last question answered and takes the answer in. Without one the question
// is taken back, since most templates want a turn of each side; /retry asks it again.
func (r *repl) answerLast(ctx context.Context) error {
	ctx, stop := r.ui.interruptible(ctx)
	defer stop()
	before := r.talk.conv.Dropped
	got, err := r.reply(ctx, r)
	if err != nil && (got == nil || got.Text == "" && got.Thinking == "") {
		r.talk.conv.Dropped = before
		r.talk.pending, _ = r.talk.conv.retract()
		if interrupted(ctx, err) {
			r.ui.note("stopped before an answer; /retry asks again")
			return nil
		}
		return err
	}
	r.talk.conv.answer(got.Text, got.Thinking)
	r.talk.last = got
	r.talk.total.add(&got.Stats)
	switch {
	case err == nil && got.Text == "" && got.Thinking == "":
		r.ui.note("the model had nothing to say")
	case err == nil && got.cut():
		r.ui.note("cut at %s, as /set tokens has it; /set tokens 0 lets an answer end by itself", got.length())
	case interrupted(ctx, err):
		r.ui.note("stopped")
		err = nil
	case errors.Is(err, engine.ErrContextFull):
		r.ui.note("the context is full, so the answer ends here; the oldest turns make room for the next question")
		err = nil
	}
	for _, line := range got.Stats.Shrinks {
		r.ui.note("%s", line)
	}
	r.a.tests.tell(r.talk.set.Stats)
	if r.talk.set.Stats {
		r.ui.note("%s", got.Stats.speeds())
		if p := got.Stats.prediction(); p != "" {
			r.ui.note("%s", p)
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
				got.Stats.predict(predict, engine.DetailsOf(m))
			}
			return err
		})
		return got, err
	}
}

func (r *repl) generate(ctx context.Context, m *engine.Model, s *engine.Session) (*answer, error) {
	ids, split, dropped, err := fit(ctx, m, s.Cap(), &r.talk.conv, &r.talk.set)
	if err != nil {
		return nil, err
	}
	if dropped > 0 {
		r.ui.note("the context of %d tokens is full: the oldest %d %s left out from here on", s.Cap(), dropped, plural(dropped, "message"))
	}
	show, finish := r.show()
	defer finish()
	return generate(ctx, m, s, request{ids: ids, split: split, p: r.talk.set.params(m, r.talk.attempt), show: show})
}

// show is where the pieces of an answer go; finish ends it.
func (r *repl) show() (show func(thinking, text string) error, finish func()) {
	scr := r.a.newScreen(r.talk.set.ShowThinking)
	return func(thinking, text string) error {
		r.talk.keep.said(thinking, text)
		return scr.show(thinking, text)
	}, scr.finish
}

// welcome is the first thing a person reads.
func (r *repl) welcome() {
	f, _ := r.model.facts()
	r.ui.note("%s on %s, context of %d tokens", r.talk.name, f.device, f.cap)
	switch {
	case r.talk.conv.Raw && !f.hasTemplate:
		r.ui.note("this file has no chat template: the model goes on with what you write")
	case r.talk.conv.Raw:
		r.ui.note("no chat template: the model goes on with what you write")
	case r.talk.conv.System != "":
		r.ui.note("system prompt: %s", firstLine(r.talk.conv.System))
	}
	r.ui.note("/help lists the commands, Ctrl-D leaves")
}

func firstLine(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	if more && rest != "" {
		line += " …"
	}
	return printable(line)
}
