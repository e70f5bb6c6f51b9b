package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// point is a figure at a time in seconds.
type point struct{ at, value float64 }

// drift is how much a straight line through points rises from the first to the last.
func drift(points []point) float64 {
	n := float64(len(points))
	if n < 2 {
		return 0
	}
	var t, v float64
	for _, p := range points {
		t, v = t+p.at/n, v+p.value/n
	}
	var tv, tt float64
	for _, p := range points {
		tv += (p.at - t) * (p.value - v)
		tt += (p.at - t) * (p.at - t)
	}
	if tt == 0 {
		return 0
	}
	return tv / tt * (points[len(points)-1].at - points[0].at)
}

func mean(points []point) (sum float64) {
	for _, p := range points {
		sum += p.value / float64(len(points))
	}
	return sum
}

// series is a figure that must not drift: what of it may, at most, is share of its mean
// or least, whichever is more.
type series struct {
	name         string
	points       []point
	share, least float64
	falls        bool // falling is bad, not rising
	unit         float64
	unitName     string
}

const (
	warm        = 5 // part of the samples, at the beginning, that don't count: 1/5
	leastPoints = 8 // of a line: another program's moment on one of three would be a drift
)

// verdict prints how each figure drifts; the error says which did too much.
func verdict(out io.Writer, samples []sample, r *rounds) error {
	speeds, cpu := r.speeds[len(r.speeds)/warm:], r.cpu[len(r.cpu)/warm:]
	samples = samples[len(samples)/warm:]
	of := func(value func(*sample) float64) (list []point) {
		for i := range samples {
			list = append(list, point{samples[i].seconds, value(&samples[i])})
		}
		return list
	}
	const mib = 1 << 20
	all := []series{
		{"resident set", of(func(s *sample) float64 { return float64(s.rss) }), 0.01, 24 * mib, false, mib, "MiB"},
		{"Go heap", of(func(s *sample) float64 { return float64(s.heap) }), 0.05, 8 * mib, false, mib, "MiB"},
		{"VRAM, our accounting", of(func(s *sample) float64 { return float64(s.vram) }), 0, 0, false, mib, "MiB"},
		{"VRAM, the driver's", of(func(s *sample) float64 { return float64(s.driverVRAM) }), 0.002, 8 * mib, false, mib, "MiB"},
		{"pinned memory", of(func(s *sample) float64 { return float64(s.pins) }), 0, 0, false, mib, "MiB"},
		{"handles", of(func(s *sample) float64 { return float64(s.handles) }), 0, 1, false, 1, ""},
		{"threads", of(func(s *sample) float64 { return float64(s.threads) }), 0, 4, false, 1, ""},
		{"goroutines", of(func(s *sample) float64 { return float64(s.goroutines) }), 0, 1, false, 1, ""},
		{"decode, tok/s of a round", speeds, 0.03, 0, true, 1, ""},
		{"CPU of a token", cpu, 0.03, 0, false, 1e-3, "ms"},
	}
	var bad []string
	for _, s := range all {
		if len(s.points) < leastPoints {
			fmt.Fprintf(out, "%-26s too few figures to tell\n", s.name)
			continue
		}
		d, m := drift(s.points), mean(s.points)
		most := math.Max(s.share*m, s.least) + 1e-6*math.Abs(m)
		word := "steady"
		if s.falls && -d > most || !s.falls && d > most {
			word = "DRIFTS"
			bad = append(bad, s.name)
		}
		fmt.Fprintf(out, "%-26s %s: mean %.3f %s, drift %+.3f (%+.2f %%)\n", s.name, word, m/s.unit, s.unitName, d/s.unit, 100*d/math.Max(math.Abs(m), 1e-9))
	}
	last := &samples[len(samples)-1]
	fmt.Fprintf(out, "%d rounds, each with the same text; %d tokens\n", last.rounds, last.tokens)
	if len(bad) > 0 {
		return fmt.Errorf("it drifts: %s", strings.Join(bad, ", "))
	}
	return nil
}
