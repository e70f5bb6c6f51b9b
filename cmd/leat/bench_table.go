package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"leat/internal/bench"
	"leat/internal/predict"
)

// benchColumn is a column of the tables for people.
type benchColumn struct {
	head string
	left bool                    // text, not a number
	show func(*benchReport) bool // nil: always
	cell func(*benchConfig, *bench.Row) string
}

// benchColumns are those of the text table; Markdown has some before them.
var benchColumns = []benchColumn{
	{head: "test", left: true, cell: func(c *benchConfig, r *bench.Row) string {
		if c.Emulated != nil {
			return r.Test + " emulated"
		}
		return r.Test
	}},
	{head: "tok/s", cell: func(_ *benchConfig, r *bench.Row) string { return formatSpeed(r.PerSec.Median) }},
	{head: "min..max", cell: func(_ *benchConfig, r *bench.Row) string {
		return formatSpeed(r.PerSec.Min) + ".." + formatSpeed(r.PerSec.Max)
	}},
	{head: "predicted", show: anyRow(func(r *bench.Row) bool { return r.Predicted > 0 }), cell: func(_ *benchConfig, r *bench.Row) string {
		if r.Predicted == 0 {
			return ""
		}
		text := fmt.Sprintf("%s (%s)", formatSpeed(r.Predicted), strings.ReplaceAll(formatChange(r.Difference), " ", ""))
		if r.PredictedHit != nil { // not the plan's, which can't know it
			text += fmt.Sprintf(" at %s hits", percent(*r.PredictedHit))
		}
		return text
	}},
	{head: "disk", show: anyRow(func(r *bench.Row) bool { return r.Disk.Bytes > 0 }), cell: laneCell(func(r *bench.Row) bench.Lane { return r.Disk })},
	{head: "link", show: anyRow(func(r *bench.Row) bool { return r.Link.Bytes > 0 }), cell: laneCell(func(r *bench.Row) bench.Lane { return r.Link })},
	{head: "VRAM reads", show: anyRow(func(r *bench.Row) bool { return r.VRAM.Bytes > 0 }), cell: laneCell(func(r *bench.Row) bench.Lane { return r.VRAM })},
	{head: "bottleneck", show: anyRow(func(r *bench.Row) bool { return r.Bottleneck != "" }), cell: func(_ *benchConfig, r *bench.Row) string {
		busy := map[predict.Lane]float64{predict.LaneDisk: r.Disk.Busy, predict.LaneLink: r.Link.Busy, predict.LaneCompute: r.VRAM.Busy}
		return fmt.Sprintf("%s %s", r.Bottleneck, percent(busy[r.Bottleneck]))
	}},
	{head: "overlap", show: anyRow(func(r *bench.Row) bool { return r.Overlap != nil }), cell: func(_ *benchConfig, r *bench.Row) string {
		if r.Overlap == nil {
			return ""
		}
		return percent(*r.Overlap)
	}},
	{head: "CPU", cell: func(_ *benchConfig, r *bench.Row) string { return percent(r.CPUOfCore) }},
	{head: "°C", show: anyRow(func(r *bench.Row) bool { return r.TempC > 0 }), cell: func(_ *benchConfig, r *bench.Row) string { return fmt.Sprintf("%.0f", r.TempC) }},
	{head: "J/token", show: anyRow(func(r *bench.Row) bool { return r.JoulePer > 0 }), cell: func(_ *benchConfig, r *bench.Row) string { return fmt.Sprintf("%.3g", r.JoulePer) }},
	{head: "rests", show: anyRow(func(r *bench.Row) bool { return r.RestShare > 0 }), cell: func(_ *benchConfig, r *bench.Row) string { return percent(r.RestShare) }},
}

func anyRow(f func(*bench.Row) bool) func(*benchReport) bool {
	return func(r *benchReport) bool { return r.has(f) }
}

// laneCell is "49.90 GB/s (98%)": what flowed, and its part of the ceiling.
func laneCell(of func(*bench.Row) bench.Lane) func(*benchConfig, *bench.Row) string {
	return func(_ *benchConfig, r *bench.Row) string {
		l := of(r)
		switch {
		case l.Bytes == 0:
			return ""
		case l.Share == 0:
			return formatRate(l.BytesPerSec)
		}
		return fmt.Sprintf("%s (%s)", formatRate(l.BytesPerSec), percent(l.Share))
	}
}

func (r *benchReport) columns(all []benchColumn) (list []benchColumn) {
	for _, c := range all {
		if c.show == nil || c.show(r) {
			list = append(list, c)
		}
	}
	return list
}

// print writes the report as a person reads it.
func (r *benchReport) print(w io.Writer) {
	m, d, c := &r.Model, &r.Device, &r.Ceilings
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-9s"+format+"\n", append([]any{label}, args...)...)
	}
	line("model", "%s: %s %s, %s, %s parameters, %d layers", m.Name, m.Architecture, m.Quantization, formatSize(m.Bytes), countText(m.Parameters), m.Layers)
	line("device", "%s, %s %s", d.Name, d.Driver, d.DriverInfo)
	if c.Link > 0 {
		disk := "disk not known"
		if c.Disk > 0 {
			disk = "disk " + formatDisk(c.Disk, c.DiskFirst)
		}
		line("ceilings", "%s, link %s, weights in VRAM %s", disk, formatRate(c.Link), formatRate(c.VRAM))
	}
	columns := r.columns(benchColumns)
	for i := range r.Configurations {
		fmt.Fprintln(w)
		r.Configurations[i].print(w, columns)
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if r.Interrupted {
		fmt.Fprintln(w, "note: interrupted; this is what was measured until then")
	}
}

func (c *benchConfig) print(w io.Writer, columns []benchColumn) {
	p, mem, l := &c.Plan, &c.Memory, &c.Load
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "%-9s"+format+"\n", append([]any{label}, args...)...)
	}
	if c.Emulated != nil {
		line("as on", "%v", c.Emulated)
	}
	if len(c.Rows) == 0 {
		line("VRAM", "%s: %s", c.name(), c.Error)
		return
	}
	line("VRAM", "%s of %s: %d of %d units stay, ring %s, context of %d tokens %s", formatSize(mem.VRAMPeak), formatSize(p.VRAMBudget), p.ResidentUnits, p.Units(), formatSize(p.RingBytes), p.Context, formatSize(p.KVBytes))
	ram := formatSize(mem.Pinned) + " pinned"
	if mem.RSS > 0 {
		ram += fmt.Sprintf(", process %s at most", formatSize(mem.RSS))
	}
	line("RAM", "%s", ram)
	if p.StreamedBytes > 0 {
		line("streamed", "%s a token, %s of it from disk", formatSize(p.StreamedBytes), formatSize(p.DiskBytes))
	}
	if p.Experts > 0 {
		line("experts", "%d slots of VRAM for %d, of which %d rest in RAM", p.ExpertSlots, p.Experts, p.ExpertsInRAM)
	}
	text := fmt.Sprintf("%s; first token after %s (%d %s, cold)", seconds(l.Seconds), seconds(l.ColdTTFTSeconds), l.ColdPrompt, plural(l.ColdPrompt, "token"))
	if l.WarmPrompt > 0 {
		text += fmt.Sprintf(", %s (%d %s, warm)", seconds(l.WarmTTFTSeconds), l.WarmPrompt, plural(l.WarmPrompt, "token"))
	}
	line("load", "%s", text)
	fmt.Fprintln(w)
	printTable(w, columns, c)
	for i := range c.Rows {
		if x := c.Rows[i].Experts; x != nil {
			for _, text := range []string{expertsFound(x), expertsTook(x), expertsDistinct(x)} {
				fmt.Fprintf(w, "%s: %s\n", c.Rows[i].Test, text)
			}
		}
	}
	for i := range c.Rows {
		printOps(w, &c.Rows[i])
	}
	for _, n := range c.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	if c.Error != "" {
		fmt.Fprintf(w, "note: not all was measured: %s\n", c.Error)
	}
}

// printTable pads to the widest cell.
func printTable(w io.Writer, columns []benchColumn, c *benchConfig) {
	lines := make([][]string, 1, 1+len(c.Rows))
	for _, col := range columns {
		lines[0] = append(lines[0], col.head)
	}
	for i := range c.Rows {
		var cells []string
		for _, col := range columns {
			cells = append(cells, col.cell(c, &c.Rows[i]))
		}
		lines = append(lines, cells)
	}
	for _, cells := range lines {
		var text strings.Builder
		for i, cell := range cells {
			width := 0
			for _, other := range lines {
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			if i > 0 {
				text.WriteString("  ")
			}
			if columns[i].left {
				text.WriteString(cell + pad)
			} else {
				text.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(text.String(), " "))
	}
}

// countText is 8.0 B, 70.6 B, 4.2 M.
func countText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	}
	return strconv.FormatInt(n, 10)
}
