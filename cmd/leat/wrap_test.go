package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// screenText is what a terminal shows after text and codes, as lines. It knows the codes
// that wrapper writes. A line longer than columns fails the test.
func screenText(t *testing.T, out string, columns int) string {
	t.Helper()
	lines := []string{""}
	for out != "" {
		last := len(lines) - 1
		switch {
		case out[0] == '\n':
			lines = append(lines, "")
			out = out[1:]
			continue
		case strings.HasPrefix(out, "\x1b["):
			end := strings.IndexAny(out, "GKm")
			code := out[2 : end+1]
			if col, ok := strings.CutSuffix(code, "G"); ok {
				lines[last] = cutColumns(lines[last], col)
			}
			out = out[end+1:]
			continue
		}
		cluster, rest, _, _ := uniseg.FirstGraphemeClusterInString(out, -1)
		lines[last] += cluster
		if width := advance(0, lines[last]); width > columns {
			t.Errorf("line %q has %d columns, wanted %d at most", lines[last], width, columns)
		}
		out = rest
	}
	return strings.Join(lines, "\n")
}

// cutColumns is line before the column that a code names, counted from 1.
func cutColumns(line, col string) string {
	for line != "" && column(advance(0, line)) != "\x1b["+col+"G" {
		_, n := lastCluster(line)
		line = line[:n]
	}
	return line
}

func lastCluster(line string) (cluster string, at int) {
	g := uniseg.NewGraphemes(line)
	for g.Next() {
		at, _ = g.Positions()
		cluster = g.Str()
	}
	return cluster, at
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns int
		text    string
		want    string
	}{
		{"short", 10, "Hi there", "Hi there"},
		{"between words", 10, "Once upon a time", "Once upon\na time"},
		{"a full line", 9, "Once upon a time", "Once upon\na time"},
		{"blanks at the end of a line go", 9, "Once upon   a time", "Once upon\na time"},
		{"blanks inside stay", 20, "a   b", "a   b"},
		{"indented", 10, "  - one two three", "  - one\ntwo three"},
		{"newlines stay", 10, "one\n\ntwo\n", "one\n\ntwo\n"},
		{"a long word", 5, "a abcdefghijkl m", "a\nabcde\nfghij\nkl m"},
		{"a long word first", 4, "abcdefgh", "abcd\nefgh"},
		{"hyphen", 8, "self-service", "self-\nservice"},
		{"Chinese", 10, "今天天气很好我们去公园", "今天天气很\n好我们去公\n园"},
		{"Chinese at an odd width", 9, "今天天气很好", "今天天气\n很好"},
		{"no full stop begins a line", 10, "今天天气很。好", "今天天气\n很。好"},
		{"Japanese and English", 12, "これは test です", "これは test\nです"},
		{"Korean", 9, "안녕 하세요 여러분", "안녕 하세\n요 여러분"},
		{"combining marks", 5, "e\u0301e\u0301e\u0301 e\u0301e\u0301 e\u0301e\u0301", "e\u0301e\u0301e\u0301\ne\u0301e\u0301 e\u0301e\u0301"},
		{"emoji", 6, "👩‍🚀 👩‍🚀 👩‍🚀", "👩‍🚀 👩‍🚀\n👩‍🚀"},
		{"wider than the terminal", 1, "日本", "日\n本"},
		{"tab", 12, "a\tbcd efgh", "a\tbcd\nefgh"},
		{"code block", 10, "Say this:\n```go\nfmt.Println(\"hello, world\")\n```\nand then that", "Say this:\n```go\nfmt.Println(\"hello, world\")\n```\nand then\nthat"},
		{"code block in tildes", 8, "~~~~\n``` a b c d e f\n~~~\n~~~~~\na b c d e f", "~~~~\n``` a b c d e f\n~~~\n~~~~~\na b c d\ne f"},
		{"code in a line", 8, "```a b``` c d e f", "```a\nb``` c d\ne f"},
		{"unknown width", 0, "Once upon a time", "Once upon a time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			columns := 1000
			if !strings.Contains(c.name, "unknown") && !strings.Contains(c.name, "code block") && !strings.Contains(c.name, "wider") {
				columns = c.columns
			}
			for _, erases := range []bool{true, false} {
				for _, size := range []int{1, 2, 3, 1000} {
					width := c.columns
					if !erases && width > 0 {
						width++ // these get a column less
					}
					if got := wrapped(t, c.text, width, erases, size, columns); got != c.want {
						t.Errorf("in pieces of %d, erasing %v: got %q, wanted %q", size, erases, got, c.want)
					}
				}
			}
		})
	}
}

// TestWrapKeepsText: whatever the pieces and the width, nothing is lost but blanks at which
// a line was broken, and pieces make no difference.
func TestWrapKeepsText(t *testing.T) {
	parts := []string{"Once", "upon", " ", " ", "  ", "\n", "今", "天", "。", "e\u0301", "👩‍🚀", "-", "abcdefghijklmnopqrstuvwxyz", "\t", "(x)", "```\n", "1,000", "🇩🇪"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var b strings.Builder
		for range rng.IntN(30) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		columns := 2 + rng.IntN(20)
		bare := strings.NewReplacer(" ", "", "\n", "", "\t", "")
		for _, erases := range []bool{true, false} {
			whole := wrapped(t, text, columns, erases, 1<<20, 1<<20)
			if bare.Replace(whole) != bare.Replace(text) {
				t.Fatalf("%d columns: %q became %q", columns, text, whole)
			}
			if pieces := wrapped(t, text, columns, erases, 1+rng.IntN(3), 1<<20); strings.TrimRight(pieces, " \t") != strings.TrimRight(whole, " \t") {
				t.Fatalf("%d columns: %q became %q in pieces, %q as a whole", columns, text, pieces, whole)
			}
		}
	}
}

// wrapped is what a terminal shows of text that comes in pieces of size runes.
func wrapped(t *testing.T, text string, columns int, erases bool, size, longest int) string {
	t.Helper()
	var out strings.Builder
	w := &wrapper{w: &out, columns: func() int { return columns }, erases: erases}
	for runes := []rune(text); len(runes) > 0; runes = runes[min(size, len(runes)):] {
		w.push(string(runes[:min(size, len(runes))]))
	}
	w.end()
	return screenText(t, out.String(), longest)
}

// A path can be copied from a note: no newline comes into it.
func TestNotesKeepLongWordsWhole(t *testing.T) {
	var out strings.Builder
	w := &wrapper{w: &out, columns: func() int { return 10 }, erases: true, whole: true}
	w.push("leat: kept in /home/someone/talks/a.json; go on with it\n")
	if got, want := screenText(t, out.String(), 1000), "leat: kept\nin\n/home/someone/talks/a.json;\ngo on with\nit\n"; got != want {
		t.Errorf("got %q, wanted %q", got, want)
	}
}

func TestWrapResizes(t *testing.T) {
	var out strings.Builder
	columns := 20
	w := &wrapper{w: &out, columns: func() int { return columns }, erases: true}
	w.push("Once upon a ti")
	columns = 10
	w.push("me there was")
	columns = 0
	w.push(" a little girl named Lily")
	w.end()
	if got, want := screenText(t, out.String(), 1000), "Once upon a time\nthere was a little girl named Lily"; got != want {
		t.Errorf("got %q, wanted %q", got, want)
	}
}
