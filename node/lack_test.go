package node

import (
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
)

// waits are what a node told a person of the model that it waits for.
func (h *testNode) waits() (list []string) {
	for _, e := range h.events {
		if note, ok := e.(event.Note); ok && strings.Contains(note.Text, "waiting for the model") {
			list = append(list, note.Text)
		}
	}
	return list
}

// The last holders of the model are gone. A newcomer says what it waits for, again and again but not without end, and what helps. Then
// another one brings the model from a checkpoint, and the run goes on to its end with both.
func TestANewcomerThatWaitsForTheModelSaysSo(t *testing.T) {
	w := newLargeWorld(t, 60, 2)
	w.start(0)
	w.start(1)
	w.until(10*time.Minute, func() bool { _, ok := w.state().LastCheckpoint(); return ok })
	for i := range 2 {
		w.crash(i)
	}
	newcomer := w.start(2)
	began := w.clock.Now()
	w.until(time.Hour, func() bool { return w.clock.Now().Sub(began) > 10*time.Minute })
	told := newcomer.waits()
	if len(told) < 3 || len(told) > 12 {
		t.Fatalf("in ten minutes it says %d times that it waits: %q", len(told), told)
	}
	agreed, _ := w.state().Params() // those of the last checkpoint: the run has gone back
	for _, want := range []string{agreed.String(), "that are online gives it", "--from DIR"} {
		if !strings.Contains(told[len(told)-1], want) {
			t.Errorf("it says %q, want %q in it", told[len(told)-1], want)
		}
	}
	// One that brings other parameters than it says helps nobody, and harms nobody.
	asked := 0
	liar := w.start(3, func(c *Config) {
		c.Recall = func(wire.Hash) []float32 { asked++; return w.initial() }
	})
	w.until(time.Minute, func() bool { return asked > 0 && len(liar.waits()) > 0 })
	if asked > 2 {
		t.Errorf("the wrong checkpoint was read %d times", asked)
	}
	if !strings.Contains(newcomer.waits()[len(newcomer.waits())-1], "parameters "+agreed.String()) {
		t.Error("the newcomer took wrong parameters")
	}
	bringer := w.start(4, func(c *Config) {
		c.Recall = func(root wire.Hash) []float32 {
			for _, h := range w.hosts[:2] { // one of them wrote it
				if h.store.of == root {
					return h.store.checkpoint
				}
			}
			return nil
		}
	})
	w.until(30*time.Minute, w.finished)
	w.agree(2, 4)
	if ev, ok := first[event.Healed](bringer); !ok || ev.Source != "a checkpoint on this machine" {
		t.Errorf("the model came by %+v", ev)
	}
	if _, ok := first[event.Trained](newcomer); !ok {
		t.Error("the newcomer trained nothing")
	}
}
