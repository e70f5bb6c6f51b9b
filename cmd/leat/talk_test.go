package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"leat/engine"
)

// talkMain is a conversation as the program has it, but for the model: the answer follows
// from the question. So tests need no device, and can stop an answer in its midst.
func talkMain() {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.end.exit, a.log = os.Exit, slog.New(slog.DiscardHandler)
	a.end.patience = func() <-chan time.Time { return nil } // lent without end: nothing depends on time
	f := &runFlags{set: defaultSettings(), given: func(string) bool { return false }}
	f.noHistory = slices.Contains(os.Args, "--no-history")
	model := &resident{last: modelFacts{device: "none", hasTemplate: true}}
	r := newRepl(a, model, &openTalk{name: "demo", set: f.set, start: f.set.clone()}, scriptedReply)
	r.talk.keep = &keeper{dir: f.keptDir(), model: "demo", warn: func(err error) { r.ui.note("%v", err) }}
	var last *keptTalk
	if slices.Contains(os.Args, "--resume") {
		var err error
		if last, err = lastTalk(); err == nil {
			err = f.goOn(r, last)
		}
		if err != nil {
			a.explain(err)
			os.Exit(exitFailure)
		}
	}
	os.Exit(a.report(context.Background(), f.converse(context.Background(), a, r, last)))
}

func scriptedReply(ctx context.Context, r *repl) (*answer, error) {
	question := r.talk.conv.Messages[len(r.talk.conv.Messages)-1].Content
	got := &answer{Stop: engine.StopEOG.String()}
	show, finish := r.show()
	defer finish()
	say := func(thinking, text string) {
		got.Text += text
		got.Thinking += thinking
		if err := show(thinking, text); err != nil {
			panic(err)
		}
	}
	what, rest, _ := strings.Cut(question, " ")
	switch what {
	case "hold": // until it is interrupted
		say("", "begun ")
		<-ctx.Done()
		return got, ctx.Err()
	case "deaf": // to interrupts
		say("", "begun ")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "asked to end")
		select {}
	case "until": // a pipe is written to
		say("", "begun ")
		os.ReadFile(rest)
		say("", "ended")
	case "think":
		say("hm", "")
		os.ReadFile(rest)
		say("", "thought")
	case "panic":
		say("", "begun ")
		panic("as the question has it")
	case "kill":
		say("", "begun ")
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	case "cut":
		say("", "Once upon")
		got.Stop, got.Stats.Tokens = engine.StopLength.String(), 2
	case "brood":
		say("hm", "")
		got.Stop, got.Stats.Tokens = engine.StopLength.String(), 1
	case "recite":
		for word := range strings.SplitAfterSeq(rest, " ") {
			say("", word)
		}
	default:
		say("", fmt.Sprintf("you said: %q", question))
	}
	return got, nil
}
