package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kept lists the talks in a home's state folder as "role:content|…" each, newest first.
func kept(t *testing.T, home string) (talks []string) {
	t.Helper()
	dir := filepath.Join(home, "state", "leat", "talks")
	paths, err := keptTalks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		talk, err := readSaved(path)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, m := range talk.Messages {
			said = append(said, m.Content)
		}
		talks = append(talks, strings.Join(said, "|"))
		for path, want := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: mode %v, error %v; wanted %v", path, info.Mode().Perm(), err, want)
			}
		}
	}
	return talks
}

func TestTalkIsKept(t *testing.T) {
	const hi = `hi|you said: "hi"`
	end := func(line string) func(*atTerminal) {
		return func(p *atTerminal) { p.say("hi"); p.expect(promptFirst); p.enter(line) }
	}
	for _, c := range []struct {
		name, args string
		do         func(*atTerminal)
		want       string // "": nothing is kept
		silent     bool   // the path can't be shown
	}{
		{"quit", "", end("/quit\r"), hi, false},
		{"Ctrl-D", "", end("\x04"), hi, false},
		{"Ctrl-C twice", "", func(p *atTerminal) { end("\x03")(p); p.expect("Ctrl-C again"); p.expect(promptFirst); p.enter("\x03") }, hi, false},
		{"terminal closes at the prompt", "", func(p *atTerminal) { p.say("hi"); p.expect(promptFirst); p.hangUp() }, hi, true},
		{"terminal closes in an answer", "", func(p *atTerminal) { p.enter("hold\r"); p.expect("begun"); p.hangUp() }, "hold|begun ", true},
		{"ended by a signal", "", func(p *atTerminal) { p.enter("hold\r"); p.expect("begun"); p.cmd.Process.Signal(syscall.SIGTERM) }, "hold|begun ", false},
		{"answer is deaf", "", func(p *atTerminal) {
			p.enter("deaf\r")
			p.expect("begun")
			p.enter("\x03")
			p.expect("asked")
			p.enter("\x03")
		}, "deaf|begun ", true},
		{"answer panics", "", func(p *atTerminal) { p.enter("panic\r"); p.expect("begun") }, "panic|begun ", false},
		{"process is killed", "", func(p *atTerminal) { p.enter("kill\r"); p.expect("begun") }, "kill", true},
		{"question without an answer", "", func(p *atTerminal) { p.say("hi"); p.expect(promptFirst); p.enter("kill\r") }, hi + "|kill", true},
		{"nothing said", "", func(p *atTerminal) {
			p.expect(promptFirst)
			p.enter("/help\r")
			p.expect("Ctrl-C stops")
			p.enter("/quit\r")
		}, "", true},
		{"no history", "--no-history", end("/quit\r"), "", true},
		{"private from the beginning", "", func(p *atTerminal) {
			p.expect(promptFirst)
			p.enter("/private\r")
			p.expect("private:")
			end("/quit\r")(p)
		}, "", true},
		{"private at the end", "", func(p *atTerminal) { end("/private\r")(p); p.expect("private:"); p.enter("/quit\r") }, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			p := talkAt(t, home, 200, strings.Fields(c.args)...)
			c.do(p)
			if c.want != "" && !c.silent {
				p.expect("this talk is kept in " + home)
			}
			p.wait()
			if got := strings.Join(kept(t, home), "\n"); got != c.want {
				t.Errorf("kept %q, wanted %q; the terminal shows %q", got, c.want, p.text())
			}
			if past, _ := os.ReadFile(filepath.Join(home, ".config", "leat", "history")); c.want == "" && strings.Contains(string(past), "hi\"") {
				t.Errorf("the history has %q", past)
			}
		})
	}
}

func TestResume(t *testing.T) {
	home := t.TempDir()
	p := talkAt(t, home, 200, "--resume")
	p.expect("leat: error: find the last talk: there is none in " + home)
	if code := p.wait().ExitCode(); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	first, second := talkAt(t, home, 200), talkAt(t, home, 200)
	first.say("one")
	second.say("two") // at once: each has its own file
	first.enter("/quit\r")
	first.wait()
	second.say("three")
	second.enter("\x04")
	second.wait()
	if got := kept(t, home); len(got) != 2 || !strings.HasSuffix(got[0], `three|you said: "three"`) {
		t.Fatalf("kept %q", got)
	}

	p = talkAt(t, home, 200, "--resume")
	p.expect("going on with the talk of ")
	p.expect(": 4 messages")
	p.expect(promptFirst + "three")
	p.expect(`you said: "three"`)
	p.say("four")
	p.enter("/quit\r")
	p.wait()
	got := kept(t, home)
	if len(got) != 2 || strings.Count(got[0], "you said") != 3 || strings.Contains(got[1], "two") {
		t.Errorf("a talk that went on is kept as %q", got)
	}

	p = talkAt(t, home, 200, "--resume") // says nothing more
	p.expect(promptFirst + "four")
	p.expect(promptFirst)
	p.enter("kill\r")
	p.wait()
	p = talkAt(t, home, 200, "--resume")
	p.expect(promptFirst + "kill")
	p.expect("/retry asks it again")
	p.expect(promptFirst)
	p.enter("/clear\r")
	p.say("five")
	p.enter("/quit\r")
	p.wait()
	if got := kept(t, home); len(got) != 4 || got[0] != `five|you said: "five"` || !strings.HasSuffix(got[1], "|kill") {
		t.Errorf("kept %q", got)
	}
}

// TestResumeTakesTheModel: the talk names it, if the command line doesn't.
func TestResumeTakesTheModel(t *testing.T) {
	home, set := t.TempDir(), defaultSettings()
	c := &conversation{}
	c.ask("hi")
	dir := filepath.Join(home, "state", "leat", "talks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.saved(filepath.Join(home, "gone.gguf"), &set).write(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	// A newer one is cut short: it is passed by.
	if err := os.WriteFile(filepath.Join(dir, "b.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"run --resume", "leat: error: find the model: stat " + home + "/gone.gguf: no such file"},
		{"run --resume " + home + "/other.gguf", "leat: error: find the model: stat " + home + "/other.gguf: no such file"},
		{"run --resume -p hi", "leat: error: --resume goes on with a conversation as it was"},
		{"run --resume one two", "leat: error: "},
		{"run", "leat: error: "},
	} {
		p := programAt(t, "leat", home, 1000, strings.Fields(c.args)...)
		p.expect(c.want)
		if code := p.wait().ExitCode(); code == exitOK {
			t.Errorf("leat %s: exit code %d", c.args, code)
		}
	}
}

func TestNewestTalksAreKept(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "state", "leat", "talks")
	if err := os.MkdirAll(dir, 0o755); err != nil { // others may look in
		t.Fatal(err)
	}
	set := defaultSettings()
	for i := range talksKept + 5 {
		c := &conversation{}
		c.ask(fmt.Sprint(i))
		path := filepath.Join(dir, fmt.Sprintf("%d.json", 999-i))
		if err := c.saved("demo", &set).write(path); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(i), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := talkAt(t, home, 200)
	p.say("hi")
	p.enter("/quit\r")
	p.wait()
	got := kept(t, home)
	if len(got) != talksKept || got[1] != fmt.Sprint(talksKept+4) {
		t.Errorf("kept %d talks, %q", len(got), got)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another file went: %v", err)
	}
}

func TestKeepingFails(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := talkAt(t, home, 200)
	p.expect(promptFirst)
	p.enter("one\r")
	p.expect("leat: keep the talk: mkdir")
	p.expect(`you said: "one"`)
	p.say("two")
	p.enter("/quit\r")
	p.wait()
	if n := strings.Count(p.all(), "keep the talk"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}

func TestCtrlC(t *testing.T) {
	p := talkAt(t, t.TempDir(), 200)
	p.expect(promptFirst)
	p.enter("abc\x03") // typed text goes, and it counts for nothing
	p.expect("^C")
	p.say("hi")
	for range 2 {
		p.expect(promptFirst)
		p.enter("\x03")
		p.expect("Ctrl-C again")
		p.expect(promptFirst)
		p.enter("abc\x03")
		p.expect("^C")
	}
	p.expect(promptFirst)
	p.enter("\"\"\"\r")
	p.expect(promptMore)
	p.enter("\x03") // the line before it is text
	p.expect("^C")
	p.expect(promptFirst)
	p.enter("hold\r")
	p.expect("begun")
	p.enter("\x03")
	p.expect("leat: stopped")
	p.expect(promptFirst)
	p.enter("\x03")
	p.expect("Ctrl-C again")
	p.expect(promptFirst)
	p.enter("\x03")
	if code := p.wait().ExitCode(); code != exitOK {
		t.Errorf("exit code %d, %q", code, p.text())
	}
}

func TestTypingAhead(t *testing.T) {
	const paste, pasted = "\x1b[200~", "\x1b[201~"
	for _, c := range []struct{ name, typed, more, want string }{
		{"typed", "one", "\r", "one"},
		{"sent", "one\r", "", "one"},
		{"lines", "one\rtwo\rthree\r", "", "one\ntwo\nthree"},
		{"pasted", paste + "one\rtwo\r" + pasted, "\r", "one\ntwo"},
		{"pasted and sent", paste + "one\n\ntwo" + pasted + "\r", "", "one\n\ntwo"},
		{"taken back", "onx\x7fe", "\r", "one"},
		{"long", paste + strings.Repeat("0123456789\n", 1000) + pasted, "\r", strings.TrimRight(strings.Repeat("0123456789\n", 1000), "\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home, gate := t.TempDir(), pipe(t)
			p := talkAt(t, home, 200)
			p.expect(promptFirst)
			p.enter("until " + gate + "\r")
			p.expect("begun")
			p.enter(c.typed)
			release(t, gate)
			if between := p.expect("ended"); between != " " {
				t.Errorf("the answer has %q in it", between)
			}
			p.expect(promptFirst)
			p.enter(c.more)
			p.expect("you said:")
			p.expect(promptFirst)
			p.enter("/quit\r")
			p.wait()
			if _, got, _ := strings.Cut(kept(t, home)[0], "ended|"); !strings.HasPrefix(got, c.want+"|you said") {
				t.Errorf("got %q, wanted %q", got, c.want)
			}
		})
	}
}

// What is typed before there is an answer is taken line by line, as a script writes it.
func TestLinesBeforehand(t *testing.T) {
	p := talkAt(t, t.TempDir(), 200)
	p.enter("one\rtwo\r/set temp 0.5\r/clear\ry\r/quit\r")
	p.expect(`you said: "one"`)
	p.expect(`you said: "two"`)
	p.expect("temp is 0.5")
	p.expect("forgotten")
	if code := p.wait().ExitCode(); code != exitOK {
		t.Errorf("exit code %d, %q", code, p.text())
	}
}

func TestLinesBreakAtTheTerminalsWidth(t *testing.T) {
	p := talkAt(t, t.TempDir(), 20)
	p.expect(promptFirst)
	p.enter("recite Once upon a time there was a little girl named Lily. 今天天气很好，我们去公园玩。\r")
	p.expect("\r\nOnce upon a time") // the line as it was typed comes first
	got := strings.ReplaceAll(p.expect(promptFirst), "\r", "")
	if got, want := screenText(t, "Once upon a time"+strings.TrimRight(cutBefore(got, "\x1b[J"), "\n"), 20), "Once upon a time\nthere was a little\ngirl named Lily. 今\n天天气很好，我们去公\n园玩。"; got != want {
		t.Errorf("20 columns: got %q, wanted %q", got, want)
	}
	p.resize(30)
	p.enter("/show messages\r")
	p.expect("assistant: Once upon a time\r\n")
	p.expect("there was a little girl named\r\n")
}

func cutBefore(text, end string) string {
	text, _, _ = strings.Cut(text, end)
	return text
}

func TestThinkingIsShownOrSaid(t *testing.T) {
	for _, shown := range []bool{true, false} {
		gate := pipe(t)
		p := talkAt(t, t.TempDir(), 100)
		p.expect(promptFirst)
		p.enter("/set thinking " + map[bool]string{true: "on", false: "off"}[shown] + "\r")
		p.expect("leat: thinking is o")
		p.expect(promptFirst)
		p.enter("think " + gate + "\r")
		if shown {
			p.expect("\x1b[2mhm")
		} else {
			p.expect("\r\x1b[Kleat: thinking")
		}
		release(t, gate)
		if between := p.expect("thought\r\n"); !shown && !strings.HasSuffix(between, "\r\x1b[K") {
			t.Errorf("the status is still there: %q", between)
		}
		p.expect(promptFirst)
		p.enter("/quit\r")
		p.wait()
		if strings.Contains(p.all(), "hm") != shown {
			t.Errorf("shown %v: %q", shown, p.text())
		}
	}
}

// TestTerminalIsGivenBack: a shell finds the terminal as it was.
func TestTerminalIsGivenBack(t *testing.T) {
	for _, leave := range []string{"/quit\r", "deaf\r"} {
		p := talkAt(t, t.TempDir(), 100)
		before := p.before
		p.slave(t) // keeps the terminal when the program has left
		p.expect(promptFirst)
		p.enter(leave)
		if leave != "/quit\r" {
			p.expect("begun")
			p.enter("\x03")
			p.expect("asked")
			p.enter("\x03")
		}
		p.expect("\x1b[?2004l")
		p.wait()
		after, err := unix.IoctlGetTermios(p.fd, unix.TCGETS)
		if err != nil || after.Lflag != before.Lflag || after.Iflag != before.Iflag {
			t.Errorf("%q: modes %x, %x, error %v; wanted %x, %x", leave, after.Lflag, after.Iflag, err, before.Lflag, before.Iflag)
		}
	}
}
