package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// line is a row of a device's table, with the report that it comes from.
type line struct {
	report *report
	config *configuration
	row    *row
}

// key is what a newer row must share with an older one to replace it.
func (l *line) key() string {
	return strings.Join([]string{l.model(), l.report.Model.Quantization, l.where(), l.row.Test, l.report.flags()}, "|")
}

func (l *line) model() string { return strings.TrimSuffix(l.report.Model.Name, ".gguf") }

// where is the budgets that the model had.
func (l *line) where() string {
	c := l.config
	text := size(c.VRAMBytes)
	if c.VRAMBytes == 0 {
		text = "all in VRAM"
		if c.Plan.StreamedBytes > 0 || c.Plan.ExpertSlots > 0 {
			text = "free VRAM"
		}
	}
	if c.RAMBytes > 0 {
		text += ", RAM " + size(c.RAMBytes)
	}
	if c.Emulated != nil {
		text += ", emulated " + c.Emulated.Tier
	}
	return text
}

// streamed is what a token brings to the GPU. With experts in slots it depends on the text, so the plan does not say it.
func (l *line) streamed() string {
	p := &l.config.Plan
	if p.StreamedBytes == 0 || p.ExpertSlots > 0 {
		return ""
	}
	return size(p.StreamedBytes)
}

func (l *line) test() string {
	if flags := l.report.flags(); flags != "" {
		return l.row.Test + " `" + flags + "`"
	}
	return l.row.Test
}

func (l *line) speed() string {
	s := &l.row.Speed
	if s.Min.String() == s.Max.String() {
		return s.Median.String()
	}
	return fmt.Sprintf("%s (%s..%s)", s.Median, s.Min, s.Max)
}

func (l *line) predicted() string {
	p := l.row.Predicted
	if p.value() == 0 {
		return ""
	}
	difference := l.row.Speed.Median.value()/p.value() - 1
	if d := l.row.Difference; d != nil {
		difference = *d
	}
	text := fmt.Sprintf("%s (%s)", p, change(difference))
	if l.row.PredictedHits != nil {
		text += " at " + percent(*l.row.PredictedHits) + " hits"
	}
	return text
}

// bottleneck names the busiest lane: a link or disk with its rate and its share of what it does alone, kernels with their share of the time.
func (l *line) bottleneck() string {
	x := l.row
	of := map[string]*lane{"disk": &x.Disk, "link": &x.Link, "compute": &x.VRAM}[x.Bottleneck]
	text := x.Bottleneck
	switch {
	case of == nil:
		return ""
	case x.Bottleneck == "compute" && of.BusyShare > 0:
		return text + " " + percent(of.BusyShare)
	case x.Bottleneck == "compute":
		return text
	}
	if of.BytesPerSec > 0 {
		text += " " + rounded(of.BytesPerSec/1e9) + " GB/s"
	}
	if of.ShareOfCeiling > 0 {
		text += ", " + percent(of.ShareOfCeiling)
	}
	return text
}

// shownElsewhere are flags of leat bench that a column shows or that change no figure, with the number of words after each.
var shownElsewhere = map[string]int{
	"-p": 1, "-n": 1, "-d": 1, "-r": 1, "-c": 1, "--limit": 1, "--vram": 1, "--ram": 1, "--tier": 1, "--device": 1, "--svg": 1, "--timeline": 1, "--trace": 1,
	"--md": 0, "--json": 0, "--csv": 0, "--again": 0, "--emulate-bandwidth": 0,
}

// flags are those of the command that the figures depend on and no column shows, with their values.
func (r *report) flags() string {
	var out []string
	ours := false // the last flag is one of those
	for words := r.Command[min(2, len(r.Command)):]; len(words) > 0; words = words[1:] {
		name, _, hasValue := strings.Cut(words[0], "=")
		if n, ok := shownElsewhere[name]; ok {
			if ours = false; !hasValue {
				words = words[min(n, len(words)-1):]
			}
			continue
		}
		if ours = ours || strings.HasPrefix(name, "-"); ours { // other words are the model
			out = append(out, words[0])
		}
	}
	return strings.Join(out, " ")
}

// command is the command line after "leat bench", without the form of the output.
func (r *report) command() string {
	words := slices.Clone(r.Command[min(2, len(r.Command)):])
	return strings.Join(slices.DeleteFunc(words, func(word string) bool {
		return word == "--md" || word == "--json" || word == "--csv"
	}), " ")
}

// repeated is how many runs the command asks for.
func (r *report) repeated() int {
	n := 3
	if i := slices.Index(r.Command, "-r"); i >= 0 && i+1 < len(r.Command) {
		fmt.Sscan(r.Command[i+1], &n)
	}
	return n
}

// current are the newest rows of the reports, in the order of the table. Of two with the same date the later file's counts.
func current(reports []*report) []*line {
	newest := map[string]*line{}
	for _, r := range reports {
		for i := range r.Configurations {
			c := &r.Configurations[i]
			for k := range c.Rows {
				l := &line{r, c, &c.Rows[k]}
				if old := newest[l.key()]; old == nil || old.report.Started <= r.Started {
					newest[l.key()] = l
				}
			}
		}
	}
	var lines []*line
	for _, l := range newest {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b *line) int {
		return cmp.Or(
			cmp.Compare(a.report.Model.Bytes, b.report.Model.Bytes),
			strings.Compare(a.model(), b.model()),
			strings.Compare(a.report.flags(), b.report.flags()),
			cmp.Compare(a.budget(), b.budget()),
			cmp.Compare(a.ram(), b.ram()),
			cmp.Compare(a.row.Generated, b.row.Generated), // prompts first
			cmp.Compare(a.row.Depth, b.row.Depth),
			cmp.Compare(a.row.Prompt, b.row.Prompt),
			strings.Compare(a.key(), b.key()),
		)
	})
	return lines
}

// budget and ram order rows from most memory to least.
func (l *line) budget() int64 { return -unlimited(l.config.VRAMBytes) }
func (l *line) ram() int64    { return -unlimited(l.config.RAMBytes) }

func unlimited(bytes int64) int64 {
	if bytes == 0 {
		return 1 << 62
	}
	return bytes
}

// deviceTable is a device's table and the list of runs that its last column numbers.
func deviceTable(reports []*report) string {
	lines := current(reports)
	var runs []*report
	var last [2]string // model and quantisation of the line above
	var table, list strings.Builder
	for _, l := range lines {
		n := slices.Index(runs, l.report) + 1
		if n == 0 {
			runs = append(runs, l.report)
			n = len(runs)
		}
		model := [2]string{l.model(), l.report.Model.Quantization}
		if model == last {
			model = [2]string{}
		} else {
			last = model
		}
		writeRow(&table, model[0], model[1], l.where(), l.streamed(), l.test(), l.speed(), l.predicted(), l.bottleneck(), fmt.Sprint(n))
	}
	d := runs[0].Device
	for i, r := range runs {
		fmt.Fprintf(&list, "%d. %s `%s`", i+1, r.Started[:len("2006-01-02")], r.command())
		if r.Settings.Repetitions != r.repeated() {
			fmt.Fprintf(&list, ", %d runs", r.Settings.Repetitions)
		}
		if r.Leat.Commit != "" {
			fmt.Fprintf(&list, ", commit %.7s", r.Leat.Commit)
		}
		if r.Device.DriverInfo != d.DriverInfo {
			fmt.Fprintf(&list, ", driver %s", r.Device.DriverInfo)
		}
		list.WriteString("\n")
	}
	return fmt.Sprintf("%s, driver %s.\n\n| model | quant | where | streamed | test | tok/s (range) | predicted | bottleneck | run |\n|---|---|---|---:|---|---:|---:|---|---:|\n%s\nRuns, each `leat bench` with:\n\n%s",
		d.Name, d.DriverInfo, &table, &list)
}

// table is what each speed-up wins, of the means of its runs.
func (s *speedUps) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, driver %s, %s.\n\n| speed-up | model | where | with | without | wins |\n|---|---|---|---:|---:|---:|\n", s.Device.Name, s.Device.DriverInfo, s.Started[:len("2006-01-02")])
	for i, u := range s.SpeedUps {
		name := u.Name
		if i > 0 && name == s.SpeedUps[i-1].Name {
			name = ""
		}
		writeRow(&out, name, u.Model, u.Where, joined(u.With), joined(u.Without), change(mean(u.With)/mean(u.Without)-1))
	}
	return out.String()
}

// writeRow writes a row of a table. A vertical bar in a cell is escaped.
func writeRow(out *strings.Builder, cells ...string) {
	for _, cell := range cells {
		out.WriteString(strings.TrimRight("| "+strings.ReplaceAll(cell, "|", "\\|"), " ") + " ")
	}
	out.WriteString("|\n")
}

func joined(values []float64) string {
	var out []string
	for _, v := range values {
		out = append(out, rounded(v))
	}
	return strings.Join(out, ", ")
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}
