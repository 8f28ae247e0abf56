package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// members draws the tab of the members, present ones first.
func (f *frame) members(height int) []string {
	present := slices.DeleteFunc(slices.Clone(f.run.Members), func(m view.Member) bool { return !m.Present() })
	list := append(present, slices.DeleteFunc(slices.Clone(f.run.Members), view.Member.Present)...)
	row := func(i int) []string {
		m := list[i]
		key := m.Label()
		if m.Own {
			key = cut(key, 18) + " (you)"
		}
		speed, fetched := view.Thousands(uint64(m.Speed)), view.Bytes(m.Bytes)
		if f.chainOnly() {
			speed, fetched = "-", "-"
		}
		return []string{fmt.Sprint(m.Index), key, view.Standing(f.run.Phase, m.Status), roles(m), string(rune(m.Mark)), view.Thousands(m.Points), fmt.Sprint(m.Results),
			fmt.Sprint(m.Missed), lossOf(float64(m.Loss)), speed, rate(m.Rate), fetched,
			view.Thousands(m.Stake), fmt.Sprint(m.Doubt), fmt.Sprint(m.Passed), m.Key}
	}
	return f.table([]column{{name: "#", width: 5}, {name: "member", width: 18, left: true}, {name: "status", width: 9, left: true, least: 60},
		{name: "this round", width: 12, left: true, least: 60}, {name: "share", width: 5, least: 60}, {name: "points", width: 9}, {name: "results", width: 7, least: 90},
		{name: "missed", width: 6, least: 48}, {name: "loss", width: 6, least: 100}, {name: "tokens/s", width: 10, least: 120},
		{name: "bandwidth", width: 11, least: 120}, {name: "fetched", width: 9, least: 140},
		{name: "stake", width: 11, least: 160}, {name: "doubt", width: 5, least: 160}, {name: "passed", width: 6, least: 160},
		{name: "key", left: true, width: 64, least: 230}}, len(list), row, height)
}

// roles returns the roles of a member in this round, in short.
func roles(m view.Member) string {
	return strings.NewReplacer("trainer", "trains", "witness", "wit.").Replace(m.Role)
}

func lossOf(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}

func rate(v float64) string {
	if v == 0 {
		return "-"
	}
	return view.Bytes(uint64(v)) + "/s"
}

// rounds draws the tab of the last rounds, newest first.
func (f *frame) rounds(height int) []string {
	list := slices.Clone(f.run.Rounds)
	slices.Reverse(list)
	row := func(i int) []string {
		r := list[i]
		state, took := "open", ""
		switch {
		case r.Step == 0:
			state = "epoch end"
		case r.Final:
			state = "settled"
		case r.ClosedMs != 0:
			state = "closed"
		}
		if r.ClosedMs > r.OpenedMs {
			took = fmt.Sprintf("%.1f s", float64(r.ClosedMs-r.OpenedMs)/1000)
		}
		step := fmt.Sprint(r.Step)
		if r.Step == 0 {
			step = "-"
		}
		trained, payloads := fmt.Sprintf("%d/%d", max(r.Committed, r.Accepted), r.Expected), view.Bytes(r.Bytes)
		if f.chainOnly() {
			trained, payloads = "-", "-"
		}
		return []string{fmt.Sprint(r.Number), step, state, took, trained, fmt.Sprintf("%d/%d", r.Reports, r.Seats),
			fmt.Sprintf("%d/%d", r.Accepted, r.Expected), verified(r), lossOf(r.Loss), payloads, view.Short(r.Agreed), r.Marks}
	}
	return f.table([]column{{name: "round", width: 7}, {name: "step", width: 7}, {name: "", width: 9, left: true}, {name: "took", width: 7},
		{name: "trained", width: 7}, {name: "witnessed", width: 9}, {name: "accepted", width: 8}, {name: "verified", width: 8, least: 85}, {name: "loss", width: 6},
		{name: "payloads", width: 9, least: 95}, {name: "agreed", width: 12, left: true, least: 110}, {name: "shares by member", left: true, least: 130}}, len(list), row, height)
}

// verified returns how many of the drawn results were found right.
func verified(r view.Round) string {
	if r.Checked == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.Verified, r.Checked)
}

// network draws the tab of the transfers.
func (f *frame) network(height int) []string {
	n := f.run.Network
	if f.run.Own == nil && n.Known == 0 && len(n.Transfers) == 0 {
		return Wrap("no transfers are seen from here: a participant's own window shows them, and entrain watch --state DIR", f.width, "")
	}
	out := slices.Concat(
		pair(f.width, "peers", fmt.Sprintf("%d connected, of %d known", n.Peers, n.Known), "fetching", view.Bytes(uint64(n.BytesPerSecond))+"/s over a minute"),
		pair(f.width, "fetched", fmt.Sprintf("%s in %s transfers", view.Bytes(n.FetchedBytes), view.Thousands(n.Fetches)), "sent", view.Bytes(n.SentBytes)+" of own results"),
		[]string{""})
	if len(n.Transfers) == 0 {
		return append(out, "no transfers seen from here")
	}
	row := func(i int) []string {
		t := n.Transfers[i]
		whose := "-"
		if t.Member >= 0 {
			whose = fmt.Sprintf("member %d", t.Member)
			if t.Member < len(f.run.Members) {
				whose += " " + f.run.Members[t.Member].Label()
			}
		}
		speed := "-"
		if t.Seconds > 0 {
			speed = view.Bytes(uint64(float64(t.Bytes)/t.Seconds)) + "/s"
		}
		return []string{time.UnixMilli(int64(t.TimeMs)).Format("15:04:05"), t.What, whose, fmt.Sprint(t.Round), view.Bytes(t.Bytes),
			fmt.Sprintf("%.2f s", t.Seconds), speed}
	}
	return append(out, f.table([]column{{name: "time", width: 8, left: true}, {name: "what", width: 7, left: true}, {name: "whose", width: 24, left: true},
		{name: "round", width: 7}, {name: "size", width: 9}, {name: "took", width: 8}, {name: "bandwidth", width: 11, least: 90}}, len(n.Transfers), row, height-len(out))...)
}

// rewards draws the tab of points and tokens, best member first.
func (f *frame) rewards(height int) []string {
	list := f.run.Ranked()
	scores := f.run.Windows != nil && f.run.Windows.ScoreWindows > 0
	row := func(i int) []string {
		m := list[i]
		key := m.Label()
		if m.Own {
			key = cut(key, 18) + " (you)"
		}
		bar := strings.Repeat("#", int(m.Share*20+0.5))
		if scores {
			return []string{fmt.Sprint(i + 1), key, view.Standing(f.run.Phase, m.Status), view.Thousands(m.Points), signed(m.Scored, m.Score), f.lastScore(m.Index),
				view.Thousands(m.Earned), view.Thousands(m.Unvested), view.Thousands(m.Balance), view.Thousands(m.Stake), bar}
		}
		return []string{fmt.Sprint(i + 1), key, view.Standing(f.run.Phase, m.Status), view.Thousands(m.Points), fmt.Sprintf("%.2f %%", 100*m.Share), fmt.Sprint(m.Results),
			view.Thousands(m.Settled), view.Thousands(m.Claimed), view.Thousands(m.Balance), view.Thousands(m.Stake), bar}
	}
	out := append(pair(f.width, "given", view.Thousands(f.run.Points)+" points, one a sequence", "retired", view.Thousands(f.run.Retired)+" of former members"), "")
	if scores {
		out = append(f.validators(max(1, height/3)), "")
		return append(out, f.table([]column{{name: "", width: 5}, {name: "member", width: 18, left: true}, {name: "status", width: 9, left: true, least: 60},
			{name: "points", width: 9}, {name: "score", width: 7, least: 60}, {name: "weight, reward", width: 16, least: 90}, {name: "earned", width: 9, least: 60},
			{name: "unvested", width: 9, least: 110}, {name: "balance", width: 11, least: 110}, {name: "stake", width: 11, least: 125},
			{name: "", left: true, least: 150}}, len(list), row, height-len(out))...)
	}
	return append(out, f.table([]column{{name: "", width: 5}, {name: "member", width: 18, left: true}, {name: "status", width: 9, left: true, least: 60},
		{name: "points", width: 11}, {name: "of all", width: 9, least: 60}, {name: "results", width: 8, least: 75},
		{name: "settled", width: 9, least: 110}, {name: "claimed", width: 9, least: 110}, {name: "balance", width: 11, least: 125}, {name: "stake", width: 11, least: 125},
		{name: "", left: true, least: 150}}, len(list), row, height-len(out))...)
}

// validators lists the validators, and the period settled last.
func (f *frame) validators(most int) []string {
	w := f.run.Windows
	out := []string{cut(scoring(w), f.width)}
	if w.Period != nil {
		out = append(out, cut(w.Period.Words(), f.width))
	}
	for i, v := range w.Validators {
		if len(out) >= most {
			out = append(out, faint().Render(cut(fmt.Sprintf("  and %d more", len(w.Validators)-i), f.width)))
			break
		}
		text := fmt.Sprintf("  seat %d  %s  stake %s  trust %d/255  earned %s", v.Seat, view.Short(v.Key), view.Thousands(v.Stake), v.Trust, view.Thousands(v.Earned))
		if w.Period != nil {
			if k := slices.IndexFunc(w.Period.Validators, func(s view.SeatScores) bool { return s.Key == v.Key }); k >= 0 {
				s := w.Period.Validators[k]
				if s.Revealed {
					text += fmt.Sprintf("  agreed %.0f %%", 100*s.Agreement)
				} else {
					text += "  did not reveal"
				}
			}
		}
		out = append(out, cut(text, f.width))
	}
	return out
}

// lastScore returns a member's pay for the period settled last.
func (f *frame) lastScore(member coordinator.Member) string {
	if p := f.run.Windows.Period; p != nil {
		for _, m := range p.Members {
			if m.Member == member && m.Penalty > 0 {
				return fmt.Sprintf("-%s", view.Thousands(m.Penalty))
			} else if m.Member == member {
				return fmt.Sprintf("%.1f %%, %s", 100*m.Weight, view.Thousands(m.Reward))
			}
		}
	}
	return "-"
}

// signed returns a score, or a dash if there is none.
func signed(is bool, v float64) string {
	if !is {
		return "-"
	}
	return fmt.Sprintf("%+.2f", v)
}
