package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// board is what the demo knows about its network: the sum of its children's events. It is a plain value; the time is an argument.
type board struct {
	title   string
	began   time.Time // of the first round seen, for the estimate of the time left
	beganAt uint32    // the step then done

	phase   string
	epoch   uint32
	round   uint32
	step    uint32
	steps   uint32
	members uint32
	agreed  string // hash of the parameters the run agreed on last

	heldOut     float32 // 0 until measured
	heldOutStep uint32
	trained     []training // of the last few seconds, oldest first
	payload     total      // of all results
	losses      losses
	dense       uint64 // bytes of a gradient that is not compressed

	chain   process
	clients []clientRow
	others  []process // validators, and the server of buckets
	court   court
	market  market
}

// process is a child process on the board.
type process struct {
	name     string
	pid      int // 0 when it does not run
	restarts int
}

// clientRow is what is known of one client.
type clientRow struct {
	process
	status   string
	points   uint64
	loss     float32
	speed    float64 // tokens a second while training
	params   string  // hash of the parameters it holds
	healing  string  // progress of a transfer of the model, or ""
	finished bool    // it has said that it holds the final parameters
}

// training is one share that a client finished.
type training struct {
	at     time.Time
	tokens uint64
}

type total struct{ sum, count uint64 }

// losses are the mean training loss of the newest step.
type losses struct {
	step  uint32
	sum   float64
	count int
}

// speedWindow is over how long the network's tokens a second are averaged.
const speedWindow = 15 * time.Second

func newBoard(title string, clients int, dense uint64) *board {
	b := &board{title: title, dense: dense, chain: process{name: "chain"}}
	for i := range clients {
		b.clients = append(b.clients, clientRow{process: process{name: clientName(i)}})
	}
	return b
}

func clientName(i int) string { return fmt.Sprintf("client-%d", i+1) }

// process returns the row of a child, nil for an unknown name.
func (b *board) process(name string) *process {
	if name == b.chain.name {
		return &b.chain
	}
	if c := b.client(name); c != nil {
		return &c.process
	}
	for i := range b.others {
		if b.others[i].name == name {
			return &b.others[i]
		}
	}
	return nil
}

func (b *board) client(name string) *clientRow {
	for i := range b.clients {
		if b.clients[i].name == name {
			return &b.clients[i]
		}
	}
	return nil
}

// event takes what a client reports.
func (b *board) event(now time.Time, name string, got event.Event) {
	c := b.client(name)
	if c == nil {
		return
	}
	switch ev := got.(type) {
	case event.State:
		c.status, c.points = ev.Status, ev.Points
		b.state(now, ev)
	case event.Loaded:
		c.params, c.healing = ev.Params.String(), ""
	case event.Applied:
		c.params, c.healing = ev.Params.String(), ""
	case event.Healing:
		c.healing = fmt.Sprintf("fetching %d %%", percent(ev.Bytes, ev.Total))
	case event.Healed:
		c.params, c.healing = ev.Params.String(), ""
	case event.Trained:
		c.loss = ev.Loss
		if ev.Seconds > 0 {
			c.speed = float64(ev.Tokens) / ev.Seconds
		}
		b.trained = append(b.trained, training{now, ev.Tokens})
		b.payload.sum += ev.Bytes
		b.payload.count++
		b.losses.add(ev.Step, ev.Loss)
	case event.Evaluated:
		if ev.Step >= b.heldOutStep {
			b.heldOut, b.heldOutStep = ev.HeldOut, ev.Step
		}
	case event.Finished:
		c.params, c.finished = ev.Params.String(), true
	}
}

// state takes the newest state of the run; clients hear of it at different times, so older ones are left out.
func (b *board) state(now time.Time, ev event.State) {
	if ev.Epoch < b.epoch || ev.Epoch == b.epoch && ev.Round < b.round {
		return
	}
	b.phase, b.epoch, b.round, b.step, b.steps, b.members, b.agreed = ev.Phase, ev.Epoch, ev.Round, ev.Step, ev.Steps, ev.Members, ev.Params.String()
	if b.began.IsZero() && ev.Phase == phaseTraining {
		b.began, b.beganAt = now, ev.Step
	}
}

// The names of phases that the board treats by themselves.
const (
	phaseTraining = "RoundTrain"
	phaseFinished = "Finished"
)

func (l *losses) add(step uint32, loss float32) {
	if step > l.step {
		*l = losses{step: step}
	}
	if step == l.step {
		l.sum += float64(loss)
		l.count++
	}
}

func (l losses) mean() float64 {
	if l.count == 0 {
		return 0
	}
	return l.sum / float64(l.count)
}

// honest are the clients that do not cheat.
func (b *board) honest() []clientRow { return b.clients[:len(b.clients)-b.court.cheats] }

// equal says whether all honest clients hold the final parameters, which then have one hash.
func (b *board) equal() bool {
	return b.phase == phaseFinished && !slices.ContainsFunc(b.honest(), func(c clientRow) bool { return !c.finished || c.params != b.agreed })
}

// tokensPerSecond is the speed of the whole network over the last seconds.
func (b *board) tokensPerSecond(now time.Time) float64 {
	for len(b.trained) > 0 && now.Sub(b.trained[0].at) > speedWindow {
		b.trained = b.trained[1:]
	}
	if len(b.trained) < 2 {
		return 0
	}
	var tokens uint64
	for _, t := range b.trained[1:] {
		tokens += t.tokens
	}
	return float64(tokens) / max(now.Sub(b.trained[0].at).Seconds(), 1e-3)
}

// left estimates the time until the last step.
func (b *board) left(now time.Time) (time.Duration, bool) {
	done := b.step - min(b.beganAt, b.step)
	if b.began.IsZero() || done < 3 || b.step >= b.steps {
		return 0, false
	}
	return now.Sub(b.began) / time.Duration(done) * time.Duration(b.steps-b.step), true
}

// payloadMean is the mean size of a client's result of one round, in bytes.
func (b *board) payloadMean() uint64 {
	if b.payload.count == 0 {
		return 0
	}
	return b.payload.sum / b.payload.count
}

// line is the whole board in one line, for an output that is no terminal.
func (b *board) line(now time.Time) string {
	parts := []string{fmt.Sprintf("%s, step %d/%d", orDash(b.phase), b.step, b.steps), fmt.Sprintf("members %d", b.members)}
	if b.losses.count > 0 {
		parts = append(parts, fmt.Sprintf("loss %.3f", b.losses.mean()))
	}
	if b.heldOut > 0 {
		parts = append(parts, fmt.Sprintf("held-out %.3f", b.heldOut))
	}
	if speed := b.tokensPerSecond(now); speed > 0 {
		parts = append(parts, thousands(uint64(speed))+" tokens/s")
	}
	if p := b.payloadMean(); p > 0 {
		parts = append(parts, "payload "+bytesText(p))
	}
	if b.court.checks > 0 {
		parts = append(parts, fmt.Sprintf("recomputed %d", b.court.passed))
	}
	if left, ok := b.left(now); ok {
		parts = append(parts, "about "+minutes(left)+" left")
	}
	return strings.Join(parts, ", ")
}

// lines are the board as a small table for a terminal of the given width.
func (b *board) lines(now time.Time, width int) []string {
	heldOut := "-"
	if b.heldOut > 0 {
		heldOut = fmt.Sprintf("%.3f at step %d", b.heldOut, b.heldOutStep)
	}
	left := ""
	if d, ok := b.left(now); ok {
		left = "about " + minutes(d) + " left"
	}
	out := []string{
		b.title,
		fmt.Sprintf("%-14s epoch %d, step %d/%d  %s", orDash(b.phase), b.epoch, b.step, b.steps, left),
		fmt.Sprintf("loss %.3f   held-out %s   %s tokens/s   members %d   payload %s (dense %s)", b.losses.mean(), heldOut,
			thousands(uint64(b.tokensPerSecond(now))), b.members, bytesText(b.payloadMean()), bytesText(b.dense)),
		progress(b.step, b.steps, width),
		fmt.Sprintf("%-10s %7s  %-12s %6s %9s %7s %6s  %s", "", "pid", "status", "loss", "tokens/s", "points", "stake", "parameters"),
		processLine(b.chain, "replica"),
	}
	for i, c := range b.clients {
		status := c.status
		if c.healing != "" {
			status = c.healing
		}
		line := processLine(c.process, status)
		last := short(c.params)
		if i >= len(b.honest()) {
			last = b.court.kind // what it holds binds nobody
		}
		stake := uint64(0)
		if i < len(b.court.stakes) {
			stake = b.court.stakes[i]
		}
		if c.pid != 0 || b.court.cheats > 0 {
			line = fmt.Sprintf("%s %6.3f %9s %7d %6d  %s", line, c.loss, thousands(uint64(c.speed)), c.points, stake, last)
		}
		out = append(out, line)
	}
	for _, p := range b.others {
		out = append(out, processLine(p, "running"))
	}
	for _, line := range []string{b.court.line(), b.market.line()} {
		if line != "" {
			out = append(out, line)
		}
	}
	for i := range out {
		out[i] = clip(out[i], width)
	}
	return out
}

func processLine(p process, status string) string {
	pid := "-"
	if p.pid != 0 {
		pid = fmt.Sprint(p.pid)
	} else if status != coordinator.StatusEjected.String() {
		status = "not running"
	}
	return fmt.Sprintf("%-10s %7s  %-12s", p.name, pid, orDash(status))
}

// progress is a bar of the steps done.
func progress(done, of uint32, width int) string {
	n := max(0, min(width-2, 70))
	full := 0
	if of > 0 {
		full = int(uint64(n) * uint64(min(done, of)) / uint64(of))
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", n-full) + "]"
}

// clip shortens a line to a terminal's width, so that it takes one row.
func clip(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width])
}
