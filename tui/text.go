package tui

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// clean takes out of a text what would move the cursor or change colours: it may come from a
// stranger.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// cut shortens a text without styles to width columns, with a mark where it does.
func cut(s string, width int) string {
	s = clean(s)
	if width <= 0 {
		return ""
	}
	if lipgloss.Width(s) <= width {
		return s
	}
	n := 0
	for i, r := range s {
		n += lipgloss.Width(string(r))
		if n > width-1 {
			return s[:i] + "~"
		}
	}
	return s
}

// Wrap breaks a text without styles into lines of at most width columns; those after the first
// begin with indent.
func Wrap(s string, width int, indent string) []string {
	var lines []string
	line, used := "", 0 // and its width, which takes long to compute
	for _, word := range strings.SplitAfter(clean(s), " ") {
		shown := strings.TrimRight(word, " ")
		columns := lipgloss.Width(shown)
		if strings.TrimSpace(line) != "" && used+columns > width {
			lines = append(lines, cut(strings.TrimRight(line, " "), width))
			line, used = indent, lipgloss.Width(indent)
		}
		line += word
		used += columns + len(word) - len(shown)
	}
	return append(lines, cut(strings.TrimRight(line, " "), width))
}

// fit makes a text without styles exactly width columns wide.
func fit(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(0, width-lipgloss.Width(s)))
}

// right is fit with the text at the right.
func right(s string, width int) string {
	s = cut(s, width)
	return strings.Repeat(" ", max(0, width-lipgloss.Width(s))) + s
}

// column is one column of a table.
type column struct {
	name  string
	width int  // 0: what is left
	left  bool // numbers stand at the right
	least int  // it is left out of tables that are narrower
}

// table lays out n rows under the names of columns. It shows as many as fit into height lines, from
// the one scroll on, and asks for the cells of those only.
func (f *frame) table(columns []column, n int, row func(i int) []string, height int) []string {
	used, rest := 0, -1
	var shown []int
	for i, c := range columns {
		if f.width < c.least {
			continue
		}
		shown = append(shown, i)
		used += c.width + 2
		if c.width == 0 {
			rest = i
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for _, i := range shown {
			w := columns[i].width
			if i == rest {
				w = max(1, f.width-used)
			}
			if columns[i].left {
				b.WriteString(fit(cells[i], w))
			} else {
				b.WriteString(right(cells[i], w))
			}
			b.WriteString("  ")
		}
		return cut(strings.TrimRight(b.String(), " "), f.width)
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	room := max(1, height-2)
	f.scroll = min(f.scroll, max(0, n-room))
	out := []string{faint().Render(line(names))}
	for i := f.scroll; i < min(n, f.scroll+room); i++ {
		out = append(out, line(row(i)))
	}
	if n > room {
		out = append(out, faint().Render(fit(scrolled(f.scroll, room, n), f.width)))
	}
	return out
}
