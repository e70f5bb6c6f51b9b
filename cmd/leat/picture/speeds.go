package picture

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Point is a speed at a VRAM budget.
type Point struct {
	VRAMBytes int64
	PerSec    float64
	Min, Max  float64 // of the repetitions; 0, 0 for what is predicted
}

// Series is one test's speeds: what was measured, and the curve that was predicted.
type Series struct {
	Name      string
	Measured  []Point
	Predicted []Point // sorted by VRAM; may be empty
}

// SpeedChart is what [Speeds] draws.
type SpeedChart struct {
	Title  string
	Series []Series
}

const (
	speedsWidth  = vg.Length(560)
	speedsHeight = vg.Length(360)
)

// Speeds draws tok/s against the VRAM budget: dots with the spread of their repetitions, and
// dashed lines for what was predicted.
func Speeds(w io.Writer, c SpeedChart) error {
	p := newPlot(c.Title)
	unit, div := vramUnit(c.Series)
	p.X.Label.Text = "VRAM budget, " + unit
	p.Y.Label.Text = "tokens per second"
	p.X.Tick.Marker = niceTicks{}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(10), vg.Points(-4)
	p.Add(grid{horizontal: true})
	entries := 0
	for i, s := range c.Series {
		line := &curve{div: div, color: palette[i%len(palette)], points: s.Predicted}
		dots := &dots{div: div, color: palette[i%len(palette)], points: s.Measured}
		dots.shift = beside * (vg.Length(i) - vg.Length(len(c.Series)-1)/2) // spreads at one budget stand side by side
		if len(s.Predicted) > 0 {
			p.Add(line)
		}
		p.Add(dots)
		p.Legend.Add(s.Name+", measured", dots)
		if len(s.Predicted) > 0 {
			p.Legend.Add(s.Name+", predicted", line)
			entries++
		}
		entries++
	}
	if !scale(p, c.Series, div, entries) {
		return fmt.Errorf("draw %q: there is no speed to draw", c.Title)
	}
	return writeSVG(w, speedsWidth, speedsHeight, p)
}

// A range of speeds that is wider than this is drawn logarithmically.
const wideRange = 8

// scale sets the axes' ranges, with room for the entries of a legend above all. It reports
// whether there is anything to draw.
func scale(p *plot.Plot, all []Series, div float64, entries int) bool {
	x0, x1, low, high := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	for _, s := range all {
		for _, pt := range slices.Concat(s.Measured, s.Predicted) {
			if pt.PerSec > 0 {
				x := float64(pt.VRAMBytes) / div
				x0, x1, low, high = min(x0, x), max(x1, x), min(low, pt.PerSec), max(high, pt.PerSec, pt.Max)
			}
		}
	}
	if high == 0 {
		return false
	}
	pad := max((x1-x0)*0.04, x1*0.01)
	p.X.Min, p.X.Max = x0-pad, x1+pad
	const line, height = 13.0, 270.0 // points, about
	used := 1 - min(0.5, (line*float64(entries)+12)/height)
	if high/low > wideRange {
		low /= 1.3
		p.Y.Min, p.Y.Max = low, low*math.Pow(high/low, 1/used)
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		return true
	}
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, high/used, niceTicks{}
	return true
}

// vramUnit is GiB, or MiB for toys.
func vramUnit(all []Series) (unit string, div float64) {
	most := int64(0)
	for _, s := range all {
		for _, p := range slices.Concat(s.Measured, s.Predicted) {
			most = max(most, p.VRAMBytes)
		}
	}
	if most < 1<<30 {
		return "MiB", 1 << 20
	}
	return "GiB", 1 << 30
}

// curve is a dashed line.
type curve struct {
	div    float64
	color  color.Color
	points []Point
}

func (l *curve) style() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: vg.Points(1.5), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}}
}

func (l *curve) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for _, pt := range l.points {
		line = append(line, vg.Point{X: x(float64(pt.VRAMBytes) / l.div), Y: y(pt.PerSec)})
	}
	c.StrokeLines(l.style(), line)
}

func (l *curve) Thumbnail(c *draw.Canvas) {
	middle := (c.Min.Y + c.Max.Y) / 2
	c.StrokeLine2(l.style(), c.Min.X, middle, c.Max.X, middle)
}

// dots are measured points with their spread.
type dots struct {
	div    float64
	color  color.Color
	points []Point
	shift  vg.Length // to the right
}

const (
	dotRadius = vg.Length(3)
	beside    = vg.Length(8)
)

func (d *dots) dot(c *draw.Canvas, at vg.Point) {
	c.DrawGlyph(draw.GlyphStyle{Color: d.color, Radius: dotRadius, Shape: draw.CircleGlyph{}}, at)
}

func (d *dots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	line := draw.LineStyle{Color: d.color, Width: vg.Points(1)}
	for _, pt := range d.points {
		at := vg.Point{X: x(float64(pt.VRAMBytes)/d.div) + d.shift, Y: y(pt.PerSec)}
		if low, high := y(pt.Min), y(pt.Max); pt.Max > pt.Min && high-low > 2*dotRadius {
			c.StrokeLine2(line, at.X, low, at.X, high)
			for _, end := range []vg.Length{low, high} {
				c.StrokeLine2(line, at.X-dotRadius, end, at.X+dotRadius, end)
			}
		}
		d.dot(&c, at)
	}
}

func (d *dots) Thumbnail(c *draw.Canvas) {
	d.dot(c, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2})
}

// grid draws faint lines at the labelled ticks.
type grid struct{ horizontal bool }

func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	line := draw.LineStyle{Color: faint, Width: vg.Points(0.5)}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if g.horizontal && !t.IsMinor() {
			c.StrokeLine2(line, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if !t.IsMinor() {
			c.StrokeLine2(line, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
}

// niceTicks labels multiples of 1, 2 or 5 times a power of ten: four to nine of them.
type niceTicks struct{}

func (niceTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	step := niceStep((high - low) / 7)
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	for n := math.Ceil(low/step - 1e-9); n*step <= high*(1+1e-12); n++ {
		v := n*step + 0 // no -0
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return ticks
}

// niceStep is the next of 1, 2, 5, 10, … that is no smaller.
func niceStep(least float64) float64 {
	if least <= 0 || math.IsNaN(least) || math.IsInf(least, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks labels 1, 2 and 5 times the powers of ten.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * power; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64)})
			}
		}
	}
	return ticks
}
