package onchain

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

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
	on, err := GetRun(ctx, l, run) // which knows soonest that there is none
	if err != nil {
		return d, err
	}
	s := on.Snapshot
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
	// An idle chain makes no blocks: that of the claim will have the time of the clock.
	d.Tokens = ledger.NewClaims(s, max(now.TimeMs, uint64(time.Now().UnixMilli()))).Of(member)
	return d, nil
}
