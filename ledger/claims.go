package ledger

import (
	"bytes"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
)

// Claims computes what a run would pay its members, on a copy of its state.
type Claims struct {
	trial coordinator.State
	nowMs uint64
}

// NewClaims begins with a run's state at a time of the chain. The snapshot's own time is when the
// run last changed.
func NewClaims(s Snapshot, nowMs uint64) Claims {
	trial, err := coordinator.Open(bytes.Clone(s.State.Bytes()))
	if err != nil {
		panic(fmt.Sprintf("entrain: copy of a state: %v", err)) // the client has opened it before
	}
	return Claims{trial: trial, nowMs: max(nowMs, s.TimeMs)}
}

// Of returns what a member's claim would pay now, after the payments to the members that Of was
// called for before.
func (c Claims) Of(member key.Public) uint64 {
	if c.trial.Apply(coordinator.Env{NowMs: c.nowMs, Sender: member}, coordinator.Claim{}) != nil {
		return 0
	}
	_, amount := c.trial.Payout()
	return amount
}
