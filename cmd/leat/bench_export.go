package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"leat/internal/bench"
)

// printMarkdown is a table to be pasted, every row whole in itself.
func (r *benchReport) printMarkdown(w io.Writer) {
	before := []benchColumn{
		{head: "model", left: true, cell: func(*benchConfig, *bench.Row) string { return r.Model.Name + " " + r.Model.Quantization }},
		{head: "size", cell: func(*benchConfig, *bench.Row) string { return formatSize(r.Model.Bytes) }},
		{head: "device", left: true, cell: func(c *benchConfig, _ *bench.Row) string {
			if c.Emulated != nil {
				return fmt.Sprintf("%s (emulated on %s)", c.Emulated.Tier, r.Device.Name)
			}
			return r.Device.Name
		}},
		{head: "VRAM", cell: func(c *benchConfig, _ *bench.Row) string { return formatSize(c.Plan.VRAMBudget) }},
		{head: "streamed", cell: func(c *benchConfig, _ *bench.Row) string { return formatSize(c.Plan.StreamedBytes) }},
	}
	columns := append(before, r.columns(benchColumns)...)
	for i := range columns {
		fmt.Fprintf(w, "| %s ", columns[i].head)
	}
	fmt.Fprint(w, "|\n")
	for i := range columns {
		fmt.Fprint(w, map[bool]string{true: "|---", false: "|---:"}[columns[i].left])
	}
	fmt.Fprint(w, "|\n")
	for i := range r.Configurations {
		c := &r.Configurations[i]
		for k := range c.Rows {
			for _, col := range columns {
				fmt.Fprintf(w, "| %s ", strings.ReplaceAll(col.cell(c, &c.Rows[k]), "|", "\\|"))
			}
			fmt.Fprint(w, "|\n")
		}
	}
	fmt.Fprintf(w, "\n%s; %s %s; %s; `%s`\n", r.Leat, r.Device.Driver, r.Device.DriverInfo, r.runs(), commandText(r.Command))
	for _, n := range r.allNotes() {
		fmt.Fprintf(w, "\n- %s", n)
	}
	if len(r.allNotes()) > 0 {
		fmt.Fprintln(w)
	}
}

// runs says what the figures are of.
func (r *benchReport) runs() string {
	if r.Settings.Repetitions == 1 {
		return "one run each"
	}
	return fmt.Sprintf("medians of %d runs, of fewer where a note says so", r.Settings.Repetitions)
}

// allNotes are the report's and the configurations'.
func (r *benchReport) allNotes() []string {
	list := append([]string(nil), r.Notes...)
	for i := range r.Configurations {
		c := &r.Configurations[i]
		for _, n := range c.Notes {
			list = append(list, c.name()+": "+n)
		}
		if c.Error != "" {
			list = append(list, c.name()+": "+c.Error)
		}
	}
	return list
}

// commandText is a command line that a shell reads back.
func commandText(words []string) string {
	var out []string
	for _, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$&|;<>()*?`#~") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// csvFields are the columns of --csv: flat, in bytes and seconds.
var csvFields = []struct {
	name string
	of   func(*benchReport, *benchConfig, *bench.Row) any
}{
	{"leat", func(r *benchReport, _ *benchConfig, _ *bench.Row) any {
		return strings.TrimSpace(r.Leat.Version + " " + r.Leat.Commit)
	}},
	{"started", func(r *benchReport, _ *benchConfig, _ *bench.Row) any {
		return r.Started.Format("2006-01-02T15:04:05Z")
	}},
	{"device", func(r *benchReport, _ *benchConfig, _ *bench.Row) any { return r.Device.Name }},
	{"driver", func(r *benchReport, _ *benchConfig, _ *bench.Row) any {
		return r.Device.Driver + " " + r.Device.DriverInfo
	}},
	{"emulated", func(_ *benchReport, c *benchConfig, _ *bench.Row) any {
		if c.Emulated == nil {
			return ""
		}
		return c.Emulated.Tier
	}},
	{"model", func(r *benchReport, _ *benchConfig, _ *bench.Row) any { return r.Model.Name }},
	{"quantization", func(r *benchReport, _ *benchConfig, _ *bench.Row) any { return r.Model.Quantization }},
	{"model_bytes", func(r *benchReport, _ *benchConfig, _ *bench.Row) any { return r.Model.Bytes }},
	{"vram_budget_bytes", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Plan.VRAMBudget }},
	{"vram_peak_bytes", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Memory.VRAMPeak }},
	{"pinned_ram_bytes", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Memory.Pinned }},
	{"rss_peak_bytes", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Memory.RSS }},
	{"streamed_bytes_per_token", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Plan.StreamedBytes }},
	{"disk_bytes_per_token", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Plan.DiskBytes }},
	{"load_seconds", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Load.Seconds }},
	{"cold_ttft_seconds", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Load.ColdTTFTSeconds }},
	{"warm_ttft_seconds", func(_ *benchReport, c *benchConfig, _ *bench.Row) any { return c.Load.WarmTTFTSeconds }},
	{"test", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Test }},
	{"prompt_tokens", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Prompt }},
	{"generated_tokens", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Generate }},
	{"depth", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Depth }},
	{"repetitions", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return len(x.Seconds) }},
	{"tokens_per_second", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.PerSec.Median }},
	{"tokens_per_second_min", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.PerSec.Min }},
	{"tokens_per_second_max", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.PerSec.Max }},
	{"tokens_per_second_mad", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.PerSec.MAD }},
	{"predicted_tokens_per_second", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Predicted }},
	{"disk_bytes_per_second", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Disk.BytesPerSec }},
	{"disk_share_of_ceiling", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Disk.Share }},
	{"link_bytes_per_second", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Link.BytesPerSec }},
	{"link_share_of_ceiling", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Link.Share }},
	{"vram_bytes_per_second", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.VRAM.BytesPerSec }},
	{"vram_share_of_ceiling", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.VRAM.Share }},
	{"bottleneck", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.Bottleneck }},
	{"overlap", func(_ *benchReport, _ *benchConfig, x *bench.Row) any {
		if x.Overlap == nil {
			return ""
		}
		return *x.Overlap
	}},
	{"cpu_of_one_core", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.CPUOfCore }},
	{"temp_c", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.TempC }},
	{"joules_per_token", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.JoulePer }},
	{"rest_share", func(_ *benchReport, _ *benchConfig, x *bench.Row) any { return x.RestShare }},
}

func (r *benchReport) printCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	var cells []string
	for _, f := range csvFields {
		cells = append(cells, f.name)
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for i := range r.Configurations {
		c := &r.Configurations[i]
		for k := range c.Rows {
			cells = cells[:0]
			for _, f := range csvFields {
				v := f.of(r, c, &c.Rows[k])
				if x, ok := v.(float64); ok {
					v = strconv.FormatFloat(x, 'g', 6, 64)
				}
				cells = append(cells, fmt.Sprint(v))
			}
			if err := out.Write(cells); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// print writes the report in the form that was asked for.
func (r *bencher) print() error {
	rep, w := &r.report, r.a.out
	switch {
	case r.f.json:
		return r.a.printJSON(rep)
	case !rep.has(func(*bench.Row) bool { return true }):
		return nil // the error says it all
	case r.f.csv:
		return rep.printCSV(w)
	case r.f.md:
		rep.printMarkdown(w)
	default:
		rep.print(w)
	}
	return nil
}
