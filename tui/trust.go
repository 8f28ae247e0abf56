package tui

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/view"
)

// trust draws the tab of disputes, convictions and open checks.
func (f *frame) trust(height int) []string {
	t := f.run.Trust
	if t == nil {
		return []string{"", cut("nothing is checked in this run, and nothing is at stake", f.width)}
	}
	out := slices.Concat(
		pair(f.width, "checked", fmt.Sprintf("%d %%; %s of %s right, %d open", t.Percent, view.Thousands(uint64(t.Passed)), view.Thousands(uint64(t.Drawn)), len(t.Checks)),
			"found", fmt.Sprintf("%d disputes, %d convictions", t.Disputed, t.Convicted)),
		pair(f.width, "treasury", fmt.Sprintf("%s tokens, a point pays %s", view.Thousands(t.Treasury), view.Thousands(t.Rate)),
			"stake", fmt.Sprintf("%s; %s in escrow", view.Thousands(t.Stake), view.Thousands(t.Escrow))),
		[]string{""})
	var lines []string
	section := func(title string, n int, line func(i int) (text string, warns bool)) {
		if n == 0 {
			title += ": none"
		}
		lines = append(lines, faint().Render(cut(title, f.width)))
		for i := range n {
			text, warns := line(i)
			for _, l := range Wrap("  "+text, f.width, "       ") {
				if warns {
					l = warn().Render(l)
				}
				lines = append(lines, l)
			}
		}
	}
	section("disputes", len(t.Disputes), func(i int) (string, bool) {
		return f.disputeText(t.Disputes[i]), t.Disputes[i].EndedMs == 0
	})
	section("convictions", len(t.Convictions), func(i int) (string, bool) {
		return fmt.Sprintf("%d  %s", t.Convictions[i].Number, t.Convictions[i].Proof()), !t.Convictions[i].Lesser
	})
	section("checks", len(t.Checks), func(i int) (string, bool) {
		c := t.Checks[i]
		state := f.until(c.DeadlineMs)
		if c.Disputed {
			state = "in dispute"
		}
		return fmt.Sprintf("round %d of member %d, %d sequences, by member %d, %s", c.Round, c.Member, c.Sequences, c.Verifier, state), false
	})
	room := max(1, height-len(out)-1)
	f.scroll = min(f.scroll, max(0, len(lines)-room))
	out = append(out, lines[f.scroll:min(len(lines), f.scroll+room)]...)
	if len(lines) > room {
		out = append(out, faint().Render(fit(scrolled(f.scroll, room, len(lines)), f.width)))
	}
	return out
}

// disputeText returns a dispute as a line.
func (f *frame) disputeText(d view.Dispute) string {
	text := fmt.Sprintf("%d  round %d of member %d", d.ID, d.Round, d.Member)
	if d.EndedMs != 0 {
		return text + ", over: " + d.Outcome
	}
	if d.Accuser >= 0 {
		text += fmt.Sprintf(", accused by %d", d.Accuser)
	}
	text += ": " + d.Stage
	if where := d.Where(); where != "" {
		text += fmt.Sprintf(", %s, %s, %d levels to go", d.Level, where, d.Depth)
	}
	return text + ", " + f.until(d.DeadlineMs)
}

// until returns the time until a deadline.
func (f *frame) until(ms uint64) string {
	if ms <= f.run.NowMs {
		return "late"
	}
	return clock(ms-f.run.NowMs) + " left"
}
