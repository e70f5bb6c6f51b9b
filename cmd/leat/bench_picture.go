package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"leat/cmd/leat/picture"
	"leat/internal/bench"
	"leat/internal/output"
	"leat/internal/plan"
	"leat/internal/predict"
	"leat/internal/trace"
)

// draw writes the pictures and the trace that were asked for.
func (r *bencher) draw() error {
	var errs []error
	for _, out := range []struct {
		path  string
		write func(io.Writer) error
	}{{r.f.svg, r.drawSpeeds}, {r.f.timeline, r.drawToken}, {r.f.trace, r.writeTrace}, {r.f.uses, r.drawExperts}} {
		if out.path == "" {
			continue
		}
		err := r.f.results.fill(out.path, out.write)
		errs = append(errs, err)
		if err == nil && standard(out.path) != output.Stdout {
			fmt.Fprintf(r.a.err, "leat: wrote %s\n", out.path)
		}
	}
	return errors.Join(errs...)
}

// title names what all pictures show.
func (r *bencher) title() string {
	return fmt.Sprintf("%s %s on %s", r.report.Model.Name, r.report.Model.Quantization, shortDevice(r.report.Device.Name))
}

// shortDevice leaves out what a driver adds in brackets.
func shortDevice(name string) string {
	for i, c := range name {
		if c == '(' && i > 1 {
			return name[:i-1]
		}
	}
	return name
}

func (r *bencher) drawSpeeds(w io.Writer) error {
	chart := picture.SpeedChart{Title: r.title()}
	emulated := false
	for _, t := range r.f.tests() {
		if t.Generate == 0 {
			continue
		}
		s := picture.Series{Name: t.Name()}
		var rows []picture.Point // as each was predicted
		mixture := false         // for the experts that it found, of which no curve knows
		for i := range r.report.Configurations {
			c := &r.report.Configurations[i]
			emulated = emulated || c.Emulated != nil
			for _, row := range c.Rows {
				if row.Depth == t.Depth && max(row.Generate, row.Asked) == t.Generate {
					s.Measured = append(s.Measured, picture.Point{VRAMBytes: c.Plan.VRAMBudget, PerSec: row.PerSec.Median, Min: row.PerSec.Min, Max: row.PerSec.Max})
					rows = append(rows, picture.Point{VRAMBytes: c.Plan.VRAMBudget, PerSec: row.Predicted})
					mixture = mixture || row.PredictedHit != nil
				}
			}
		}
		switch {
		case r.speeds == nil || emulated: // each tier has a curve of its own
		case mixture:
			slices.SortFunc(rows, func(a, b picture.Point) int { return cmp.Compare(a.VRAMBytes, b.VRAMBytes) })
			s.Predicted = rows
		default:
			s.Predicted = r.curve(t, s.Measured)
		}
		if len(s.Measured) > 0 {
			chart.Series = append(chart.Series, s)
		}
	}
	if emulated {
		chart.Title += ", emulated tiers"
	}
	return picture.Speeds(w, chart)
}

// curveSteps are enough for a smooth line; a plan takes about a millisecond.
const curveSteps = 64

// within is what a run may spend that is given so much VRAM.
func (r *bencher) within(deviceBytes int64) (plan.Budget, error) {
	return budgetOf(r.options(benchConfig{VRAM: deviceBytes, RAM: int64(r.f.ram)}), &r.machine, r.hyper, r.model)
}

// curve predicts a generation's speed from the least budget to the one that holds all, as
// far as this device goes.
func (r *bencher) curve(t bench.Test, measured []picture.Point) (points []picture.Point) {
	q := predict.Question{Search: plan.Search{Hyper: r.hyper, Model: r.model, Within: r.within}, Speeds: *r.speeds, Context: t.Depth + 1 + t.Generate/2, Prompt: 1}
	least, err := q.Least()
	if err != nil {
		return nil
	}
	all, err := q.AllResident()
	if err != nil {
		return nil
	}
	var budgets []int64
	for _, p := range measured {
		if p.VRAMBytes >= least {
			budgets = append(budgets, p.VRAMBytes)
		}
	}
	end := min(all, r.budget.DeviceBytes)
	for i := range int64(curveSteps + 1) {
		budgets = append(budgets, least+(end-least)*i/curveSteps)
	}
	slices.Sort(budgets)
	for _, n := range slices.Compact(budgets) {
		if a, err := q.At(n); err == nil {
			points = append(points, picture.Point{VRAMBytes: n, PerSec: a.Prediction.DecodePerSec})
		}
	}
	return points
}

// errNoTrace: Ctrl-C came before, or nothing could be traced.
var errNoTrace = errors.New("no token was traced")

func (r *bencher) drawToken(w io.Writer) error {
	if r.picked == nil || r.picked.Token.End == 0 {
		return errNoTrace
	}
	t := &r.picked.Token
	took := (t.End - t.Begin).Seconds()
	chart := picture.TimelineChart{
		Title: fmt.Sprintf("One token of %s within %s of VRAM: %s", r.title(), formatSize(r.picked.Plan.VRAMBudget), seconds(took)),
		Span:  t.End - t.Begin,
	}
	for _, lane := range []trace.Lane{trace.Disk, trace.Link, trace.Compute} {
		if !slices.ContainsFunc(t.Spans, func(s trace.Span) bool { return s.Lane == lane }) {
			continue
		}
		busy := trace.Busy(t.Spans, lane, t.Begin, t.End)
		chart.Rows = append(chart.Rows, picture.Row{Name: string(lane), Note: percent(busy.Seconds()/took) + " busy"})
	}
	kinds := map[plan.Tier]picture.Kind{plan.VRAM: picture.Resident, plan.Host: picture.FromHost, plan.Disk: picture.FromDisk, bench.NoWeights: picture.NoWeights}
	for i, s := range t.Spans {
		chart.Bars = append(chart.Bars, picture.Bar{Row: string(s.Lane), Track: s.Track, Kind: kinds[t.Tiers[i]], Begin: s.Begin - t.Begin, End: s.End - t.Begin})
	}
	return picture.Timeline(w, chart)
}

func (r *bencher) writeTrace(w io.Writer) error {
	if r.picked == nil {
		return errNoTrace
	}
	return trace.WritePerfetto(w, "leat: "+r.title(), r.picked.Spans)
}

// drawExperts draws those that the first configuration used.
func (r *bencher) drawExperts(w io.Writer) error {
	for i := range r.report.Configurations {
		if uses := r.report.Configurations[i].Uses; len(uses) > 0 {
			return picture.Experts(w, picture.ExpertChart{Title: "Experts that " + r.title() + " used", Uses: uses})
		}
	}
	return errors.New("no expert was used")
}
