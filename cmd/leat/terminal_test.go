package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPasteFilter(t *testing.T) {
	const begin, end = "\x1b[200~", "\x1b[201~"
	long := strings.Repeat("x", longPaste)
	for _, c := range []struct{ name, typed, want string }{
		{"typed", "one\rtwo\n\t\x03", "one\rtwo\n\t\x03"},
		{"keys", "\x1b[A\x1b[2~\x1b\x1b[B", "\x1b[A\x1b[2~\x1b\x1b[B"},
		{"pasted lines", "a" + begin + "one\ntwo\rthree\r\nfour" + end + "\r", "aone\ntwo\nthree\nfour\r"},
		{"empty lines", begin + "one\n\ntwo\r\n\r\nthree" + end, "one\n\ntwo\n\nthree"},
		{"pasted tab", begin + "\tx" + end + "\t", "\tx\t"},
		{"pasted keys are none", begin + "a\x03\x1b[Ab\x7f" + end, "a[Ab"},
		{"twice", begin + "a" + end + "b" + begin + "c\nd" + end, "abc\nd"},
		{"more than ASCII", begin + "日本\né" + end, "日本\né"},
		{"long pastes", begin + long + "\n" + end + "a" + begin + long + end, long + "\na" + long},
		{"bracket inside a bracket", begin + "a" + "\x1b[20" + end + "b", "a[20b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p pasteFilter
			for _, b := range []byte(c.typed) {
				p.push(b)
			}
			got := string(p.ready)
			for _, text := range p.long {
				got = strings.Replace(got, string(pasteMark), text, 1)
			}
			if text := fromMarks.Replace(got); text != c.want {
				t.Errorf("got %q, wanted %q", text, c.want)
			}
			if strings.Contains(c.name, "lines") && strings.ContainsAny(got[:len(got)-1], "\r\n") {
				t.Errorf("a pasted newline ends a line: %q", got)
			}
		})
	}
}

func TestJoinAhead(t *testing.T) {
	const begin, end = "\x1b[200~", "\x1b[201~"
	for _, c := range []struct{ name, typed, want string }{
		{"nothing", "", ""},
		{"a word", "hello", "hello"},
		{"a line", "hello\r", "hello\r"},
		{"lines are one entry", "one\rtwo\r\rthree\r", "one⏎two⏎⏎three\r"},
		{"the last is open", "one\rtwo", "one⏎two"},
		{"Enter alone", "\r\r\n", ""},
		{"Enter before and after", "\rone\r\r", "one\r"},
		{"pasted", begin + "one\ntwo\n" + end, "one⏎two⏎"},
		{"pasted and sent", begin + "one\ntwo" + end + "\r", "one⏎two\r"},
		{"pasted twice", begin + "one\n" + end + begin + "two" + end, "one⏎two"},
		{"commands stand alone", "one\rtwo\r/set temp 0\rthree\r", "one⏎two\r/set temp 0\rthree\r"},
		{"slash in a paste", begin + "one\n/usr/bin" + end + "\r", "one⏎/usr/bin\r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pasteFilter{ahead: true}
			for _, b := range []byte(c.typed) {
				p.push(b)
			}
			got := strings.ReplaceAll(joinAhead(string(p.ready)), string(newlineMark), "⏎")
			if got != c.want {
				t.Errorf("got %q, wanted %q", got, c.want)
			}
		})
	}
}

func TestMarksKeepTheWidth(t *testing.T) {
	line := []rune(toMarks.Replace("a\nb\tc"))
	shown := markPainter{}.Paint(line, 0)
	if len(shown) != len(line) || strings.ContainsAny(string(shown), "\n\t") || string(line) == string(shown) {
		t.Errorf("got %q for %q", string(shown), string(line))
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leat", "history")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{"one", "two\nlines", "two\nlines", "", strings.Repeat("x", historyEntry+1)} {
		if err := h.add(entry); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("\"cut sho")
	f.Close()
	again, err := openHistory(path)
	if want := []string{"one", "two\nlines"}; err != nil || !slices.Equal(again.entries, want) {
		t.Errorf("got %q, error %v; wanted %q", again.entries, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}
}

func TestHistoryIsShortened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	lines := strings.Repeat("\"a\"\n\"b\"\n", historyLimit+1)
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := openHistory(path)
	data, _ := os.ReadFile(path)
	if got := strings.Count(string(data), "\n"); err != nil || got != historyLimit || len(h.entries) != historyLimit {
		t.Errorf("the file has %d lines, memory %d, error %v; wanted %d", got, len(h.entries), err, historyLimit)
	}
	if h, err := openHistory(""); err != nil || h.add("x") != nil || len(h.entries) != 1 {
		t.Errorf("without a file: %v, %v", h, err)
	}
}

func TestScreen(t *testing.T) {
	type piece struct{ thinking, text string }
	for _, c := range []struct {
		name          string
		dim, thinking bool
		pieces        []piece
		want          string
	}{
		{"answer", true, true, []piece{{"", "Hi"}, {"", " there"}}, "Hi there\n"},
		{"ends its line", true, true, []piece{{"", "Hi\n"}}, "Hi\n"},
		{"nothing", true, true, nil, ""},
		{"thinking dimmed", true, true, []piece{{"\nhm", ""}, {" so\n", ""}, {"", "\n\nHi"}}, "\x1b[2mhm so\n\x1b[0m\nHi\n"},
		{"thinking plain", false, true, []piece{{"hm", "Hi"}}, "(thinking) hm\n\nHi\n"},
		{"thinking hidden", true, false, []piece{{"hm", ""}, {"", "\nHi"}}, "Hi\n"},
		{"code block ends with the thinking", true, true, []piece{{"```\nx", ""}, {"", "Hi"}}, "\x1b[2m```\nx\x1b[0m\n\nHi\n"},
		{"stopped while thinking", true, true, []piece{{"hm", ""}}, "\x1b[2mhm\x1b[0m\n"},
		{"control characters", true, true, []piece{{"", "a\x1b[2Jb\r\n\tc\u009b\u00e9"}}, "a\ufffd[2Jb\n\tc\ufffd\u00e9\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			s := &screen{text: wrapper{w: &out, columns: func() int { return 0 }}, dim: c.dim, thinking: c.thinking}
			for _, p := range c.pieces {
				if err := s.show(p.thinking, p.text); err != nil {
					t.Fatal(err)
				}
			}
			s.finish()
			if out.String() != c.want {
				t.Errorf("got %q, wanted %q", out.String(), c.want)
			}
		})
	}
}
