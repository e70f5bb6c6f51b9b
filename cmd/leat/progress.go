package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	barAfter  = 500 * time.Millisecond // what is done by then needs no bar
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second  // where stderr is no terminal: a log wants few lines
	rateOver  = 10 * time.Second // the rate looks back this far
)

// progress shows how far work on a known number of bytes has come: a bar on a
// terminal, else a line every few seconds, so that short work says nothing.
// Several goroutines may use it.
type progress struct {
	what  string
	count bool // of things, not of bytes
	total int64
	w     io.Writer
	now   func() time.Time

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil where stderr is no terminal
	shown   time.Time
	done    int64
	samples []progressSample // oldest first, over the last rateOver
	drawn   bool             // the bar stands on the terminal
	closed  bool
}

type progressSample struct {
	at   time.Time
	done int64
}

func (a *app) progress(what string, total int64) *progress {
	return newProgress(a.err, what, total, isTerminal(a.err), a.now)
}

// counting shows how many things of a total are done.
func (a *app) counting(what string, total int64) *progress {
	p := a.progress(what, total)
	p.count = true
	return p
}

func newProgress(w io.Writer, what string, total int64, terminal bool, now func() time.Time) *progress {
	p := &progress{what: what, total: total, w: w, now: now, shown: now()}
	if terminal {
		p.bar = progressbar.NewOptions64(max(total, 1),
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(barWidth(w)),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true),
		)
	}
	return p
}

// Resize tells that there is another number of bytes to do.
func (p *progress) Resize(total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || total == p.total {
		return
	}
	p.total = total
	if p.bar != nil {
		p.bar.ChangeMax64(max(total, 1))
	}
}

// Set tells how many bytes are done.
func (p *progress) Set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	now := p.now()
	p.done = done
	p.sample(now)
	every := lineEvery
	if p.bar != nil {
		every = barEvery
		if !p.drawn {
			every = barAfter
		}
	}
	if now.Sub(p.shown) >= every {
		p.show(now)
	}
}

// Close ends the bar's line; Set does nothing afterwards.
func (p *progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.drawn {
		p.show(p.now())
		fmt.Fprintln(p.w)
	}
}

// show draws; a progress display that can't be written is no reason to stop the work.
func (p *progress) show(now time.Time) {
	p.shown = now
	if p.bar == nil {
		fmt.Fprintf(p.w, "leat: %s\n", p.line(now))
		return
	}
	p.drawn = true
	p.bar.Describe(p.line(now)) // first: at the end Set64 draws for the last time
	_ = p.bar.Set64(min(p.done, max(p.total, 1)))
}

// line is the text beside the bar, or the whole line without one.
func (p *progress) line(now time.Time) string {
	if p.count {
		return fmt.Sprintf("%s %d of %d", p.what, p.done, p.total)
	}
	text := fmt.Sprintf("%s %s of %s", p.what, formatSize(p.done), formatSize(p.total))
	rate := p.rate(now)
	if rate <= 0 {
		return text
	}
	text += ", " + formatRate(rate)
	if left := p.total - p.done; left > 0 {
		eta := time.Duration(float64(left) / rate * float64(time.Second))
		text += ", " + eta.Round(time.Second).String() + " left"
	}
	return text
}

// sample remembers the last rateOver, at most one sample each barEvery.
func (p *progress) sample(now time.Time) {
	if n := len(p.samples); n > 1 && now.Sub(p.samples[n-1].at) < barEvery {
		return
	}
	for len(p.samples) > 1 && now.Sub(p.samples[0].at) > rateOver {
		p.samples = p.samples[1:]
	}
	p.samples = append(p.samples, progressSample{now, p.done})
}

// rate is bytes per second since the oldest sample, so a resumed start counts nothing.
func (p *progress) rate(now time.Time) float64 {
	if len(p.samples) == 0 {
		return 0
	}
	first := p.samples[0]
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(p.done-first.done) / seconds
}

// barWidth leaves room for the text, as a line that wraps can't be redrawn.
func barWidth(w any) int {
	const text, least, most = 68, 5, 30
	columns := 80
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			columns = n
		}
	}
	return min(max(columns-text, least), most)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
