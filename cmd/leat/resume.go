package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// keptTalk is a talk in the state folder.
type keptTalk struct {
	path string
	at   time.Time // of its last change
	talk *saved
}

// lastTalk is the newest talk that can be read.
func lastTalk() (*keptTalk, error) {
	fail := func(err error) (*keptTalk, error) {
		return nil, withHint(fmt.Errorf("find the last talk: %w", err), "\"leat run MODEL\" begins one; \"leat run --help\" says where talks are kept")
	}
	dir, err := talksDir()
	if err != nil {
		return fail(err)
	}
	paths, err := keptTalks(dir)
	if err != nil {
		return fail(err)
	}
	for _, path := range paths {
		talk, readErr := readSaved(path)
		if readErr == nil && len(talk.Messages) > 0 {
			k := &keptTalk{path: path, talk: talk}
			if info, err := os.Stat(path); err == nil {
				k.at = info.ModTime()
			}
			return k, nil
		}
		err = readErr
	}
	if err == nil {
		err = fmt.Errorf("there is none in %s", dir)
	}
	return fail(err)
}

// goOn has a conversation begin where a kept one ended. Flags that were given stand.
func (f *runFlags) goOn(r *repl, last *keptTalk) error {
	doing := func(err error) error { return fmt.Errorf("go on with the talk in %s: %w", last.path, err) }
	set := defaultSettings()
	if err := set.changeAll(last.talk.Settings); err != nil {
		return doing(err)
	}
	for _, row := range settingTable {
		if f.given(row.name) {
			if err := set.reset(row.name, &f.set); err != nil {
				return doing(err)
			}
		}
	}
	c := last.talk.conversation()
	if !c.Raw {
		if facts, _ := r.model.facts(); !facts.hasTemplate {
			return doing(fmt.Errorf("it was made with a chat template, and this model has none"))
		}
		if f.given("system") || f.given("system-file") {
			c.System = r.talk.conv.System
		}
	}
	r.talk.resume(c, set)
	r.talk.start = set.clone()
	r.talk.keep.from = last.path
	return nil
}

// showResumed shows where a conversation goes on.
func (r *repl) showResumed(last *keptTalk) {
	n := len(last.talk.Messages)
	r.ui.note("going on with the talk of %s: %d %s, the last of them:", last.at.Format("2006-01-02 15:04"), n, plural(n, "message"))
	if model := last.talk.Model; model != r.talk.keep.model {
		r.ui.note("it was made with %s", printable(model))
	}
	for _, m := range last.talk.Messages[max(0, n-2):] {
		text := ending(strings.Trim(m.Content, "\n"))
		if m.Role == roleUser {
			text = promptFirst + text
		}
		r.a.printText(text)
	}
	switch {
	case r.talk.pending != "":
		r.ui.note("the last question has no answer; /retry asks it again")
	default:
		r.ui.note("/show messages shows all")
	}
}

// ending is the end of a long text.
func ending(text string) string {
	const most = 600 // characters
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	_, rest, found := strings.Cut(string(runes[len(runes)-most:]), " ")
	if !found {
		rest = string(runes[len(runes)-most:])
	}
	return "… " + rest
}
