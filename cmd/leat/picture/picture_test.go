package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// element is what an SVG holds: a path with its fill, or a text.
type element struct {
	name  string // path, text
	style string
	data  string // of a path
	text  string
}

// parse reads an SVG as a browser does: it must be well-formed.
func parse(t *testing.T, svg []byte) (list []element) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			var el element
			el.name = e.Name.Local
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "style":
					el.style = a.Value
				case "d":
					el.data = a.Value
				}
			}
			list = append(list, el)
		case xml.CharData:
			if n := len(list); n > 0 && list[n-1].name == "text" {
				list[n-1].text += string(e)
			}
		}
	}
}

func texts(list []element) (all []string) {
	for _, e := range list {
		if e.name == "text" {
			all = append(all, strings.TrimSpace(e.text))
		}
	}
	return all
}

// box is a rectangle of a colour.
type box struct{ left, right, bottom, top float64 }

func boxes(t *testing.T, list []element, color string) (found []box) {
	t.Helper()
	for _, e := range list {
		if e.name != "path" || !strings.Contains(e.style, "fill:"+color) {
			continue
		}
		b := box{1e9, -1e9, 1e9, -1e9}
		for _, pair := range strings.FieldsFunc(e.data, func(r rune) bool { return r == 'M' || r == 'L' || r == 'Z' }) {
			xs, ys, _ := strings.Cut(pair, ",")
			x, err := strconv.ParseFloat(xs, 64)
			if err != nil {
				t.Fatalf("path %q: %v", e.data, err)
			}
			y, err := strconv.ParseFloat(ys, 64)
			if err != nil {
				t.Fatalf("path %q: %v", e.data, err)
			}
			b = box{min(b.left, x), max(b.right, x), min(b.bottom, y), max(b.top, y)}
		}
		found = append(found, b)
	}
	return found
}

func show(t *testing.T, name string, svg []byte) {
	if dir := os.Getenv("LEAT_PICTURES"); dir != "" { // to look at them
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const ms = time.Millisecond

func TestTimeline(t *testing.T) {
	c := TimelineChart{
		Title: "One token", Span: 100 * ms,
		Rows: []Row{{"disk", "30 % busy"}, {"link", "80 % busy"}, {"compute", "50 % busy"}},
		Bars: []Bar{
			{"disk", 0, FromDisk, 0, 30 * ms}, {"disk", 1, FromDisk, 10 * ms, 40 * ms},
			{"link", 0, FromHost, -10 * ms, 20 * ms}, // begins before: cut
			{"link", 0, FromDisk, 40 * ms, 110 * ms},
			{"compute", 0, Resident, 0, 25 * ms}, {"compute", 0, FromHost, 25 * ms, 50 * ms},
			{"compute", 0, Resident, 60 * ms, 60*ms + 1}, // a moment: still to be seen
			{"compute", 0, Resident, 120 * ms, 130 * ms}, // outside
			{"compute", 0, NoWeights, 99 * ms, 100 * ms}, //
		},
	}
	var svg bytes.Buffer
	if err := Timeline(&svg, c); err != nil {
		t.Fatal(err)
	}
	show(t, "timeline.svg", svg.Bytes())
	list := parse(t, svg.Bytes())
	all := strings.Join(texts(list), "|")
	for _, want := range []string{"One token", "disk", "30 % busy", "link", "compute", "milliseconds", "100", "units that stay in VRAM", "streamed from RAM", "streamed from disk", "no weights"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q: %s", want, all)
		}
	}
	// Of each colour: its legend first, or last, as wide as high, then the bars.
	green, blue, orange := boxes(t, list, "#009E73"), boxes(t, list, "#0072B2"), boxes(t, list, "#D55E00")
	if len(green) != 3 || len(blue) != 3 || len(orange) != 4 {
		t.Fatalf("%d green, %d blue, %d orange boxes; wanted 3, 3, 4", len(green), len(blue), len(orange))
	}
	perMS := (blue[1].right - green[0].left) / 50 // the kernels of the streamed unit end there
	near := func(what string, got, want float64) {
		t.Helper()
		if d := got - want; d < -1 || d > 1 {
			t.Errorf("%s: found %.1f, wanted %.1f points", what, got, want)
		}
	}
	left := green[0].left
	near("the upload that began before is cut", blue[0].left, left)
	near("and is 20 ms long", blue[0].right-blue[0].left, 20*perMS)
	near("the last upload is cut at the end", orange[2].right, green[0].left+100*perMS)
	near("the second read begins at 10 ms", orange[1].left, left+10*perMS)
	if w := green[1].right - green[1].left; w <= 0 {
		t.Errorf("a moment is %.2f points wide", w)
	}
	if !(orange[0].bottom >= orange[1].top) || !(orange[1].bottom > blue[0].top) || !(blue[0].bottom > blue[1].top) {
		t.Errorf("rows and tracks lie upon each other: %v %v %v %v", orange[0], orange[1], blue[0], blue[1])
	}
	if err := Timeline(io.Discard, TimelineChart{Title: "x"}); err == nil {
		t.Error("no time: no error")
	}
}

func TestSpeeds(t *testing.T) {
	const gib = 1 << 30
	c := SpeedChart{Title: "70b.gguf Q4_K_M on a GPU", Series: []Series{{Name: "tg128",
		Measured:  []Point{{6 * gib, 1.37, 1.35, 1.38}, {12 * gib, 1.6, 1.2, 1.9}, {24 * gib, 2.84, 2.84, 2.84}},
		Predicted: []Point{{4 * gib, 1.2, 0, 0}, {12 * gib, 1.55, 0, 0}, {24 * gib, 2.8, 0, 0}, {40 * gib, 20, 0, 0}},
	}, {Name: "tg128@d8192", Measured: []Point{{6 * gib, 1.1, 1, 1.2}, {24 * gib, 2.1, 2, 2.2}}}}}
	var svg bytes.Buffer
	if err := Speeds(&svg, c); err != nil {
		t.Fatal(err)
	}
	show(t, "speeds.svg", svg.Bytes())
	list := parse(t, svg.Bytes())
	all := strings.Join(texts(list), "|")
	for _, want := range []string{"70b.gguf Q4_K_M", "VRAM budget, GiB", "tokens per second", "tg128, measured", "tg128, predicted", "tg128@d8192, measured"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q: %s", want, all)
		}
	}
	if strings.Contains(all, "tg128@d8192, predicted") {
		t.Error("a curve that isn't there has a legend")
	}
	dotsOf := func(color string) (n int) {
		for _, e := range list {
			if e.name == "path" && strings.Contains(e.style, "fill:"+color) && strings.Contains(e.data, "A") {
				n++
			}
		}
		return n
	}
	if a, b := dotsOf("#0072B2"), dotsOf("#D55E00"); a != 4 || b != 3 { // one of each is the legend's
		t.Errorf("%d and %d dots, wanted 3 and 2 beside the legends'", a, b)
	}
	if err := Speeds(io.Discard, SpeedChart{Title: "none"}); err == nil {
		t.Error("nothing to draw: no error")
	}
}

func TestNiceTicks(t *testing.T) {
	if a, b := fmt.Sprint(niceTicks{}.Ticks(0, 1)[0]), fmt.Sprint(logTicks{}.Ticks(0.7, 30)); !strings.HasPrefix(a, "{0 ") || b != "[{1 1} {2 2} {5 5} {10 10} {20 20}]" {
		t.Errorf("ticks %s, %s", a, b)
	}
	for _, c := range []struct{ low, high float64 }{{0, 100}, {0, 3.3}, {0, 0.0021}, {1.9, 24.3}, {4e3, 4e5}, {0, 7}, {0, 12.34}} {
		ticks := niceTicks{}.Ticks(c.low, c.high)
		if len(ticks) < 4 || len(ticks) > 9 {
			t.Errorf("%g to %g: %d ticks", c.low, c.high, len(ticks))
		}
		seen := map[string]bool{}
		for _, tick := range ticks {
			v, err := strconv.ParseFloat(tick.Label, 64)
			if err != nil || seen[tick.Label] || v != 0 && fmt.Sprintf("%.6g", v) != fmt.Sprintf("%.6g", tick.Value) || v < c.low-1e-12 || v > c.high+1e-9 {
				t.Errorf("%g to %g: tick %q at %g", c.low, c.high, tick.Label, tick.Value)
			}
			seen[tick.Label] = true
		}
	}
}

func TestExperts(t *testing.T) {
	uses := [][]int64{{100, 0, 25, 25}, {1, 1, 1, 100}}
	var svg bytes.Buffer
	if err := Experts(&svg, ExpertChart{Title: "moe.gguf", Uses: uses}); err != nil {
		t.Fatal(err)
	}
	show(t, "experts.svg", svg.Bytes())
	list := parse(t, svg.Bytes())
	all := strings.Join(texts(list), "|")
	for _, want := range []string{"moe.gguf", "expert", "layer with experts", "1 to 100 uses; white: none; if all were used alike: 31.6"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q: %s", want, all)
		}
	}
	// The darkest shade: one shape of two squares, the first layer's first and the second's last, and the legend's.
	dark := boxesOf(t, list, hex(inkOf(numShades)))
	if len(dark) != 3 {
		t.Fatalf("%d dark squares, wanted 2 and the legend's: %v", len(dark), dark)
	}
	if !(dark[0].right < dark[1].left) || !(dark[0].bottom > dark[1].bottom) { // the picture is drawn upwards
		t.Errorf("the first layer's first expert is at %v, the second's last at %v", dark[0], dark[1])
	}
	// Neighbours of a shade are one rectangle, as wide as both.
	half := boxesOf(t, list, hex(inkOf(shadeOf(25, 100))))
	if len(half) != 2 || half[0].right-half[0].left < 1.9*(dark[0].right-dark[0].left) {
		t.Errorf("two neighbours are %v beside %v", half, dark[0])
	}
	if err := Experts(io.Discard, ExpertChart{Title: "none", Uses: [][]int64{{0, 0}}}); err == nil {
		t.Error("nothing was used: no error")
	}
	// A large model's is small enough for a page.
	large := make([][]int64, 94)
	for l := range large {
		large[l] = make([]int64, 128)
		for i := range large[l] {
			large[l][i] = int64((l*7919 + i*i*31) % 997)
		}
	}
	svg.Reset()
	if err := Experts(&svg, ExpertChart{Title: "large", Uses: large}); err != nil || svg.Len() > 1<<20 {
		t.Errorf("%d bytes, %v", svg.Len(), err)
	}
	show(t, "experts-large.svg", svg.Bytes())
}

func TestShades(t *testing.T) {
	for _, most := range []int64{1, 7, 100, 123457} {
		if shadeOf(0, most) != 0 || shadeOf(1, most) < 1 || shadeOf(most, most) != numShades {
			t.Errorf("of %d: shades %d, %d, %d", most, shadeOf(0, most), shadeOf(1, most), shadeOf(most, most))
		}
		for n := range min(most, 1000) {
			if a, b := shadeOf(n, most), shadeOf(n+1, most); a > b || b > numShades {
				t.Errorf("of %d: %d uses are shade %d, one more %d", most, n, a, b)
			}
		}
	}
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}

// boxesOf is boxes, of each part of a path.
func boxesOf(t *testing.T, list []element, color string) (found []box) {
	t.Helper()
	for _, e := range list {
		if e.name != "path" || !strings.Contains(e.style, "fill:"+color) {
			continue
		}
		for _, part := range strings.Split(strings.TrimSuffix(e.data, "Z"), "Z") {
			found = append(found, boxes(t, []element{{"path", e.style, part, ""}}, color)...)
		}
	}
	return found
}

func TestRates(t *testing.T) {
	c := RateChart{Title: "a story", Lines: []RateLine{
		{Name: "lru", Rates: []Rate{{0.1, 0.2}, {0.5, 0.7}, {1, 1}}},
		{Name: "optimum", Rates: []Rate{{0.1, 0.4}, {0.5, 0.9}, {1, 1}}, Bound: true},
	}}
	var svg bytes.Buffer
	if err := Rates(&svg, c); err != nil {
		t.Fatal(err)
	}
	show(t, "rates.svg", svg.Bytes())
	list := parse(t, svg.Bytes())
	all := strings.Join(texts(list), "|")
	for _, want := range []string{"a story", "slots, % of all experts", "found in VRAM, %", "lru", "optimum", "100"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q: %s", want, all)
		}
	}
	dots := map[string]int{}
	for _, e := range list {
		for _, color := range []string{"#0072B2", "#222222"} {
			if e.name == "path" && strings.Contains(e.style, "fill:"+color) && strings.Contains(e.data, "A") {
				dots[color]++
			}
		}
	}
	if dots["#0072B2"] != 3 || dots["#222222"] != 3 {
		t.Errorf("dots %v, wanted 3 of each line", dots)
	}
	if err := Rates(io.Discard, RateChart{Title: "none", Lines: []RateLine{{Name: "lru"}}}); err == nil {
		t.Error("no rates: no error")
	}
}
