package picture

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Rate is how much of what was asked for a cache of a size had: parts of 1 both.
type Rate struct{ Size, Hits float64 }

// RateLine is one way to run the cache, sizes ascending.
type RateLine struct {
	Name  string
	Rates []Rate
	Bound bool // no real one: what none can surpass
}

// RateChart is what [Rates] draws.
type RateChart struct {
	Title string
	Lines []RateLine
}

const (
	ratesWidth  = vg.Length(560)
	ratesHeight = vg.Length(380)
)

// Rates draws hit rates against the cache's size, a line each.
func Rates(w io.Writer, c RateChart) error {
	p := newPlot(c.Title)
	p.X.Label.Text, p.Y.Label.Text = "slots, % of all experts", "found in VRAM, % of what was asked for"
	p.X.Tick.Marker, p.Y.Tick.Marker = niceTicks{}, niceTicks{}
	p.Legend.Left, p.Legend.Top = true, false // names behind the lines, in the corner that no curve comes to
	p.Legend.XOffs, p.Legend.YOffs = ratesWidth*7/10, vg.Points(8)
	p.Add(grid{horizontal: true})
	low, high, points := 1.0, 0.0, 0
	for i, l := range c.Lines {
		line := &rates{line: l, color: palette[i%len(palette)], dashed: i >= len(palette)}
		if l.Bound {
			line.color, line.dashed = ink, true
		}
		p.Add(line)
		p.Legend.Add(l.Name, line)
		for _, r := range l.Rates {
			low, high, points = min(low, r.Size), max(high, r.Size), points+1
		}
	}
	if points == 0 {
		return fmt.Errorf("draw %q: there is no rate to draw", c.Title)
	}
	pad := max(0.02*(high-low), 0.005)
	p.X.Min, p.X.Max = 100*(low-pad), 100*(high+pad)
	p.Y.Min, p.Y.Max = 0, 102
	return writeSVG(w, ratesWidth, ratesHeight, p)
}

// rates is one line.
type rates struct {
	line   RateLine
	color  color.Color
	dashed bool
}

func (r *rates) style() draw.LineStyle {
	s := draw.LineStyle{Color: r.color, Width: vg.Points(1.5)}
	if r.dashed {
		s.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	return s
}

func (r *rates) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for _, one := range r.line.Rates {
		line = append(line, vg.Point{X: x(100 * one.Size), Y: y(100 * one.Hits)})
	}
	c.StrokeLines(r.style(), line)
	for _, at := range line {
		c.DrawGlyph(draw.GlyphStyle{Color: r.color, Radius: vg.Length(2), Shape: draw.CircleGlyph{}}, at)
	}
}

func (r *rates) Thumbnail(c *draw.Canvas) {
	middle := (c.Min.Y + c.Max.Y) / 2
	c.StrokeLine2(r.style(), c.Min.X, middle, c.Max.X, middle)
}
