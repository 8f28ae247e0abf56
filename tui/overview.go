package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// overview is the first tab: where the run stands, the curve of the loss, our own share, and the
// newest lines of the log.
func (f *frame) overview(height int) []string {
	out := f.standing()
	log := 3
	if height > 30 {
		log = height / 5
	}
	samples := f.samples(height / 4)
	curves := height - len(out) - log - len(samples) - 2
	out = append(out, f.curves(curves)...)
	out = append(out, samples...)
	out = append(out, "")
	from := max(0, len(f.run.Log)-log)
	for _, l := range f.run.Log[from:] {
		out = append(out, f.logLine(l))
	}
	return out
}

// samples are the texts of the newest step that has some, where there is room for them; on small
// windows the log has them.
func (f *frame) samples(height int) (out []string) {
	list := f.run.Samples
	if len(list) == 0 || height < 6 {
		return nil
	}
	step := list[len(list)-1].Step
	out = append(out, faint().Render(cut(fmt.Sprintf("what the model writes after step %d", step), f.width)))
	for _, s := range list {
		if s.Step == step {
			out = append(out, Wrap("  "+s.Prompt+" | "+s.Text, f.width, "  ")...)
		}
	}
	return out[:min(len(out), height)]
}

// standing returns where the run stands, in a few lines.
func (f *frame) standing() []string {
	r := f.run
	phase := orDash(r.Phase)
	if r.Drains() {
		phase = "epoch end"
	}
	if r.CountdownMs > 0 {
		phase += ", at most " + clock(r.CountdownMs) + " left"
	}
	if w := r.Windows; w != nil && w.DeadlineHeight > 0 {
		phase += fmt.Sprintf(", window %d to %s", w.Window, w.EndBlock())
	}
	if r.Pausing {
		phase += ", pausing after this epoch"
	}
	loss, heldOut := value(r.Loss), value(r.HeldOut)
	left := ""
	if r.LeftMs > 0 && r.Phase != "Finished" {
		left = "about " + clock(r.LeftMs) + " to go"
	}
	members := fmt.Sprintf("%d of at most %d", r.Present, r.Capacity)
	waits := r.Phase == coordinator.WaitingForMembers.String() && r.Present < r.Start
	if waits {
		members = fmt.Sprintf("%d of %d that begin", r.Present, r.Start)
	}
	lines := slices.Concat(
		pair(f.width, "phase", phase, "members", members),
		pair(f.width, "step", fmt.Sprintf("%d of %d  %s", r.Step, r.Steps, left), "epoch", fmt.Sprintf("%d, round %d", r.Epoch, r.Round)),
		pair(f.width, "loss", loss+"   held-out "+heldOut, "network", speed(r.TokensPerSecond)),
		pair(f.width, "trained", tokens(r.Tokens)+" tokens", "agreed", fmt.Sprintf("%s at round %d", view.Short(r.Params), r.ParamsRound)),
	)
	if waits {
		lines = append(lines, Wrap("invite   "+cmp.Or(f.invite, "entrain join TICKET, which entrain run ticket "+r.Name+" prints"), f.width, "         ")...)
	}
	if w := r.Windows; w != nil && w.ScoreWindows > 0 {
		lines = append(lines, pair(f.width, "scores", scoring(w), "emitted", fmt.Sprintf("%s tokens, %s a period", view.Thousands(w.Given), view.Thousands(w.Emission)))...)
	}
	if o := r.Own; o != nil && (o.Index >= 0 || o.Status != "" || o.Params != "") {
		share := "-"
		if r.Points > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(o.Points)/float64(r.Points))
		}
		own := speed(o.TokensPerSecond)
		if o.TokensPerSecond > 0 {
			own += " training"
		}
		if o.PeakShare > 0 {
			own += fmt.Sprintf(", %.0f %% of peak", 100*o.PeakShare)
		}
		status := orDash(view.Standing(r.Phase, o.Status))
		if o.Healing > 0 {
			status = fmt.Sprintf("fetching the model, %.0f %%", 100*o.Healing)
		}
		lines = append(lines, pair(f.width, "you", fmt.Sprintf("%s, %s points, %s of all", status, view.Thousands(o.Points), share),
			"speed", own)...)
	}
	bar := f.width - len("[] 100 %")
	done := min(r.Step, r.Steps)
	full := 0
	if r.Steps > 0 {
		full = int(uint64(bar) * uint64(done) / uint64(r.Steps))
	}
	return append(lines, fmt.Sprintf("[%s%s] %3d %%", accent().Render(strings.Repeat("=", full)),
		strings.Repeat(" ", bar-full), view.Percent(uint64(done), uint64(r.Steps))))
}

// scoring returns the state of the scoring.
func scoring(w *view.Windows) string {
	text := fmt.Sprintf("period %d, %d validators", w.Current, len(w.Validators))
	if len(w.Validators) == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if w.Scoring > 0 {
		text += fmt.Sprintf(", %s scores of period %d", w.Stage, w.Scoring)
	}
	return text
}

// chainOnly reports whether only the chain was heard, which does not know what members train and
// send.
func (f *frame) chainOnly() bool {
	return len(f.run.Loss)+len(f.run.HeldOut) == 0 && f.run.Own == nil && f.run.StateMs > 0
}

// curves draws the loss and, if there is room, the speed beside it.
func (f *frame) curves(height int) []string {
	if height < 3 {
		return nil
	}
	if f.chainOnly() {
		out := []string{"", cut("no losses yet: members tell them, once their addresses are reached and a round", f.width), cut("ends. --state DIR shows those in the log of a participant on this machine.", f.width)}
		if rest := height - len(out); rest >= 4 && len(f.run.Speed) > 1 {
			out = append(out, faint().Render(cut("tokens a second of the network", f.width)))
			out = append(out, plot([]view.Curve{f.run.Speed}, f.width, rest-1)...)
		}
		return out
	}
	if f.width < 120 {
		return append([]string{faint().Render("loss and held-out loss, nats a token")}, plot([]view.Curve{f.run.Loss, f.run.HeldOut}, f.width, height-1)...)
	}
	half := f.width/2 - 1
	left := plot([]view.Curve{f.run.Loss, f.run.HeldOut}, half, height-1)
	speed := plot([]view.Curve{f.run.Speed}, half, height-1)
	out := []string{faint().Render(fit("loss and held-out loss, nats a token", half+2) + "tokens a second of the network")}
	for i := range max(len(left), len(speed)) {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(speed) {
			r = speed[i]
		}
		out = append(out, fit(l, half+2)+r)
	}
	return out
}

// logs is the last tab, newest at the bottom; scrolling goes back.
func (f *frame) logs(height int) []string {
	n := len(f.run.Log)
	f.scroll = min(f.scroll, max(0, n-height))
	from := max(0, n-height-f.scroll)
	var out []string
	for _, l := range f.run.Log[from:min(n, from+height)] {
		out = append(out, f.logLine(l))
	}
	return out
}

func (f *frame) logLine(l view.Line) string {
	who := ""
	if l.Who != "" {
		who = l.Who + ": "
	}
	text := time.UnixMilli(int64(l.TimeMs)).Format("15:04:05") + " " + who + l.Text
	if l.Level == "warn" {
		return warn().Render(cut(strings.Replace(text, " ", " ! ", 1), f.width))
	}
	return cut(text, f.width)
}

// pair returns two facts, in one line if they have room there.
func pair(width int, a, av, b, bv string) []string {
	half := width * 11 / 20
	left, right := fmt.Sprintf("%-8s %s", a, av), fmt.Sprintf("%-8s %s", b, bv)
	if lipgloss.Width(left) < half && lipgloss.Width(right) <= width-half {
		return []string{fit(left, half) + right}
	}
	return []string{cut(left, width), cut(right, width)}
}

// value returns a curve's newest value.
func value(c view.Curve) string {
	v, ok := c.Last()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.3f", v)
}

// tokens returns a number of tokens with a unit.
func tokens(n uint64) string {
	return strings.TrimSpace(strings.TrimSuffix(view.Bytes(n), "B"))
}

// speed returns tokens a second, "-" before any was measured.
func speed(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return view.Thousands(uint64(perSecond)) + " tokens/s"
}

// clock returns a duration of milliseconds for people.
func clock(ms uint64) string {
	d := (time.Duration(ms) * time.Millisecond).Round(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return view.Minutes(d)
}

func orDash(s string) string { return view.OrDash(s) }
