package onchain

import (
	"bytes"
	"context"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

// Claims computes what a run would pay its members, on a copy of its state.
type Claims struct {
	trial coordinator.State
	nowMs uint64
}

// NewClaims begins with a run's state at a time of the chain. The snapshot's own time is when the
// run last changed.
func NewClaims(s ledger.Snapshot, nowMs uint64) Claims {
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

// Due is what a run owes a member.
type Due struct {
	Run    string     `json:"run"`
	Member key.Public `json:"member"`
	Payee  key.Public `json:"payee"`
	Tokens uint64     `json:"tokens"`
}

// GetDue returns what a claim of the member or validator would pay now, and to whom.
func GetDue(ctx context.Context, l ledger.Chain, run string, member key.Public) (Due, error) {
	d := Due{Run: run, Member: member, Payee: member}
	s, err := GetSnapshot(ctx, l, run)
	if err != nil {
		return d, err
	}
	now, err := l.Status(ctx)
	if err != nil {
		return d, err
	}
	v, validates := s.State.Validator(member)
	switch i, ok := s.State.Find(member); {
	case ok && !s.State.Member(i).Payee.IsZero():
		d.Payee = s.State.Member(i).Payee
	case ok:
	case validates:
		d.Payee = v.Payee
	default:
		return d, fmt.Errorf("%s was never a member or a validator", member)
	}
	d.Tokens = NewClaims(s, now.TimeMs).Of(member)
	return d, nil
}
