package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"leat/cmd/leat/demo"
	"leat/engine"
	"leat/tools/await"
)

// talk is a conversation with the demo model, typed by a script.
type talk struct {
	*repl
	out, err bytes.Buffer
	watch    func(shown string) // sees stdout as it grows
}

func (k *talk) Write(p []byte) (int, error) {
	n, err := k.out.Write(p)
	if k.watch != nil {
		k.watch(k.out.String())
	}
	return n, err
}

// newTalk loads nothing: the first question does.
func newTalk(t *testing.T, o engine.Options) *talk {
	model := &resident{load: func(ctx context.Context) (*engine.Model, error) {
		path, err := demo.Path(t.TempDir())
		if err != nil {
			return nil, err
		}
		return engine.Load(ctx, path, o)
	}}
	t.Cleanup(model.Close)
	return newTalkWith(model)
}

func newTalkWith(model *resident) *talk {
	k := &talk{}
	a := &app{in: strings.NewReader(""), out: k, err: &k.err, log: slog.New(slog.DiscardHandler), now: time.Now}
	s := defaultSettings()
	s.Temperature, s.MinP, s.Tokens = 0, 0, 4
	k.repl = newRepl(a, model, &openTalk{name: "demo", set: s, start: s, keep: &keeper{}}, modelReplies(nil))
	return k
}

// say types lines and returns what stdout and stderr showed of them.
func (k *talk) say(t *testing.T, lines ...string) (out, talk string) {
	t.Helper()
	k.out.Reset()
	k.err.Reset()
	k.ui.term = newScript(lines...)
	if err := k.loop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k.out.String(), k.err.String()
}

func needDevice(t *testing.T) {
	if os.Getenv("LEAT_REQUIRE_DEVICE") != "1" && !hasDevice() {
		t.Skip("no Vulkan driver")
	}
}

const story = "Tell me a story about a dog and a ball."

// TestTalk: these share a model, as loading takes longest.
func TestTalk(t *testing.T) {
	needDevice(t)
	shared := newTalk(t, engine.Options{}).model
	for _, c := range []struct {
		name string
		test func(*testing.T, *talk)
	}{{"keeps its state", talkKeepsItsState}, {"is interrupted", talkIsInterrupted}, {"goes on in raw mode", talkGoesOn}} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newTalkWith(shared)) })
	}
}

func talkKeepsItsState(t *testing.T, k *talk) {
	out, _ := k.say(t, story)
	if !strings.HasPrefix(out, "One day, a") {
		t.Errorf("got %q", out)
	}
	first := k.talk.last
	if first.Stats.ReusedTokens != 0 || first.Stats.Tokens != 4 || first.Stats.TTFTSeconds <= 0 || first.Stats.DecodePerSec <= 0 {
		t.Errorf("first answer: %+v", first.Stats)
	}
	k.say(t, "And then?")
	second := k.talk.last.Stats
	// All of the first prompt and answer is still there; the last token sampled has yet to run.
	if had := first.Stats.PromptTokens + first.Stats.Tokens - 1; second.ReusedTokens < had {
		t.Errorf("second answer reused %d of %d prompt tokens, wanted the %d of before", second.ReusedTokens, second.PromptTokens, had)
	}
	out, _ = k.say(t, "/stats")
	if !strings.Contains(out, "reused") || !strings.Contains(out, "TTFT") || !strings.Contains(out, "tokens at ") {
		t.Errorf("/stats: %q", out)
	}

	// The answer doesn't depend on what was reused.
	want := k.talk.last.Text
	out, talk := k.say(t, "/retry")
	if k.talk.last.Text != want || !strings.Contains(talk, "temperature 0") || len(k.talk.conv.Messages) != 4 {
		t.Errorf("/retry: got %q with %q, wanted %q", out, talk, want)
	}

	path := filepath.Join(t.TempDir(), "talk.json")
	k.say(t, "/system Be brief.", "/set temp 0.5", "/save "+path, "/clear", "/set temp", "/system off")
	if k.talk.conv.System != "" || len(k.talk.conv.Messages) != 0 || k.talk.set.Temperature != 0 {
		t.Errorf("after /clear: %+v", k.talk.conv)
	}
	k.say(t, "/load "+path)
	if k.talk.conv.System != "Be brief." || len(k.talk.conv.Messages) != 4 || k.talk.set.Temperature != 0.5 {
		t.Errorf("after /load: %+v", k.talk.conv)
	}
	if _, talk = k.say(t, "/show messages", "/show model", "/show plan", "/show system"); strings.Contains(talk, "error") {
		t.Errorf("/show: %s", talk)
	}
}

func talkIsInterrupted(t *testing.T, k *talk) {
	k.talk.set.Tokens = 0
	k.talk.set.IgnoreEOG = true
	k.watch = func(shown string) {
		if strings.Contains(shown, "One day") {
			k.watch = nil
			for range 3 { // the third goes into the channel once the second is taken, after the first has canceled
				k.ui.term.(*script).signals <- os.Interrupt
			}
		}
	}
	_, talk := k.say(t, story)
	if !strings.Contains(talk, "leat: stopped\n") || k.talk.last == nil || k.talk.last.Stats.Tokens > 100 {
		t.Fatalf("got %+v, %q", k.talk.last, talk)
	}
	if n := len(k.talk.conv.Messages); n != 2 || !strings.HasPrefix(k.talk.conv.Messages[1].Content, "One day") {
		t.Errorf("what was shown is not kept: %+v", k.talk.conv.Messages)
	}

	// Before the first token: the question is taken back, and can be asked again.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.ui.term = newScript()
	if err := k.do(ctx, "And then?", false); err != nil || len(k.talk.conv.Messages) != 2 || k.talk.pending != "And then?" {
		t.Errorf("error %v, %+v, pending %q", err, k.talk.conv.Messages, k.talk.pending)
	}
	k.talk.set.Tokens = 2
	k.say(t, "/retry")
	if n := len(k.talk.conv.Messages); n != 4 || k.talk.conv.Messages[2].Content != "And then?" || k.talk.pending != "" {
		t.Errorf("after /retry: %+v", k.talk.conv.Messages)
	}
}

func TestTalkOutlivesItsContext(t *testing.T) {
	needDevice(t)
	k := newTalk(t, engine.Options{ContextLength: 64})
	k.talk.set.IgnoreEOG = true
	k.say(t, story)
	_, talk := k.say(t, "Tell me more of it.", "What did the dog do?")
	if !strings.Contains(talk, "left out from here on") || k.talk.conv.Dropped == 0 || len(k.talk.conv.Messages) != 6 {
		t.Errorf("dropped %d of %d: %s", k.talk.conv.Dropped, len(k.talk.conv.Messages), talk)
	}
	_, talk = k.say(t, strings.Repeat("long ", 80))
	if !strings.Contains(talk, "leat: error: the context is full") || !strings.Contains(talk, "leat: hint: --ctx") {
		t.Errorf("a question that can't fit: %s", talk)
	}
	if len(k.talk.conv.Messages) != 6 {
		t.Errorf("it is kept: %+v", k.talk.conv.Messages)
	}
	k.talk.set.Tokens = 0
	if _, talk = k.say(t, "Go on."); !strings.Contains(talk, "so the answer ends here") {
		t.Errorf("an answer that fills the context: %s", talk)
	}
}

func TestTalkIsFreedWhenIdle(t *testing.T) {
	needDevice(t)
	k := newTalk(t, engine.Options{})
	k.talk.set.Tokens = 2
	k.say(t, story)
	want := k.talk.conv.Messages[1].Content
	k.model.idle = time.Millisecond
	k.say(t, "/retry") // its end starts the clock
	await.Until(t, "the model to leave", func() bool {
		_, loaded := k.model.facts()
		return !loaded
	})
	if out, _ := k.say(t, "/show model"); !strings.Contains(out, "freed after") {
		t.Errorf("/show model: %s", out)
	}
	k.model.idle = 0
	k.say(t, "/retry")
	if got := k.talk.conv.Messages[1].Content; got != want || k.model.loads != 2 || k.talk.last.Stats.ReusedTokens != 0 {
		t.Errorf("loaded %d times, got %q with %+v; wanted %q", k.model.loads, got, k.talk.last.Stats, want)
	}
}

func talkGoesOn(t *testing.T, k *talk) {
	k.talk.conv.Raw = true
	out, talk := k.say(t, "Once upon a time", "/system Be brief.", "and")
	if !strings.HasPrefix(out, ", there was") || !strings.Contains(talk, "no system prompt without") {
		t.Errorf("got %q, %q", out, talk)
	}
	if got := k.talk.conv.text(); !strings.HasPrefix(got, "Once upon a time, there was") {
		t.Errorf("the text is %q", got)
	}
}

func TestTalkWithoutModel(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		lines []string
		want  string // in stdout or stderr
		left  int    // lines not read
	}{
		{"help", []string{"/help"}, "/system [TEXT|off]", 0},
		{"quit", []string{"/quit", "more"}, "", 1},
		{"bye", []string{"/bye", "more"}, "", 1},
		{"Ctrl-C once", []string{"^C", "/set", "^C"}, "Ctrl-C again", 0},
		{"Ctrl-C twice", []string{"^C", "^C", "more"}, "Ctrl-C again", 1},
		{"blank lines", []string{"", "  "}, "", 0},
		{"unknown command", []string{"/quti"}, "leat: error: unknown command \"/quti\"\nleat: hint: did you mean /quit?", 0},
		{"swapped letters", []string{"/cleer"}, "did you mean /clear?", 0},
		{"capitals", []string{"/SET"}, "did you mean /set?", 0},
		{"another program's command", []string{"/reset"}, "leat: hint: here it is /clear", 0},
		{"nothing like a command", []string{"/usr/bin/env"}, "leat: hint: /help lists the commands; a message", 0},
		{"slash alone", []string{"/"}, "leat: hint: /help lists", 0},
		{"question mark", []string{"/?"}, "/system [TEXT|off]", 0},
		{"exit", []string{"exit", "/quit", "more"}, "leat: /quit leaves, as does Ctrl-D; with a blank in front \"exit\" goes to the model", 1},
		{"QUIT", []string{"QUIT"}, "leat: /quit leaves", 0},
		{"help without a slash", []string{"help"}, "leat: /help lists the commands;", 0},
		{"begun command", []string{"/sav x"}, "leat: hint: did you mean /save?", 0},
		{"argument too much", []string{"/clear all"}, "takes no argument", 0},
		{"nothing to retry", []string{"/retry"}, "leat: error: there is no question", 0},
		{"system prompt", []string{`/system """Be`, `brief."""`, "/system"}, "Be\nbrief.\n", 0},
		{"set", []string{"/set temp 0.25", "/show"}, "temp                  0.25  (was 0)", 0},
		{"set back", []string{"/set temp 0.25", "/set temp"}, "leat: temp is 0 (always the most likely token)\n", 0},
		{"set shows what 0 means", []string{"/set"}, "repeat-last-n         0 (64)\n", 0},
		{"set shows what nothing means", []string{"/set seed"}, "leat: seed is 0 (drawn for each answer)\n", 0},
		{"set wrongly", []string{"/set temp hot"}, "leat: hint: sampling temperature", 0},
		{"show nothing known", []string{"/show me"}, "leat: hint: it knows settings, model", 0},
		{"save without a name", []string{"/save"}, "no file was named", 0},
		{"save over another's file", []string{"/save " + foreign}, "is there, and is none", 0},
		{"load what isn't there", []string{"/load " + filepath.Join(dir, "none")}, "no such file", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk(t, engine.Options{})
			out, talk := k.say(t, c.lines...)
			if got := out + talk; !strings.Contains(got, c.want) {
				t.Errorf("got %q, wanted %q in it", got, c.want)
			}
			if left := len(k.ui.term.(*script).lines); left != c.left {
				t.Errorf("%d lines were not read, wanted %d", left, c.left)
			}
		})
	}
	if data, _ := os.ReadFile(foreign); string(data) != "mine" {
		t.Error("a file that is no conversation was overwritten")
	}
}

// TestAsksBeforeItDrops: a question comes where something would be lost, and only there.
func TestAsksBeforeItDrops(t *testing.T) {
	dir := t.TempDir()
	other, mine := filepath.Join(dir, "other.json"), filepath.Join(dir, "mine.json")
	for _, c := range []struct {
		name  string
		lines []string
		asked string // "": nothing
		said  int    // messages of the talk in the end
		other string // first message in the file other in the end
	}{
		{"clear, no", []string{"hi", "/clear", "n"}, "clear it?", 2, "old"},
		{"clear, Enter alone", []string{"hi", "/clear", ""}, "clear it?", 2, "old"},
		{"clear, Ctrl-C", []string{"hi", "/clear", "^C"}, "clear it?", 2, "old"},
		{"clear, the input ends", []string{"hi", "/clear"}, "clear it?", 2, "old"},
		{"clear, yes", []string{"hi", "/clear", "Yes "}, "clear it?", 0, "old"},
		{"clear nothing", []string{"/clear"}, "", 0, "old"},
		{"clear what is saved", []string{"hi", "/save " + mine, "/clear"}, "", 0, "old"},
		{"clear what was saved before", []string{"hi", "/save " + mine, "more", "/clear", "n"}, "clear it?", 4, "old"},
		{"clear what was loaded", []string{"/load " + other, "/clear"}, "", 0, "old"},
		{"load, no", []string{"hi", "/load " + other, "n"}, "load another in its place?", 2, "old"},
		{"load, yes", []string{"hi", "more", "/load " + other, "y"}, "load another in its place?", 2, "old"},
		{"load what isn't there", []string{"hi", "/load " + other + "x"}, "", 2, "old"},
		{"load into nothing", []string{"/load " + other}, "", 2, "old"},
		{"save over another, no", []string{"hi", "/save " + other, "n"}, "overwrite it?", 2, "old"},
		{"save over another, yes", []string{"hi", "/save " + other, "y"}, "overwrite it?", 2, "hi"},
		{"save over its beginning", []string{"/load " + other, "more", "/save " + other}, "", 4, "old"},
		{"save over what went on differently", []string{"/load " + other, "more", "/save " + mine, "/load " + other, "else", "/save " + mine, "n"}, "overwrite it?", 4, "old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, set := &conversation{}, defaultSettings()
			old.ask("old")
			old.answer("answer", "")
			if err := old.saved("demo", &set).write(other); err != nil {
				t.Fatal(err)
			}
			os.Remove(mine)
			k := newTalkWith(&resident{last: modelFacts{hasTemplate: true}})
			k.repl.reply = scriptedReply
			k.say(t, c.lines...)
			asked := strings.Join(k.ui.term.(*script).prompts, "\n")
			if strings.Contains(asked, "[y/N]") != (c.asked != "") || !strings.Contains(asked, c.asked) {
				t.Errorf("asked %q, wanted %q", asked, c.asked)
			}
			if n := len(k.talk.conv.Messages); n != c.said {
				t.Errorf("the talk has %d messages, wanted %d", n, c.said)
			}
			if talk, err := readSaved(other); err != nil || talk.Messages[0].Content != c.other {
				t.Errorf("the other file has %+v, error %v", talk, err)
			}
		})
	}
}

func TestCutAnswerSaysSo(t *testing.T) {
	k := newTalkWith(&resident{})
	k.repl.reply = scriptedReply
	for line, want := range map[string]string{
		"cut":   "leat: cut at 2 tokens, as /set tokens has it; /set tokens 0 lets",
		"brood": "leat: cut at 1 token of thinking, before the answer, as /set tokens",
		"hi":    "",
	} {
		if _, talk := k.say(t, line); !strings.Contains(talk, want) || want == "" && talk != "" {
			t.Errorf("%q: got %q, wanted %q", line, talk, want)
		}
	}
}

func TestSpeedsThatWereNotMeasured(t *testing.T) {
	for _, c := range []struct {
		stats runStats
		want  string
	}{
		{runStats{PromptTokens: 1, Tokens: 1, TTFTSeconds: 0.5, PromptPerSec: 2}, "TTFT 500 ms, prompt 1 token at 2.00 tok/s, decode 1 token"},
		{runStats{PromptTokens: 3}, "TTFT 0 ms, prompt 3 tokens, decode 0 tokens"},
		{runStats{PromptTokens: 3, ReusedTokens: 2, Tokens: 2, TTFTSeconds: 1, PromptPerSec: 1, DecodePerSec: 0.0012}, "TTFT 1.0 s, prompt 3 tokens (2 reused, 1 prefilled) at 1.00 tok/s, decode 2 tokens at 14 min a token"},
	} {
		if got := c.stats.speeds(); got != c.want {
			t.Errorf("got %q, wanted %q", got, c.want)
		}
	}
}

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"talk.json", "tale.json", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir += string(filepath.Separator)
	k := newTalk(t, engine.Options{})
	for _, c := range []struct {
		line string
		want []string
	}{
		{"/s", []string{"/system", "/set", "/show", "/stats", "/save"}},
		{"/q", []string{"/quit"}},
		{"/exi", []string{"/exit"}},
		{"hello /s", nil},
		{"/show m", []string{"model", "messages"}},
		{"/set see", []string{"seed "}},
		{"/quit x", nil},
		{"/load " + dir + "ta", []string{dir + "tale.json", dir + "talk.json"}},
		{"/load " + dir, []string{dir + "sub" + string(filepath.Separator), dir + "tale.json", dir + "talk.json"}},
		{"/load " + dir + "none/", nil},
	} {
		words, replaced := k.complete(c.line)
		if !slices.Equal(words, c.want) {
			t.Errorf("%q: got %q, wanted %q", c.line, words, c.want)
		}
		for _, w := range words {
			if replaced > len(w) || w[:replaced] != c.line[len(c.line)-replaced:] {
				t.Errorf("%q: %q doesn't go on from the last %d bytes", c.line, w, replaced)
			}
		}
	}
}

// A timer that fires while the model is used again does not free it, then or later.
func TestResidentTimerWaits(t *testing.T) {
	needDevice(t)
	k := newTalk(t, engine.Options{})
	k.model.idle = time.Hour
	for range 3 {
		fired := make(chan struct{})
		err := k.model.use(t.Context(), func(m *engine.Model, _ *engine.Session) error {
			go func() { // the timer of the use before; the lock is ours during this one
				k.model.expire(k.model.uses - 1)
				close(fired)
			}()
			return nil
		})
		await.Receive(t, "the timer", fired)
		if _, loaded := k.model.facts(); err != nil || !loaded {
			t.Fatalf("freed by the timer of another use, or error %v", err)
		}
	}
	k.model.expire(k.model.uses)
	if _, loaded := k.model.facts(); loaded {
		t.Error("the timer of the last use frees nothing")
	}
	if err := k.model.use(t.Context(), func(*engine.Model, *engine.Session) error { return io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
		t.Errorf("got error %v", err)
	}
	k.model.Close()
	k.model.Close()
}
