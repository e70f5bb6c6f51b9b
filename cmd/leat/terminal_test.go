package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPasteReader(t *testing.T) {
	const begin, end = "\x1b[200~", "\x1b[201~"
	for _, c := range []struct{ name, typed, want string }{
		{"typed", "one\rtwo\n\t\x03", "one\rtwo\n\t\x03"},
		{"keys", "\x1b[A\x1b[2~\x1b\x1b[B", "\x1b[A\x1b[2~\x1b\x1b[B"},
		{"pasted lines", "a" + begin + "one\ntwo\rthree\r\nfour" + end + "\r", "aone\ntwo\nthree\nfour\r"},
		{"empty lines", begin + "one\n\ntwo\r\n\r\nthree" + end, "one\n\ntwo\n\nthree"},
		{"pasted tab", begin + "\tx" + end + "\t", "\tx\t"},
		{"pasted keys are none", begin + "a\x03\x1b[Ab\x7f" + end, "a[Ab"},
		{"twice", begin + "a" + end + "b" + begin + "c\nd" + end, "abc\nd"},
		{"more than ASCII", begin + "日本\né" + end, "日本\né"},
		{"bracket inside a bracket", begin + "a" + "\x1b[20" + end + "b", "a[20b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.typed), iotest.OneByteReader(strings.NewReader(c.typed))} {
				p := &pasteReader{ReadCloser: io.NopCloser(r)}
				got, err := io.ReadAll(p)
				if text := fromMarks.Replace(string(got)); err != nil || text != c.want {
					t.Errorf("got %q, error %v; wanted %q", text, err, c.want)
				}
				if strings.Contains(c.name, "lines") && strings.ContainsAny(string(got[:len(got)-1]), "\r\n") {
					t.Errorf("a pasted newline ends a line: %q", got)
				}
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
		{"stopped while thinking", true, true, []piece{{"hm", ""}}, "\x1b[2mhm\x1b[0m\n"},
		{"control characters", true, true, []piece{{"", "a\x1b[2Jb\r\n\tc\u009b\u00e9"}}, "a\ufffd[2Jb\n\tc\ufffd\u00e9\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			s := &screen{w: &out, dim: c.dim, thinking: c.thinking}
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
