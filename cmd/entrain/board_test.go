package main

import (
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
)

// at is a time so many seconds after the beginning of the tests' board.
func at(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func state(phase string, round, step uint32) event.Event {
	return event.State{Phase: phase, Epoch: 1, Round: round, Step: step, Steps: 100, Members: 2, Status: "active", Points: uint64(step) * 8, Params: wire.Sum("agreed")}
}

func sampleBoard() *board {
	b := newBoard("title", 2, 4_200_000)
	b.process("chain").pid = 100
	b.process("client-1").pid = 101
	b.process("client-2").pid = 102
	b.event(at(0), "client-1", state("RoundTrain", 1, 0))
	for step := range uint32(10) {
		for _, name := range []string{"client-1", "client-2"} {
			b.event(at(float64(step)+1), name, event.Trained{Step: step + 1, Loss: 5 - float32(step)/10, Tokens: 1000, Seconds: 0.5, Bytes: 12_000})
			b.event(at(float64(step)+1), name, event.Applied{Step: step + 1, Params: wire.Hash{0x01, 0x23, 0x45, 0x67, 0x89, 0xab}})
			b.event(at(float64(step)+1), name, state("RoundTrain", step+2, step+1))
		}
	}
	b.event(at(10), "client-1", event.Evaluated{Step: 10, HeldOut: 4.25})
	return b
}

func TestBoardAsTable(t *testing.T) {
	got := strings.Join(sampleBoard().lines(at(10), 78), "\n")
	want := strings.Trim(`
title
RoundTrain     epoch 1, step 10/100  about 1:30 left
loss 4.100   held-out 4.250 at step 10   2,111 tokens/s   members 2   payload 
[=======                                                               ]
               pid  status         loss  tokens/s  points  stake  parameters
chain          100  replica     
client-1       101  active        4.100     2,000      80      0  0123456789ab
client-2       102  active        4.100     2,000      80      0  0123456789ab
`, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestBoardAsLine(t *testing.T) {
	got := sampleBoard().line(at(10))
	want := "RoundTrain, step 10/100, members 2, loss 4.100, held-out 4.250, 2,111 tokens/s, payload 12.0 kB, about 1:30 left"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBoardIgnoresOldStatesAndStrangers(t *testing.T) {
	b := sampleBoard()
	b.event(at(11), "client-2", state("RoundWitness", 3, 2)) // that client lags
	b.event(at(11), "stranger", state("Finished", 99, 99))
	if b.phase != "RoundTrain" || b.step != 10 {
		t.Errorf("got %s, step %d", b.phase, b.step)
	}
}

// The network has one model only when every client has said that it holds the final one.
func TestBoardKnowsWhenAllAreEqual(t *testing.T) {
	b := sampleBoard()
	end := state(phaseFinished, 103, 100)
	for i, step := range []struct {
		name string
		ev   event.Event
		want bool
	}{
		{"client-1", event.Finished{Params: wire.Sum("agreed")}, false},
		{"client-1", end, false},
		{"client-2", end, false},
		{"client-2", event.Applied{Params: wire.Sum("agreed")}, false},
		{"client-2", event.Finished{Params: wire.Sum("agreed")}, true},
		{"client-2", event.Healed{Params: wire.Sum("other")}, false},
	} {
		b.event(at(20), step.name, step.ev)
		if got := b.equal(); got != step.want {
			t.Errorf("after event %d: equal is %v", i, got)
		}
	}
}

func TestSpeedForgetsThePast(t *testing.T) {
	b := sampleBoard()
	if got := b.tokensPerSecond(at(10)); got < 2000 || got > 2200 {
		t.Errorf("got %v tokens/s, want some 2000", got)
	}
	if got := b.tokensPerSecond(at(10 + 2*speedWindow.Seconds())); got != 0 {
		t.Errorf("long after the last share: got %v tokens/s", got)
	}
}

func TestScreenWithoutTerminalPrintsLinesThatDiffer(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, func(string) string { return "" })
	b := sampleBoard()
	s.show(b, at(10), false)
	s.show(b, at(10.5), false) // too soon
	s.show(b, at(10+lineEvery.Seconds()), true)
	s.note("something happened")
	s.show(b, at(10+lineEvery.Seconds()), true) // nothing new
	if got := strings.Count(out.String(), "\n"); got != 3 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %d lines:\n%s", got, out.String())
	}
}

// On a terminal each table takes the place of the one before, and notes stay above it.
func TestScreenOnTerminalRedrawsInPlace(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out, width: func() int { return 60 }}
	b := sampleBoard()
	s.show(b, at(10), true)
	s.note("client-2 died")
	s.show(b, at(11), true)
	s.show(b, at(12), true)
	rows := emulate(out.String())
	if len(rows) != 9 || rows[0] != "client-2 died" || rows[1] != "title" || !strings.HasPrefix(rows[8], "client-2 ") {
		t.Errorf("the terminal shows\n%s", strings.Join(rows, "\n"))
	}
	for _, row := range rows {
		if len(row) > 60 {
			t.Errorf("a row of %d characters: %q", len(row), row)
		}
	}
}

// emulate is a terminal that knows what screen uses: newlines, up, and clear to the end. It returns the rows that are not empty.
func emulate(s string) []string {
	rows := []string{""}
	row := 0
	for len(s) > 0 {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			i := strings.IndexAny(rest, "AJ")
			n := 0
			for _, d := range rest[:i] {
				n = 10*n + int(d-'0')
			}
			if rest[i] == 'A' {
				row -= n
			} else {
				rows = append(rows[:row:row], "")
			}
			s = rest[i+1:]
			continue
		}
		switch s[0] {
		case '\n':
			row++
			if row == len(rows) {
				rows = append(rows, "")
			}
		case '\r':
		default:
			rows[row] += s[:1]
		}
		s = s[1:]
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}
