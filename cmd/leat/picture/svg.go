package picture

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"sync"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A colour-blind reader tells these apart, and so does a grey printer (Okabe and Ito's).
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

// sansFont is what text is measured with. A reader without that font gets one as wide.
var sansFont = plotfont.Font{Typeface: "Liberation", Variant: "Sans"}

func sized(points float64) plotfont.Font {
	f := sansFont
	f.Size = vg.Length(points)
	return f
}

func bold(points float64) plotfont.Font {
	f := sized(points)
	f.Weight = font.WeightBold
	return f
}

var setup sync.Once

// newPlot is an empty plot in our style.
func newPlot(title string) *plot.Plot {
	setup.Do(func() { plot.DefaultFont = sansFont })
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = title
	p.Title.TextStyle.Font, p.Title.TextStyle.Color = bold(12), ink
	p.Title.Padding = vg.Points(8)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Label.TextStyle.Color = sized(11), ink
		a.Tick.Label.Font, a.Tick.Label.Color = sized(10), ink
		a.Color, a.Tick.Color = ink, ink
		a.Label.Padding = vg.Points(5)
		a.Width, a.Tick.Width = vg.Points(0.75), vg.Points(0.75)
	}
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sized(10), ink
	p.Legend.ThumbnailWidth = vg.Points(24)
	p.Legend.Padding = vg.Points(3)
	return p
}

// margin is left white around a picture.
const margin = vg.Length(10)

// writeSVG draws p, and what is drawn after it, into an SVG of a size in points.
func writeSVG(w io.Writer, width, height vg.Length, p *plot.Plot) (err error) {
	defer func() { // the library panics where it meets a value that it can't draw
		if r := recover(); r != nil {
			err = fmt.Errorf("draw %q: %v", p.Title.Text, r)
		}
	}()
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, margin, -margin, margin, -margin))
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return fmt.Errorf("draw %q: %w", p.Title.Text, err)
	}
	svg := bytes.ReplaceAll(text.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	if _, err := w.Write(svg); err != nil {
		return fmt.Errorf("write a picture: %w", err)
	}
	return nil
}
