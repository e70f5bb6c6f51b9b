package picture

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ExpertChart is what [Experts] draws.
type ExpertChart struct {
	Title string
	Uses  [][]int64 // (layers that have experts, experts of a layer): how often each was used
}

const (
	expertsWidth = vg.Length(700)
	expertsFrame = vg.Length(118) // title, axis, legend
	cellLeast    = vg.Length(7)   // height of a layer
	cellMost     = vg.Length(26)
	cellsHeight  = vg.Length(440) // of all layers, where that makes cells neither too low nor too high
)

// Experts draws a square for each expert of each layer, the darker the more often it was used.
func Experts(w io.Writer, c ExpertChart) error {
	most, even := c.most()
	if most == 0 {
		return fmt.Errorf("draw %q: no expert was used", c.Title)
	}
	layers, experts := len(c.Uses), len(c.Uses[0])
	p := newPlot(c.Title)
	p.X.Label.Text, p.Y.Label.Text = "expert", "layer with experts"
	p.X.Min, p.X.Max = -0.5, float64(experts)-0.5
	p.Y.Min, p.Y.Max = 0.5-float64(layers), 0.5 // of layer l it is -l: the first is on top
	p.X.Tick.Marker, p.Y.Tick.Marker = countTicks{experts, 1}, countTicks{layers, -1}
	p.X.Padding, p.Y.Padding = 0, 0
	p.Add(&cells{uses: c.Uses, most: most}, &shades{most: most, even: even})
	height := min(max(cellsHeight/vg.Length(layers), cellLeast), cellMost)
	return writeSVG(w, expertsWidth, expertsFrame+height*vg.Length(layers), p)
}

// most is how often the most used one was, and how often each would be if all were alike.
func (c *ExpertChart) most() (most int64, even float64) {
	sum, n := int64(0), 0
	for _, layer := range c.Uses {
		for _, uses := range layer {
			most, sum, n = max(most, uses), sum+uses, n+1
		}
	}
	return most, float64(sum) / float64(max(1, n))
}

// countTicks are at whole numbers below n, one or more apart, each as far from 0 as it says in a direction.
type countTicks struct {
	n         int
	direction float64
}

func (c countTicks) Ticks(float64, float64) (ticks []plot.Tick) {
	step := max(1, int(niceStep(float64(c.n)/20)))
	for i := 0; i < c.n; i += step {
		ticks = append(ticks, plot.Tick{Value: c.direction * float64(i), Label: strconv.Itoa(i)})
	}
	return ticks
}

// numShades of used experts; what was never used is white. More would make the file large and tell the eye nothing.
const numShades = 10

// shadeOf is 0 for never and up to numShades. A few experts that are used most of the time must not make all others look alike:
// it goes by the square root.
func shadeOf(uses, most int64) int {
	return int(math.Ceil(numShades * math.Sqrt(float64(uses)/float64(most))))
}

// inkOf goes from a light yellow over green to a dark blue; its lightness alone tells the order.
func inkOf(shade int) color.Color {
	marks := []color.RGBA{{0xf4, 0xf6, 0xc8, 0xff}, {0x9f, 0xd5, 0xa4, 0xff}, {0x35, 0x96, 0xa8, 0xff}, {0x1c, 0x4f, 0x8f, 0xff}, {0x08, 0x16, 0x4a, 0xff}}
	at := float64(shade-1) / (numShades - 1) * float64(len(marks)-1)
	i := min(int(at), len(marks)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (at-float64(i))*(float64(b)-float64(a)))) }
	a, b := marks[i], marks[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// cells draws each shade as one shape, neighbours in a layer as one rectangle: a large model has ten thousand cells.
type cells struct {
	uses [][]int64
	most int64
}

func (s *cells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for shade := 1; shade <= numShades; shade++ {
		var path vg.Path
		for l, layer := range s.uses {
			top, bottom := y(0.5-float64(l)), y(-0.5-float64(l))
			for from := 0; from < len(layer); from++ {
				if shadeOf(layer[from], s.most) != shade {
					continue
				}
				to := from + 1
				for to < len(layer) && shadeOf(layer[to], s.most) == shade {
					to++
				}
				addRectangle(&path, x(float64(from)-0.5), bottom, x(float64(to)-0.5), top)
				from = to
			}
		}
		if len(path) > 0 {
			c.SetColor(inkOf(shade))
			c.Fill(path)
		}
	}
}

func addRectangle(p *vg.Path, left, bottom, right, top vg.Length) {
	for i, at := range rectangle(left, bottom, right, top) {
		at.X, at.Y = round(at.X), round(at.Y)
		if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	p.Close()
}

// round leaves two digits of a point: more make the file larger, not sharper.
func round(x vg.Length) vg.Length { return vg.Length(math.Round(float64(x)*100) / 100) }

// shades explains the colours in one line above the cells.
type shades struct {
	most int64
	even float64
}

func (s *shades) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.Legend.TextStyle
	style.YAlign = draw.YCenter
	const side = vg.Length(11)
	x, y := c.Min.X, c.Max.Y+vg.Length(11)
	for shade := 1; shade <= numShades; shade++ {
		c.FillPolygon(inkOf(shade), rectangle(x, y-side/2, x+side, y+side/2))
		x += side
	}
	text := fmt.Sprintf("1 to %d uses; white: none; if all were used alike: %.3g", s.most, s.even)
	c.FillText(style, vg.Point{X: x + 5, Y: y}, text)
}

// GlyphBoxes keeps room for the line above.
func (s *shades) GlyphBoxes(*plot.Plot) []plot.GlyphBox {
	return []plot.GlyphBox{{X: 0, Y: 1, Rectangle: vg.Rectangle{Max: vg.Point{Y: 24}}}}
}
