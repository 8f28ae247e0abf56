package mem

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/ledger"
)

// line is the states of a run that its light watchers are shown. All get the same ones.
type line struct {
	newest  coordinator.State // as of the last block
	changed uint64            // the height of the change that was shown last
	shown   ledger.Snapshot
}

// Light watchers wait so long for what is not urgent: while a round goes on, and else.
const lightRoundWait, lightWait = 30 * time.Second, 5 * time.Second

// look has light watchers shown the newest states where that is due.
func (c *Chain) look() {
	for name, l := range c.lines {
		v, ok := c.host.View(name)
		if !ok {
			continue
		}
		urgent := l.changed == 0 || change.Urgent(l.newest, v.State)
		l.newest = v.State
		wait := lightWait
		switch v.State.Phase() {
		case coordinator.RoundTrain, coordinator.RoundWitness:
			wait = lightRoundWait
		}
		now := c.host.TimeMs()
		if v.Changed == l.changed || !urgent && now < l.shown.TimeMs+uint64(wait.Milliseconds()) {
			continue
		}
		picture := change.Of(v.State)
		s, err := coordinator.Attach(picture.State())
		if err != nil {
			panic("mem: a state without filters: " + err.Error())
		}
		l.changed, l.shown = v.Changed, ledger.Snapshot{Height: c.host.Height(), TimeMs: now, State: s, Light: picture.Light()}
	}
}

// lighter is a client of a chain that knows light states.
type lighter struct{ *Client }

var _ ledger.Lighter = lighter{}

// WatchLightly implements ledger.Lighter. With reports it shows whole states, as a replica does
// that knows none.
func (c lighter) WatchLightly(ctx context.Context, run string, f func(ledger.Snapshot)) (lightly func(light, reports bool)) {
	w := &watch{ctx: ctx, run: run, f: f}
	c.post(func() {
		if c.chain.lines[run] == nil {
			c.chain.lines[run] = &line{}
		}
	})
	c.watch(w)
	return func(light, reports bool) {
		on := light && !reports
		c.post(func() {
			w.light = on
			if !on && w.sentLight {
				w.sent = false // what was sent lacks something
			}
			c.tell()
		})
	}
}
