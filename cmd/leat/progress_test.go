package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that a test moves by hand.
type clock struct{ t time.Time }

func (c *clock) now() time.Time      { return c.t }
func (c *clock) add(d time.Duration) { c.t = c.t.Add(d) }

func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	c := &clock{t: time.Unix(1000, 0)}
	p := newProgress(&out, "decompose", 10<<30, false, c.now)
	p.Set(4 << 30) // resumed: these bytes cost no time
	for range 7 {
		c.add(time.Second)
		p.Set(p.done + 500e6)
	}
	p.Close()
	want := "leat: decompose 6.3 GiB of 10.0 GiB, 500 MB/s, 8s left\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// Work that turns out to be less ends at its new end.
func TestProgressResize(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		c := &clock{t: time.Unix(1000, 0)}
		p := newProgress(&out, "loading", 10<<30, terminal, c.now)
		p.Set(1 << 30)
		c.add(6 * time.Second)
		p.Resize(2 << 30)
		p.Set(2 << 30)
		p.Close()
		if !strings.Contains(out.String(), "2.0 GiB of 2.0 GiB") {
			t.Errorf("terminal %t: printed %q", terminal, out.String())
		}
	}
}

func TestProgressQuietWhenShort(t *testing.T) {
	for name, terminal := range map[string]bool{"terminal": true, "log": false} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c := &clock{t: time.Unix(1000, 0)}
			p := newProgress(&out, "verify", 100, terminal, c.now)
			for i := range int64(101) {
				c.add(time.Millisecond)
				p.Set(i)
			}
			p.Close()
			if out.Len() != 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	c := &clock{t: time.Unix(1000, 0)}
	p := newProgress(&out, "decompose", 1<<30, true, c.now)
	for i := range int64(11) {
		c.add(time.Second)
		p.Set(i << 30 / 10)
	}
	p.Close()
	p.Close()
	p.Set(5)
	text := out.String()
	for _, want := range []string{"decompose 512.0 MiB of 1.0 GiB, 107 MB/s, 5s left", "100%", "1.0 GiB of 1.0 GiB"} {
		if !strings.Contains(text, want) {
			t.Errorf("the bar never shows %q: %q", want, text)
		}
	}
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("want one line that is redrawn, then ended: %q", text)
	}
}

func TestProgressRateLooksBack(t *testing.T) {
	c := &clock{t: time.Unix(1000, 0)}
	p := newProgress(&bytes.Buffer{}, "x", 1<<40, false, c.now)
	for _, rate := range []int64{1e9, 1e8} { // slows down: the ETA must notice
		for range 200 {
			c.add(100 * time.Millisecond)
			p.Set(p.done + rate/10)
		}
	}
	if rate := p.rate(c.now()); rate < 0.99e8 || rate > 1.01e8 {
		t.Errorf("rate %g after slowing down, want 1e8", rate)
	}
}

func TestProgressNothingToDo(t *testing.T) {
	var out bytes.Buffer
	c := &clock{t: time.Unix(1000, 0)}
	p := newProgress(&out, "empty", 0, true, c.now)
	c.add(time.Second)
	p.Set(0)
	p.Close()
	if !strings.Contains(out.String(), "empty 0 B of 0 B") {
		t.Errorf("printed %q", out.String())
	}
}

func TestProgressConcurrent(t *testing.T) {
	p := newProgress(&bytes.Buffer{}, "x", 1000, true, time.Now)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range int64(1000) {
				p.Set(i)
			}
		})
	}
	wg.Wait()
	p.Close()
}
