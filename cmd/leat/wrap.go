package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// wrapper breaks lines between words at a terminal's width, as text streams. Where words
// end, and how wide they are, Unicode says: so Chinese breaks between characters, and a
// combining mark has no width. Lines of a code block are the terminal's to break.
//
// A word is shown as it comes, and taken to the next line when it gets too long for this
// one. Where the terminal can't erase it, it is shown when it is whole.
type wrapper struct {
	w       io.Writer
	columns func() int // of the terminal, now; 0: lines aren't broken
	erases  bool       // the terminal understands the codes for that
	whole   bool       // words end at blanks alone, and the terminal breaks longer ones: paths can be copied

	out   []byte // what the push in progress writes
	width int    // columns as of the last push
	col   int    // where the last whole word ends
	blank string // that follows it, and isn't shown
	word  string // since the last place where a line may break
	shown int    // bytes of word that are on the terminal; blank is too, if any is
	done  int    // bytes of word that fill lines above: a word longer than a line
	state int    // of the search for such places
	line  []byte // the beginning of this line, as the model wrote it
	fence string // what began the code block, "" outside
}

const (
	tabStop = 8
	maxWord = 4096 // bytes of lines above that are remembered of a word
)

// push shows the next piece. It holds no control characters but newlines and tabs.
func (w *wrapper) push(text string) error {
	w.measure()
	for {
		line, rest, more := strings.Cut(text, "\n")
		w.add(line)
		if !more {
			return w.flush()
		}
		w.endLine()
		text = rest
	}
}

// raw shows codes that take no room.
func (w *wrapper) raw(codes string) { w.out = append(w.out, codes...) }

// end shows what is held back. A line that it ends with stays open.
func (w *wrapper) end() error {
	w.wordEnds(w.word)
	w.word = ""
	return w.flush()
}

func (w *wrapper) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.w.Write(w.out)
	w.out = w.out[:0]
	return err
}

// measure asks for the width. Where it changed, the terminal has moved what was shown:
// what is shown of a word stays.
func (w *wrapper) measure() {
	width := w.columns()
	if width > 0 && !w.erases {
		width-- // some of these terminals go to the next line by themselves
	}
	if width == w.width {
		return
	}
	if w.shown > 0 {
		w.col = advance(w.col, w.blank+w.word[w.done:w.shown])
		w.blank = ""
		w.cut(w.shown)
	}
	if w.width = width; width == 0 {
		w.raw(w.blank + w.word)
		w.blank, w.word = "", ""
	} else if w.col > width {
		w.col %= width
	}
}

// add takes a part of a line.
func (w *wrapper) add(text string) {
	if text == "" {
		return
	}
	if len(w.line) == 0 {
		w.state = -1
	}
	w.line = append(w.line, text[:min(len(text), max(0, maxFence-len(w.line)))]...)
	if w.width == 0 || w.fence != "" {
		w.raw(text)
		return
	}
	w.word += text
	for {
		word, rest, state := w.next()
		if rest == "" {
			break // it may go on
		}
		w.wordEnds(word)
		w.word, w.state = rest, state
	}
	if w.erases {
		w.place(strings.TrimRight(w.word, " \t"))
	}
	if w.done > maxWord {
		w.cut(w.done)
	}
}

// next parts word where a line may break first; rest is empty if it may not yet.
func (w *wrapper) next() (word, rest string, state int) {
	if !w.whole {
		word, rest, _, state = uniseg.FirstLineSegmentInString(w.word, w.state)
		return word, rest, state
	}
	const blanks = " \t"
	text := strings.TrimLeft(w.word, blanks)
	if i := strings.IndexAny(text, blanks); i >= 0 {
		rest = strings.TrimLeft(text[i:], blanks)
	}
	return w.word[:len(w.word)-len(rest)], rest, -1
}

// cut drops the beginning of word, which is shown.
func (w *wrapper) cut(n int) {
	w.word, w.shown, w.done, w.state = w.word[n:], w.shown-n, 0, -1
}

// wordEnds takes a word and the blanks after it.
func (w *wrapper) wordEnds(word string) {
	text := strings.TrimRight(word, " \t")
	w.place(text)
	if text != "" {
		w.col = advance(w.col, w.blank+text[w.done:])
		w.blank = ""
	}
	w.blank += word[len(text):]
	w.shown, w.done = 0, 0
}

// place shows what isn't shown of a word, on this line or on the next.
func (w *wrapper) place(text string) {
	if text == "" || w.width == 0 {
		return
	}
	if w.col > 0 && advance(w.col, w.blank+text) > w.width {
		if w.shown > 0 {
			w.raw(column(w.col) + "\x1b[K")
		}
		w.raw("\n")
		w.col, w.blank, w.shown = 0, "", 0
	}
	if w.shown == 0 {
		w.raw(w.blank)
	}
	for !w.whole && advance(w.col, w.blank+text[w.done:]) > w.width {
		end := w.done + w.fitting(text[w.done:])
		if end == len(text) {
			break // one character, wider than the terminal
		}
		w.raw(text[min(end, w.shown):end] + "\n")
		w.col, w.blank, w.shown, w.done = 0, "", end, end
	}
	w.raw(text[w.shown:])
	w.shown = len(text)
}

// fitting is how many bytes of text, which is longer than a line, fit on this one: one
// character at least.
func (w *wrapper) fitting(text string) (n int) {
	col := advance(w.col, w.blank)
	for n < len(text) {
		cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(text[n:], -1)
		if col+width > w.width && n > 0 {
			break
		}
		n += len(cluster)
		col += width
	}
	return n
}

func (w *wrapper) endLine() {
	w.wordEnds(w.word)
	w.raw("\n")
	w.fence = fenceAfter(w.fence, string(w.line))
	w.col, w.blank, w.word, w.line = 0, "", "", w.line[:0]
}

// column is the code that puts the cursor after so many columns.
func column(n int) string { return "\x1b[" + strconv.Itoa(n+1) + "G" }

// advance is the column after text that begins in column col.
func advance(col int, text string) int {
	for {
		before, rest, tab := strings.Cut(text, "\t")
		col += uniseg.StringWidth(before)
		if !tab {
			return col
		}
		col += tabStop - col%tabStop
		text = rest
	}
}

const maxFence = 200 // bytes of a line that can begin or end a code block

// fenceAfter is the fence of the code block that the next line is in, where fence is that of line.
func fenceAfter(fence, line string) string {
	line = strings.TrimSpace(line)
	n := len(line) - len(strings.TrimLeft(line, "`"))
	if n == 0 {
		n = len(line) - len(strings.TrimLeft(line, "~"))
	}
	run, rest := line[:n], line[n:]
	switch {
	case fence != "" && rest == "" && strings.HasPrefix(run, fence):
		return ""
	case fence == "" && n >= 3 && !(run[0] == '`' && strings.Contains(rest, "`")):
		return run
	}
	return fence
}
