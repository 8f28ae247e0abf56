package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/entrain-network/entrain/view"
)

// frame is one picture, and what the keyboard chose for it.
type frame struct {
	run           view.Run
	note          string
	width, height int
	quit          string // what q does
	replay        bool
	invite        string // the command with which others join

	tab    int
	scroll int // lines that are scrolled away at the top; of logs at the bottom
	help   bool
}

// The tabs, in their order.
const (
	tabOverview = iota
	tabMembers
	tabRounds
	tabNetwork
	tabRewards
	tabTrust
	tabLogs
	tabs
)

func tabName(i int) string {
	return [tabs]string{"Overview", "Members", "Rounds", "Network", "Rewards", "Trust", "Logs"}[i]
}

// The least size that is drawn.
const (
	widthMin  = 40
	heightMin = 8
)

// key takes a key.
func (f *frame) key(key string) {
	switch key {
	case "?", "down", "j", "up", "k", "pgdown", "pgup", "home", "g", "end", "G": // help scrolls too
	default:
		if !f.help {
			break
		}
		f.help = false
		if key == "esc" {
			return
		}
	}
	page := max(1, f.height-6)
	switch key {
	case "1", "2", "3", "4", "5", "6", "7":
		f.show(int(key[0] - '1'))
	case "tab", "right", "l":
		f.show((f.tab + 1) % tabs)
	case "shift+tab", "left", "h":
		f.show((f.tab + tabs - 1) % tabs)
	case "?":
		f.help, f.scroll = !f.help, 0
	case "down", "j":
		f.scroll++
	case "up", "k":
		f.scroll--
	case "pgdown":
		f.scroll += page
	case "pgup":
		f.scroll -= page
	case "home", "g":
		f.scroll = 0
	case "end", "G":
		f.scroll = scrollEnd
	}
	f.scroll = max(0, f.scroll)
}

// scrollEnd is further than any list goes.
const scrollEnd = 1 << 30

func (f *frame) show(tab int) { f.tab, f.scroll = tab, 0 }

// lines returns the picture: height lines of at most width columns.
func (f *frame) lines() []string {
	if f.width < widthMin || f.height < heightMin {
		return []string{fit("this window is too small", f.width)}
	}
	out := []string{f.title(), f.tabLine()}
	body := f.height - 3 // the last line is the keys
	var content []string
	switch {
	case f.help:
		content = f.helpLines(body)
	case f.run.StateMs == 0 && f.run.SeenMs == 0:
		content = []string{"", fit("waiting for the first news of the run ...", f.width)}
	default:
		content = f.tabLines(body)
	}
	for i := range body {
		if i < len(content) {
			out = append(out, content[i])
		} else {
			out = append(out, "")
		}
	}
	return append(out, f.keys())
}

func (f *frame) tabLines(height int) []string {
	switch f.tab {
	case tabMembers:
		return f.members(height)
	case tabRounds:
		return f.rounds(height)
	case tabNetwork:
		return f.network(height)
	case tabRewards:
		return f.rewards(height)
	case tabTrust:
		return f.trust(height)
	case tabLogs:
		return f.logs(height)
	}
	return f.overview(height)
}

func (f *frame) title() string {
	name := f.run.Name
	if f.run.Chain != "" {
		name += " on " + f.run.Chain
	}
	right := "entrain"
	if f.run.StateMs > 0 {
		right = time.UnixMilli(int64(f.run.NowMs)).Format("15:04:05")
	}
	left := fit("entrain  "+name, f.width-len(right)-1)
	return lipgloss.NewStyle().Bold(true).Render(left) + " " + right
}

// tabLine names the tabs; the chosen one stands in brackets.
func (f *frame) tabLine() string {
	var b strings.Builder
	short := f.width < 74
	for i := range tabs {
		name := fmt.Sprintf("%d %s", i+1, tabName(i))
		if short && i != f.tab {
			name = fmt.Sprint(i + 1)
		}
		if i == f.tab {
			b.WriteString(accent().Bold(true).Render("[" + name + "]"))
		} else {
			b.WriteString(" " + name + " ")
		}
	}
	return b.String()
}

func (f *frame) keys() string {
	text := "q " + f.quit + "  ? help  1-7 tabs  up/down scroll"
	if f.replay {
		text += "  space pause  +/- speed"
	}
	if f.note != "" {
		text = f.note + "  " + text
	}
	return faint().Render(fit(text, f.width))
}

func (f *frame) helpLines(height int) []string {
	lines := []string{"",
		"  1 ... 7            a tab; also tab, shift+tab, left, right",
		"  up, down, j, k     a line; page up, page down, home, end: further",
		"  ?                  this help, and back",
		"  q, ctrl+c          " + f.quit,
	}
	if f.replay {
		lines = append(lines, "  space              pause the replay, and go on", "  +, -               twice or half as fast")
	}
	lines = append(lines, "",
		"  Marks of a share   e expected, c committed, f fetched here,",
		"                     a accepted, m missed, . none; v computed",
		"                     again and right, x its author was convicted",
		"  epoch end          a round without training: the last results of",
		"                     an epoch are attested and applied",
		"  Loss               median of what members state, in nats a token;",
		"                     held-out: on text that nobody trains on",
		"  Points             one for each accepted sequence, and for",
		"                     each that was verified",
	)
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, "       ") && lipgloss.Width(l) > f.width {
			l = "    " + strings.TrimSpace(l)
		}
		out = append(out, Wrap(l, f.width, "    ")...)
	}
	f.scroll = min(f.scroll, max(0, len(out)-height))
	return out[f.scroll:]
}

// accent, faint and warn are the window's few colours, of the sixteen that every terminal has.
func accent() lipgloss.Style { return lipgloss.NewStyle().Foreground(lipgloss.Color("6")) }
func faint() lipgloss.Style  { return lipgloss.NewStyle().Faint(true) }
func warn() lipgloss.Style   { return lipgloss.NewStyle().Foreground(lipgloss.Color("3")) }
