package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"

	"github.com/entrain-network/entrain/view"
)

// The size of a picture in pixels, and the room around its plot. The picture is as wide as two
// columns of a paper.
const (
	width, height = 672, 346
	left, right   = 72, 24
	top, bottom   = 52, 48
)

// small is the style of a picture that is shown at half of its size, on a phone. The caption there
// names the vertical axis.
const small = `@media (max-width: 480px) { text { font-size: 20px } .axis { display: none } .line { stroke-width: 3 } }`

// inks are the colours of a chart's lines. They stay apart in grey and for colour-blind readers.
var inks = []string{"#0f6d64", "#b4541a"}

// legendSpace is the room between labels of a legend, in letters.
const legendSpace = 6

// paint draws a chart as SVG: a line for the mean of each bucket, over a band for its range.
// The geometry is that of the web's chart.js.
func paint(c Chart) []byte {
	x0, x1, y0, y1 := bounds(c)
	x := func(v float64) float64 { return left + (v-x0)/(x1-x0)*(width-left-right) }
	y := func(v float64) float64 {
		v = min(max(v, y0), y1) // a band may leave the plot
		return height - bottom - (v-y0)/(y1-y0)*(height-top-bottom)
	}
	var b bytes.Buffer
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	label := func(x, y float64, attributes, s string) {
		put(`<text x="%.1f" y="%.1f"%s>%s</text>`, x, y, attributes, html.EscapeString(s))
	}
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
		`font-family="sans-serif" font-size="12" fill="#333" text-anchor="middle">`, width, height)
	put(`<style>%s</style>`, small)
	put(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	label(width/2, 20, ` font-size="16"`, c.Title)
	label(left+(width-left-right)/2, height-8, "", "tokens")
	middle := top + float64(height-top-bottom)/2
	label(16, middle, fmt.Sprintf(` class="axis" transform="rotate(-90 16 %.1f)"`, middle), c.Axis)
	for _, t := range ticks(y0, y1, 5) {
		put(`<path d="M%d %.1fH%d" stroke="#ddd"/>`, left, y(t), width-right)
		label(left-8, y(t)+4, ` text-anchor="end"`, short(t))
	}
	for _, t := range ticks(x0, x1, 6) {
		put(`<path d="M%.1f %dv5" stroke="#999"/>`, x(t), height-bottom)
		label(x(t), height-bottom+19, "", short(t))
	}
	put(`<path d="M%d %dV%dH%d" fill="none" stroke="#999"/>`, left, top, height-bottom, width-right)
	at, letters := float64(left), 0 // of the legend, whose labels have room by their letters
	for _, l := range c.Lines {
		letters += len(l.Label) + legendSpace
	}
	for i, l := range c.Lines {
		ink := inks[i%len(inks)]
		if ranged(l.Curve) {
			put(`<path d="%sZ" fill="%s" fill-opacity="0.16"/>`, band(l.Curve, x, y), ink)
		}
		put(`<path class="line" d="%s" fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round"/>`,
			line(l.Curve, x, y), ink)
		if len(c.Lines) > 1 {
			put(`<path d="M%.1f 40h18" stroke="%s" stroke-width="3"/>`, at, ink)
			label(at+24, 44, ` text-anchor="start"`, l.Label)
			at += float64((width - left - right) * (len(l.Label) + legendSpace) / letters)
		}
	}
	put("</svg>")
	return b.Bytes()
}

// bounds returns the ranges of the axes. The vertical one follows the means with some room, so
// that a spike in one bucket does not flatten the curve.
func bounds(c Chart) (x0, x1, y0, y1 float64) {
	x0, x1, y0, y1 = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, l := range c.Lines {
		for _, b := range l.Curve {
			x0, x1 = min(x0, float64(b.Tokens)), max(x1, float64(b.Tokens))
			y0, y1 = min(y0, b.Mean), max(y1, b.Mean)
		}
	}
	room := 0.08 * (y1 - y0)
	if y1-y0 < 1e-12 {
		room = max(math.Abs(y1)/10, 1e-12)
	}
	y0, y1 = y0-room, y1+room
	if c.Zero {
		y0 = 0
	}
	return x0, max(x1, x0+1), y0, max(y1, y0+1e-12)
}

// line returns the path through a curve's means.
func line(c view.Curve, x, y func(float64) float64) string {
	b := []byte{'M'}
	for _, p := range c {
		b = fmt.Appendf(b, "%.1f %.1f ", x(float64(p.Tokens)), y(p.Mean))
	}
	return string(b)
}

// band returns the outline of a curve's ranges: along the maxima and back along the minima.
func band(c view.Curve, x, y func(float64) float64) string {
	b := []byte{'M'}
	for _, p := range c {
		b = fmt.Appendf(b, "%.1f %.1f ", x(float64(p.Tokens)), y(p.Max))
	}
	for i := len(c) - 1; i >= 0; i-- {
		b = fmt.Appendf(b, "%.1f %.1f ", x(float64(c[i].Tokens)), y(c[i].Min))
	}
	return string(b)
}

// ranged reports whether a bucket of the curve has more than one value.
func ranged(c view.Curve) bool {
	for _, b := range c {
		if b.Max > b.Min {
			return true
		}
	}
	return false
}

// ticks returns about n round numbers between two.
func ticks(from, to float64, n int) (list []float64) {
	rough := (to - from) / float64(n)
	size := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * size
	for _, m := range []float64{5, 2.5, 2, 1} {
		if m*size >= rough {
			step = m * size
		}
	}
	for k := math.Ceil(from/step - 1e-9); k*step <= to+1e-9*step; k++ {
		list = append(list, k*step+0) // + 0: no negative zero
	}
	return list
}

// short returns a number with a letter for its thousands.
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
