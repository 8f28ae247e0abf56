package report

import (
	"bytes"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/entrain-network/entrain/view"
)

// The size of a picture: a column of a paper, twice.
const (
	width  = 7 * vg.Inch
	height = 3.6 * vg.Inch
	margin = vg.Length(8)
	dpi    = 192
)

// ink is the colour of a chart's i-th line: two that stay apart in grey and for the colour-blind.
func ink(i int) color.NRGBA {
	return []color.NRGBA{{0x0f, 0x6d, 0x64, 0xff}, {0xb4, 0x54, 0x1a, 0xff}}[i%2]
}

// paint makes a picture of a chart: the mean of each bucket as a line, and its range as a band behind.
func paint(c Chart, format string) ([]byte, error) {
	p := plot.New()
	p.Title.Text = c.Title
	p.X.Label.Text, p.Y.Label.Text = "tokens", c.Axis
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks{}, ticks{}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Title.TextStyle.Font.Size, p.Legend.TextStyle.Font.Size = vg.Points(12), vg.Points(10)
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = vg.Points(10), vg.Points(10)
	p.Add(grid())
	for i, l := range c.Lines {
		tone := ink(i)
		line, err := plotter.NewLine(means(l.Curve))
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = tone, vg.Points(1.4)
		if ranged(l.Curve) {
			band, err := plotter.NewPolygon(ranges(l.Curve))
			if err != nil {
				return nil, err
			}
			tone.A = 0x28
			band.Color, band.LineStyle.Width = tone, 0
			p.Add(band)
		}
		p.Add(line)
		if len(c.Lines) > 1 {
			p.Legend.Add(l.Label, line)
		}
	}
	if c.Zero {
		p.Y.Min = 0
	}
	if p.Y.Max-p.Y.Min < 1e-12 {
		p.Y.Max = p.Y.Min + math.Max(math.Abs(p.Y.Min)/10, 1e-12)
	}
	var sheet interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "svg":
		sheet = vgsvg.New(width, height)
	case "png":
		sheet = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	default:
		panic("report: pictures are svg or png, not " + format)
	}
	page := draw.New(sheet)
	page.FillPolygon(color.White, []vg.Point{page.Min, {X: page.Max.X, Y: page.Min.Y}, page.Max, {X: page.Min.X, Y: page.Max.Y}})
	p.Draw(draw.Crop(page, margin, -margin-vg.Points(10), margin, -margin)) // the last label on the right stands out
	var b bytes.Buffer
	_, err := sheet.WriteTo(&b)
	return b.Bytes(), err
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal.Color = color.Gray{0xdd}
	return g
}

func means(c view.Curve) plotter.XYs {
	xy := make(plotter.XYs, len(c))
	for i, b := range c {
		xy[i].X, xy[i].Y = float64(b.Tokens), b.Mean
	}
	return xy
}

// ranges is the outline of the band from the least to the greatest values.
func ranges(c view.Curve) plotter.XYs {
	xy := make(plotter.XYs, 2*len(c))
	for i, b := range c {
		j := len(xy) - 1 - i
		xy[i].X, xy[i].Y = float64(b.Tokens), b.Max
		xy[j].X, xy[j].Y = float64(b.Tokens), b.Min
	}
	return xy
}

func ranged(c view.Curve) bool {
	for _, b := range c {
		if b.Max > b.Min {
			return true
		}
	}
	return false
}

// ticks labels axes with units: 1.5M.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(from, to float64) []plot.Tick {
	list := plot.DefaultTicks{}.Ticks(from, to)
	for i, t := range list {
		if t.Label != "" {
			list[i].Label = short(t.Value)
		}
	}
	return list
}

// short is a number with a letter for its thousands.
func short(v float64) string {
	letter := ""
	for _, u := range []struct {
		size   float64
		letter string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= u.size {
			v, letter = v/u.size, u.letter
			break
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + letter
}
