package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// plot draws a curve in braille, two by four dots a character, with the range at the left and the
// steps below; width by height characters in all. Curves with the same axes are drawn over each
// other.
func plot(curves []view.Curve, width, height int) []string {
	const axis = 9
	cols, rows := width-axis, height-1
	if cols < 4 || rows < 1 {
		return nil
	}
	low, high := math.Inf(1), math.Inf(-1)
	var first, last coordinator.Step = math.MaxUint32, 0
	for _, c := range curves {
		for _, b := range c {
			low, high = min(low, b.Mean), max(high, b.Mean)
			first, last = min(first, b.From), max(last, b.To)
		}
	}
	if last == 0 {
		return []string{strings.Repeat(" ", axis) + "nothing measured yet"}
	}
	if high-low < 1e-9 {
		low, high = low-0.5, high+0.5
	}
	dots := make([][]uint8, rows)
	for i := range dots {
		dots[i] = make([]uint8, cols)
	}
	for _, c := range curves {
		draw(dots, c, float64(first), float64(max(last, first+1)), low, high)
	}
	out := make([]string, 0, height)
	for i, row := range dots {
		label := ""
		switch {
		case i == 0:
			label = number(high)
		case i == rows-1:
			label = number(low)
		}
		var b strings.Builder
		b.WriteString(right(label, axis-2) + " |")
		for _, d := range row {
			b.WriteRune(rune(0x2800 + int(d)))
		}
		out = append(out, b.String())
	}
	end := fmt.Sprintf("step %d", last)
	begin := fmt.Sprint(first)
	return append(out, strings.Repeat(" ", axis)+begin+strings.Repeat(" ", max(1, cols-len(begin)-len(end)))+end)
}

// draw sets the dots of a curve, joined by lines.
func draw(dots [][]uint8, c view.Curve, first, last, low, high float64) {
	w, h := 2*len(dots[0]), 4*len(dots)
	px, py := -1, 0
	for _, b := range c {
		x := int(math.Round(((float64(b.From)+float64(b.To))/2 - first) / (last - first) * float64(w-1)))
		y := int(math.Round((high - b.Mean) / (high - low) * float64(h-1)))
		if math.IsNaN(b.Mean) {
			continue
		}
		x, y = min(max(x, 0), w-1), min(max(y, 0), h-1)
		if px < 0 {
			px, py = x, y
		}
		steps := max(1, x-px, max(y-py, py-y))
		for i := range steps + 1 {
			set(dots, px+(x-px)*i/steps, py+(y-py)*i/steps)
		}
		px, py = x, y
	}
}

// set sets a dot. The bits of braille (Unicode 16, block 2800) go down the left column, then the
// right, the lowest row last.
func set(dots [][]uint8, x, y int) {
	bit := [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}[y%4][x%2]
	dots[y/4][x/2] |= bit
}

// number returns a value in at most seven characters.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6 || a > 0 && a < 1e-3:
		return fmt.Sprintf("%.1e", v)
	case a >= 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// scrolled returns which lines are shown, and of how many.
func scrolled(from, room, all int) string {
	return fmt.Sprintf("%d to %d of %d", from+1, min(all, from+room), all)
}
