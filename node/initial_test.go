package node

import (
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
)

// A member that cannot make the run's first parameters, because the run goes on from a checkpoint that it does not have, gets them from one
// that does; so does one whose checkpoint is another.
func TestTheFirstParametersComeFromWhoHasThem(t *testing.T) {
	w := newLargeWorld(t, 60, 3)
	w.start(0)
	none := w.start(1, func(c *Config) { c.Initial = func() []float32 { return nil } })
	wrong := w.start(2, func(c *Config) {
		c.Initial = func() []float32 {
			p := w.initial()
			p[7]++
			return p
		}
	})
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	for i, h := range []*testNode{none, wrong} {
		ev, ok := first[event.Healed](h)
		if !ok || !strings.Contains(ev.Source, "peers' model") || ev.Round != 0 {
			t.Errorf("node %d came to the model by %+v", i+1, ev)
		}
		if _, ok := first[event.Trained](h); !ok {
			t.Errorf("node %d trained nothing", i+1)
		}
	}
	if w.state().Rollbacks() != 0 {
		t.Error("the run went back")
	}
}
