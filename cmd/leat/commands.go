package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"leat/internal/output"
)

// command is one row of what a person can type after a slash.
type command struct {
	name, args string
	aliases    []string
	help       string
	complete   func(r *repl, arg string) []string // whole arguments that begin with arg
	run        func(r *repl, ctx context.Context, arg string) error
}

// commandTable is in the order of /help.
func commandTable() []command {
	return []command{
		{name: "help", aliases: []string{"?"}, help: "this list", run: (*repl).cmdHelp},
		{name: "clear", help: "forget what was said; the system prompt stays", run: (*repl).cmdClear},
		{name: "system", args: "[TEXT|off]", help: "show or set the system prompt", run: (*repl).cmdSystem},
		{name: "set", args: "[NAME [VALUE]]", help: "change a setting; without VALUE, back to what it was at the start", complete: completeSetting, run: (*repl).cmdSet},
		{name: "show", args: "[WHAT]", help: "settings, model, plan, system or messages", complete: completeTopic, run: func(r *repl, _ context.Context, arg string) error { return r.viewer().show(arg) }},
		{name: "stats", help: "speeds of the last answer, and what was reused", run: func(r *repl, _ context.Context, _ string) error { return r.viewer().stats() }},
		{name: "save", args: "FILE", help: "write the conversation and its settings to FILE", complete: completeFile, run: (*repl).cmdSave},
		{name: "load", args: "FILE", help: "go on with a conversation that /save wrote", complete: completeFile, run: (*repl).cmdLoad},
		{name: "private", help: "keep nothing of this talk, nor of what is typed", run: (*repl).cmdPrivate},
		{name: "retry", help: "answer the last question anew", run: (*repl).cmdRetry},
		{name: "quit", aliases: []string{"exit", "bye"}, help: "leave; so do Ctrl-D and Ctrl-C twice", run: (*repl).cmdQuit},
	}
}

const inputHelp = `
Several lines: put them between """ and """, end a line with \, or paste them.
Ctrl-C stops an answer, or clears the line. A message that begins with a slash
is typed with a blank in front of it. Tab completes commands and their arguments.
`

// command runs one line that begins with a slash.
func (r *repl) command(ctx context.Context, line string) error {
	name, arg, _ := strings.Cut(line[1:], " ")
	for _, c := range commandTable() {
		if name == c.name || slices.Contains(c.aliases, name) {
			arg = strings.TrimSpace(arg)
			if arg != "" && c.args == "" {
				return &usageError{text: fmt.Sprintf("/%s takes no argument, found %q", name, arg), hint: "/help lists the commands"}
			}
			return c.run(r, ctx, arg)
		}
	}
	return &usageError{text: fmt.Sprintf("unknown command %q", "/"+name), hint: nearestCommand(name)}
}

func (r *repl) cmdHelp(context.Context, string) error {
	for _, c := range commandTable() {
		usage := strings.TrimSpace("/" + c.name + " " + c.args)
		fmt.Fprintf(r.a.out, "  %-22s %s\n", usage, c.help)
	}
	fmt.Fprint(r.a.out, inputHelp)
	return nil
}

func (r *repl) cmdClear(context.Context, string) error {
	if n := len(r.talk.conv.Messages); r.talk.unsaved() && !r.ui.confirm("this talk of %d %s is not saved; clear it?", n, plural(n, "message")) {
		return nil
	}
	r.endTalk()
	r.talk.conv.clear()
	r.talk.pending, r.talk.last = "", nil
	r.ui.note("forgotten")
	return nil
}

func (r *repl) cmdSystem(_ context.Context, arg string) error {
	if r.talk.conv.Raw {
		return errors.New("there is no system prompt without a chat template")
	}
	switch arg {
	case "":
		return r.viewer().system()
	case "off":
		r.talk.conv.System = ""
		r.ui.note("no system prompt from here on")
	default:
		r.talk.conv.System = arg
		r.ui.note("system prompt set")
	}
	return nil
}

func (r *repl) cmdSet(_ context.Context, arg string) error {
	name, value, _ := strings.Cut(arg, " ")
	value = strings.TrimSpace(value)
	switch {
	case name == "":
		return r.viewer().settings()
	case value == "":
		if err := r.talk.set.reset(name, &r.talk.start); err != nil {
			return err
		}
	default:
		if err := r.talk.set.change(name, value); err != nil {
			return err
		}
	}
	row, err := findSetting(name)
	if err != nil {
		return err
	}
	r.ui.note("%s is %s", name, r.talk.effective(row))
	return nil
}

func (r *repl) cmdSave(_ context.Context, arg string) error {
	if arg == "" {
		return usageErrorf("/save FILE: no file was named")
	}
	path := expandHome(arg)
	talk := r.talk.conv.saved(r.talk.name, &r.talk.set)
	old, err := readSaved(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), output.IsStream(path):
	case err != nil:
		return withHint(fmt.Errorf("save the conversation: %s is there, and is none", path), "choose another name, or remove the file first")
	case !talk.holds(old):
		if n := len(old.Messages); !r.ui.confirm("%s holds another talk of %d %s; overwrite it?", path, n, plural(n, "message")) {
			return nil
		}
	}
	if err := talk.write(path); err != nil {
		return fmt.Errorf("save the conversation: %w", err)
	}
	r.talk.isSaved()
	n := len(r.talk.conv.Messages)
	r.ui.note("saved %d %s to %s", n, plural(n, "message"), path)
	return nil
}

func (r *repl) cmdLoad(_ context.Context, arg string) error {
	if arg == "" {
		return usageErrorf("/load FILE: no file was named")
	}
	next := r.talk.set.clone()
	c, model, err := loadConversation(expandHome(arg), &next)
	if err != nil {
		return err
	}
	if f, _ := r.model.facts(); !c.Raw && !f.hasTemplate {
		return fmt.Errorf("load a conversation from %s: it was made with a chat template, and this model has none", arg)
	}
	if n := len(r.talk.conv.Messages); r.talk.unsaved() && !r.ui.confirm("this talk of %d %s is not saved; load another in its place?", n, plural(n, "message")) {
		return nil
	}
	r.endTalk()
	r.talk.resume(c, next)
	n := len(c.Messages)
	r.ui.note("loaded %d %s; the next question has them prefilled", n, plural(n, "message"))
	if pathOfModel(model) != pathOfModel(r.talk.name) {
		r.ui.note("it was made with %s", printable(model))
	}
	return nil
}

// cmdPrivate ends the keeping of this talk, from its beginning.
func (r *repl) cmdPrivate(context.Context, string) error {
	if err := r.talk.keep.forget(); err != nil {
		return fmt.Errorf("remove what was kept of this talk: %w", err)
	}
	if err := r.ui.term.Forget(); err != nil {
		return err
	}
	r.ui.note("private: nothing is kept of this talk, nor of what is typed")
	return nil
}

func (r *repl) cmdRetry(ctx context.Context, _ string) error {
	question := r.talk.pending
	if question == "" {
		var ok bool
		if question, ok = r.talk.conv.retract(); !ok {
			return errors.New("there is no question to answer anew")
		}
	}
	if r.talk.set.Greedy() {
		r.ui.note("at temperature 0 the answer is always the same; /set temp 0.8 makes it vary")
	}
	r.talk.conv.ask(question)
	r.talk.attempt++
	return r.ask(ctx)
}

func (r *repl) cmdQuit(context.Context, string) error {
	r.quit = true
	return nil
}

// complete is the completer of the prompt: a command's name, then its argument.
func (r *repl) complete(line string) (words []string, replaced int) {
	if !strings.HasPrefix(line, "/") {
		return nil, 0
	}
	name, arg, inArg := strings.Cut(line[1:], " ")
	if !inArg {
		return completeCommand(name), len(line)
	}
	for _, c := range commandTable() {
		if c.name == name && c.complete != nil {
			return c.complete(r, arg), len(arg)
		}
	}
	return nil, 0
}

func completeCommand(name string) (words []string) {
	for _, c := range commandTable() {
		for _, n := range append([]string{c.name}, c.aliases...) {
			if strings.HasPrefix(n, name) {
				words = append(words, "/"+n)
			}
		}
	}
	return words
}

func completeSetting(_ *repl, arg string) (words []string) {
	for _, row := range settingTable {
		if strings.HasPrefix(row.name, arg) {
			words = append(words, row.name+" ")
		}
	}
	return words
}

func completeTopic(_ *repl, arg string) (words []string) {
	for _, t := range topics {
		if strings.HasPrefix(t.name, arg) {
			words = append(words, t.name)
		}
	}
	return words
}

// completeFile keeps the folder as it was typed, ~ and all.
func completeFile(_ *repl, arg string) (words []string) {
	dir, prefix := filepath.Split(arg)
	entries, err := os.ReadDir(expandHome(filepath.Join(dir, ".")))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) || prefix == "" && strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += string(filepath.Separator)
		}
		words = append(words, dir+name)
	}
	return words
}

// expandHome is what a shell would have made of ~/name.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && rest[0] != '/' && rest[0] != filepath.Separator {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return home + rest
}
