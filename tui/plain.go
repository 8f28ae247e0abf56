package tui

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/entrain-network/entrain/view"
)

// Plain shows a run as lines, where there is no terminal or none is wanted: each line of its log
// once, and where it stands whenever that has changed.
type Plain struct {
	out    io.Writer
	logged uint64
	said   string
}

// Show writes what is new.
func (p *Plain) Show(r view.Run) error {
	var b strings.Builder
	fresh := min(r.Logged-min(r.Logged, p.logged), uint64(len(r.Log)))
	p.logged = r.Logged
	for _, l := range r.Log[uint64(len(r.Log))-fresh:] {
		text := l.Text
		if l.Who != "" {
			text = l.Who + ": " + text
		}
		if l.Level != "info" {
			text = l.Level + ": " + text
		}
		fmt.Fprintf(&b, "%s %s\n", time.UnixMilli(int64(l.TimeMs)).Format(time.TimeOnly), clean(text))
	}
	if line := Line(r); line != p.said && r.StateMs > 0 {
		p.said = line
		fmt.Fprintf(&b, "%s %s\n", time.UnixMilli(int64(r.SeenMs)).Format(time.TimeOnly), line)
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// Line returns where a run stands, in a line.
func Line(r view.Run) string {
	phase := r.Phase
	if r.Drains() {
		phase = "epoch end"
	}
	parts := []string{fmt.Sprintf("%s, epoch %d, round %d, step %d/%d", phase, r.Epoch, r.Round, r.Step, r.Steps), fmt.Sprintf("members %d", r.Present)}
	if v, ok := r.Loss.Last(); ok {
		parts = append(parts, fmt.Sprintf("loss %.3f", v))
	}
	if v, ok := r.HeldOut.Last(); ok {
		parts = append(parts, fmt.Sprintf("held-out %.3f", v))
	}
	if r.TokensPerSecond > 0 {
		parts = append(parts, view.Thousands(uint64(r.TokensPerSecond))+" tokens/s")
	}
	if r.Own != nil && r.Own.Points > 0 {
		parts = append(parts, fmt.Sprintf("%s points", view.Thousands(r.Own.Points)))
	}
	if r.LeftMs > 0 && r.Phase != "Finished" {
		parts = append(parts, "about "+clock(r.LeftMs)+" left")
	}
	return strings.Join(parts, ", ")
}
