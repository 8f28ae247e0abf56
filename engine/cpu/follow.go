package cpu

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/optim"
)

// follower adapts a codec that writes updates down.
type follower struct {
	codec.Followable
	schedule optim.Schedule
}

// Follow implements [engine.Follower].
func (f follower) Follow(params engine.Vector, update []byte, step uint32) error {
	v := vectorOf(params)
	err := f.Followable.Follow(v.Floats, update, f.schedule.LR(step))
	if err == nil {
		v.changed(versions.Add(1), nil)
	}
	return err
}

// Follower implements [engine.Engine].
func (e *Engine) Follower() (f engine.Follower, ok bool) {
	if c, ok := e.codec.(codec.Followable); ok {
		return follower{c, e.run.Schedule}, true
	}
	return nil, false
}
