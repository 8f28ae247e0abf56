package table

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
)

// Roster names the members present in a state.
type Roster struct {
	Index map[key.Public]coordinator.Member

	epoch          coordinator.Epoch
	count, present uint32
}

// Present returns the number of members present.
func (r *Roster) Present() uint32 { return r.present }

// Like reports whether nobody can have come or gone between two states.
func (r *Roster) Like(o *Roster) bool {
	return r != nil && r.epoch == o.epoch && r.count == o.count && r.present == o.present
}

// RosterOf returns the members of a state: before if that is like it.
func RosterOf(s coordinator.State, before *Roster) *Roster {
	now := Roster{epoch: s.Epoch(), count: uint32(s.Count()), present: s.Present()}
	if before.Like(&now) {
		return before
	}
	now.Index = make(map[key.Public]coordinator.Member, now.present)
	for i := range s.Count() {
		if s.Status(i).Present() {
			now.Index[s.Key(i)] = i
		}
	}
	return &now
}
