package picture

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Kind is where the bytes rest that a bar moves or reads.
type Kind int

// The kinds, and what the legend calls them.
const (
	Resident  Kind = iota // stays in VRAM
	FromHost              // streams from RAM
	FromDisk              // is read and streams
	NoWeights             // reads none
	numKinds
)

var kinds = [numKinds]struct {
	name  string
	color color.RGBA
}{
	Resident:  {"units that stay in VRAM", color.RGBA{0x00, 0x9e, 0x73, 0xff}},
	FromHost:  {"streamed from RAM", color.RGBA{0x00, 0x72, 0xb2, 0xff}},
	FromDisk:  {"streamed from disk", color.RGBA{0xd5, 0x5e, 0x00, 0xff}},
	NoWeights: {"no weights", color.RGBA{0x99, 0x99, 0x99, 0xff}},
}

// Bar is one piece of work.
type Bar struct {
	Row        string // "disk", "link", "compute"
	Track      int    // of several that work side by side in a row
	Kind       Kind
	Begin, End time.Duration // since the begin of what is drawn; may reach beyond it
}

// TimelineChart is what [Timeline] draws.
type TimelineChart struct {
	Title string
	Rows  []Row // from top to bottom
	Bars  []Bar
	Span  time.Duration // how much of time is drawn
}

// Row is a part of the machine.
type Row struct {
	Name string // as in Bar.Row
	Note string // beside it, as "98 % busy"
}

const (
	timelineWidth = vg.Length(820)
	rowHeight     = vg.Length(54)
	around        = vg.Length(112) // title, axis, legend
)

// Timeline draws each row's bars over time.
func Timeline(w io.Writer, c TimelineChart) error {
	if c.Span <= 0 || len(c.Rows) == 0 {
		return fmt.Errorf("draw %q: nothing happened in it", c.Title)
	}
	p := newPlot(c.Title)
	unit, div := timeUnit(c.Span)
	p.X.Label.Text = unit
	p.X.Tick.Marker = niceTicks{}
	p.X.Min, p.X.Max = 0, float64(c.Span)/float64(div)
	p.Y.Min, p.Y.Max = -0.5, float64(len(c.Rows))-0.5
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = rowTicks(c.Rows), 0, 0
	p.Y.Tick.Label.Font = sized(11)
	p.Add(grid{}, &bars{chart: &c, div: div})
	p.Legend.Top, p.Legend.Left = false, false
	p.Add(&legendRow{chart: &c})
	return writeSVG(w, timelineWidth, around+rowHeight*vg.Length(len(c.Rows)), p)
}

func timeUnit(span time.Duration) (name string, unit time.Duration) {
	switch {
	case span >= 10*time.Second:
		return "seconds", time.Second
	case span >= 2*time.Millisecond:
		return "milliseconds", time.Millisecond
	}
	return "microseconds", time.Microsecond
}

// rowTicks labels the rows; the first is the topmost.
type rowTicks []Row

func (r rowTicks) Ticks(float64, float64) (ticks []plot.Tick) {
	for i, row := range r {
		label := row.Name
		if row.Note != "" {
			label += "\n" + row.Note
		}
		ticks = append(ticks, plot.Tick{Value: float64(len(r) - 1 - i), Label: label})
	}
	return ticks
}

// bars draws the work. A bar of less than a hair's breadth is drawn as wide as one.
type bars struct {
	chart *TimelineChart
	div   time.Duration
}

const hair = vg.Length(0.4)

func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range b.chart.Rows {
		tracks := tracksOf(b.chart.Bars, row.Name)
		middle := float64(len(b.chart.Rows) - 1 - i)
		top, bottom := y(middle+0.38), y(middle-0.38)
		each := (top - bottom) / vg.Length(max(1, len(tracks)))
		for _, bar := range b.chart.Bars {
			if bar.Row != row.Name {
				continue
			}
			from, to := max(bar.Begin, 0), min(bar.End, b.chart.Span)
			if from >= to {
				continue
			}
			at := top - each*vg.Length(slices.Index(tracks, bar.Track))
			left, right := x(float64(from)/float64(b.div)), x(float64(to)/float64(b.div))
			right = min(max(right, left+hair), c.Max.X)
			if right-left > 8*hair {
				right -= hair // neighbours are told apart
			}
			c.FillPolygon(kinds[bar.Kind].color, rectangle(left, at-each*0.94, right, at))
		}
	}
}

func rectangle(left, bottom, right, top vg.Length) []vg.Point {
	return []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}}
}

// tracksOf lists the tracks of a row in order.
func tracksOf(all []Bar, row string) (tracks []int) {
	for _, b := range all {
		if b.Row == row && !slices.Contains(tracks, b.Track) {
			tracks = append(tracks, b.Track)
		}
	}
	slices.Sort(tracks)
	return tracks
}

// legendRow explains the colours in one line above the rows.
type legendRow struct{ chart *TimelineChart }

func (l *legendRow) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	style.YAlign = draw.YCenter
	const side, apart = vg.Length(9), vg.Length(26) // fonts differ in width
	x, y := c.Min.X, c.Max.Y+vg.Length(9)
	for k := range numKinds {
		if !slices.ContainsFunc(l.chart.Bars, func(b Bar) bool { return b.Kind == k }) {
			continue
		}
		c.FillPolygon(kinds[k].color, rectangle(x, y-side/2, x+side, y+side/2))
		x += side + 4
		c.FillText(style, vg.Point{X: x, Y: y}, kinds[k].name)
		x += style.Width(kinds[k].name) + apart
	}
}

// GlyphBoxes keeps room for the line above.
func (l *legendRow) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{X: 0, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: 20}}}}
}
