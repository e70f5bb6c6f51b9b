package examples

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// results is docs/results/figures.json: every figure that the pages state, and where it comes from.
type results struct {
	Measured []struct {
		// Source is the file that has the figures: a result of leat bench below docs/results, which has device, date, model and command
		// too, or another. None: a command of the page, whose output TestCommands compares.
		Source                string
		Device, Date, Section string // of other sources
		Figures               []figure
	}
	Given []struct{ Page, Shown, What string } // not measured: budgets and such
}

type figure struct {
	Page, Shown                   string // as the page rounds it, with its unit
	At                            string // where a result of leat bench has it, a JSON pointer (RFC 6901)
	Measured                      string // as another source has it
	Model, Quant, Counts, Command string
}

var (
	number   = `\d+(?: \d{3})*(?:\.\d+)?`
	stated   = regexp.MustCompile(`(?:^|[^\w.])(` + number + `) (?:to (` + number + `) )?(tok/s|[kMGT]?B/s|[KMGT]iB|[kMGT]B|ms|µs|s|%|times)(?:[^\w/]|$)`)
	inCell   = regexp.MustCompile(`(` + number + `)(?: tokens)?`)
	fastPart = "## How fast\n"
)

// figuresIn are the numbers of a page that have a unit of speed, size, time or share, and those of the table of speeds.
func figuresIn(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range stated.FindAllStringSubmatch(strings.ReplaceAll(text, "|", " | "), -1) {
		for _, n := range m[1:3] {
			if n != "" {
				found[n+" "+m[3]] = true
			}
		}
	}
	_, fast, _ := strings.Cut(text, fastPart)
	fast, _, _ = strings.Cut(fast, "\n## ")
	for line := range strings.Lines(fast) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.Contains(line, "prompt of") || strings.HasPrefix(line, "|---") {
			continue
		}
		for _, cell := range cells[3:] {
			for _, m := range inCell.FindAllStringSubmatch(cell, -1) {
				if !strings.HasSuffix(m[0], " tokens") {
					found[strings.TrimSpace(m[1])+" tok/s"] = true
				}
			}
		}
	}
	return found
}

func TestFiguresIn(t *testing.T) {
	found := figuresIn("1.5 GiB at 99 to 100 %, 3 s.\n## How fast\n\n| | | prompt of 512 |\n|---|---|---:|\n| 8B | in 6 GiB | 14 880; 340 behind 8192 tokens | |\n")
	for _, want := range []string{"1.5 GiB", "99 %", "100 %", "3 s", "6 GiB", "14 880 tok/s", "340 tok/s"} {
		if !found[want] {
			t.Errorf("%q is not among %v", want, found)
		}
	}
	if len(found) != 7 {
		t.Errorf("found %v, want 7", found)
	}
}

// Every figure of the pages stands in the results, as measured but for rounding, and each result is on its page.
func TestFigures(t *testing.T) {
	var r results
	if err := json.Unmarshal([]byte(read(t, "docs/results/figures.json")), &r); err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	for _, page := range pages {
		known[page] = map[string]bool{}
	}
	for _, run := range r.Measured {
		for _, f := range run.Figures {
			known[f.Page][f.Shown] = true
			if f.At != "" {
				if measured := f.inResult(t, run.Source); !rounds(measured, f.Shown) {
					t.Errorf("%s shows %s, %s has %s", f.Page, f.Shown, run.Source, measured)
				}
				continue
			}
			if run.Device == "" || run.Date == "" || f.Counts == "" || f.Command == "" || (f.Model == "") != (f.Quant == "") {
				t.Errorf("%s in %s lacks its device, date, counts, command or model", f.Shown, f.Page)
			}
			if !rounds(f.Measured, f.Shown) {
				t.Errorf("%s shows %s, measured was %s", f.Page, f.Shown, f.Measured)
			}
			source := f.Page
			if run.Source != "" {
				source = run.Source
			}
			f.standsIn(t, source, run.Section)
		}
	}
	for _, g := range r.Given {
		if known[g.Page][g.Shown] {
			t.Errorf("%s: %s is measured and given", g.Page, g.Shown)
		}
		known[g.Page][g.Shown] = true
	}
	for _, page := range pages {
		found := figuresIn(read(t, page))
		for f := range found {
			if !known[page][f] {
				t.Errorf("%s: %s stands in no result", page, f)
			}
		}
		for f := range known[page] {
			if !found[f] {
				t.Errorf("%s does not show %s, a result says", page, f)
			}
		}
	}
}

// perUnit is how much of a result's unit one of a page's units is.
var perUnit = map[string]float64{"tok/s": 1, "times": 1, "s": 1, "ms": 1e-3, "%": 0.01, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB/s": 1e6, "GB/s": 1e9}

// inResult is what a result of leat bench has at the figure's place, in the unit of the page.
func (f figure) inResult(t *testing.T, source string) string {
	var value any
	if err := json.Unmarshal([]byte(read(t, source)), &value); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	for _, key := range strings.Split(f.At, "/")[1:] {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				t.Fatalf("%s has no %s", source, f.At)
			}
			value = v[i]
		default:
			t.Fatalf("%s has no %s", source, f.At)
		}
	}
	number, ok := value.(float64)
	unit := perUnit[f.Shown[strings.LastIndex(f.Shown, " ")+1:]]
	if !ok || unit == 0 {
		t.Fatalf("%s has %v at %s, want a number for %s", source, value, f.At, f.Shown)
	}
	return strconv.FormatFloat(number/unit, 'f', -1, 64)
}

// standsIn checks that the source has what was measured, and in docs/benchmarks.md the command in the same section.
func (f figure) standsIn(t *testing.T, source, section string) {
	text := read(t, source)
	if section != "" {
		_, rest, ok := strings.Cut(text, "\n## "+section+"\n")
		if !ok {
			t.Errorf("%s has no section %q", source, section)
		}
		text, _, _ = strings.Cut(rest, "\n## ")
	}
	if !regexp.MustCompile(`(?:^|[^\d.])` + regexp.QuoteMeta(f.Measured) + `(?:[^\d]|$)`).MatchString(text) {
		t.Errorf("%s, %q: no figure %s, for the %s of %s", source, section, f.Measured, f.Shown, f.Page)
	}
	if strings.HasSuffix(source, ".md") && !strings.Contains(text, f.Command) {
		t.Errorf("%s, %q: no command %q, for the %s of %s", source, section, f.Command, f.Shown, f.Page)
	}
}

// rounds: shown is measured in fewer digits.
func rounds(measured, shown string) bool {
	shown = shown[:strings.LastIndex(shown, " ")]
	digits := strings.ReplaceAll(shown, " ", "")
	var unit float64 // of the last digit that counts
	if _, decimals, ok := strings.Cut(digits, "."); ok {
		unit = math.Pow10(-len(decimals))
	} else {
		unit = math.Pow10(len(digits) - len(strings.TrimRight(digits, "0")))
	}
	a, errA := strconv.ParseFloat(digits, 64)
	b, errB := strconv.ParseFloat(strings.ReplaceAll(measured, " ", ""), 64)
	return errA == nil && errB == nil && math.Abs(a-b) <= unit/2*1.0001 && math.Abs(a-b) <= 0.05*b
}

// The demo is as large as the pages say.
func TestDemoSize(t *testing.T) {
	info, err := os.Stat(model(t))
	if err != nil {
		t.Fatal(err)
	}
	if size := strconv.FormatFloat(float64(info.Size())/(1<<20), 'f', 1, 64) + " MiB"; !figuresIn(read(t, "README.md"))[size] {
		t.Errorf("the README does not say that the demo takes %s", size)
	}
}
