package sim

import (
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// common is the client.Common of all participants. It computes each answer once.
type common struct {
	client.Alone
	answers map[question]answer
	shares  map[wire.Hash]*client.Shares // by the round's seed
	rosters map[*byte]*client.Roster     // by state
	last    *client.Roster
}

func newCommon() *common {
	return &common{answers: map[question]answer{}, shares: map[wire.Hash]*client.Shares{}, rosters: map[*byte]*client.Roster{}}
}

// A question is one that all participants with the same state and commitments ask of it.
type question struct {
	state  *byte // where it begins: states stay as they are
	round  coordinator.Round
	member coordinator.Member
	count  int
	ids    [3]wire.Hash
}

// answer is that of coordinator.State.Select.
type answer struct {
	i  int
	ok bool
}

// questionsMax bounds the answers that are remembered, and with them the states.
const questionsMax = 1 << 16

// Select implements client.Common: each participant asks about each other one, and an answer takes
// a hash for each witness.
func (c *common) Select(s coordinator.State, a coordinator.Round, member coordinator.Member, ids []wire.Hash) (int, bool) {
	q := question{state: &s.Bytes()[0], round: a, member: member, count: len(ids)}
	if copy(q.ids[:], ids) < len(ids) {
		return s.Select(a, member, ids)
	}
	found, known := c.answers[q]
	if !known {
		found.i, found.ok = s.Select(a, member, ids)
		if len(c.answers) == questionsMax {
			clear(c.answers)
		}
		c.answers[q] = found
	}
	return found.i, found.ok
}

// statesMax bounds the states and rounds of which answers are remembered.
const statesMax = 64

// Shares implements client.Common.
func (c *common) Shares(r coordinator.RoundState) *client.Shares {
	seed := r.Seed()
	if c.shares[seed] == nil {
		if len(c.shares) >= statesMax {
			clear(c.shares)
		}
		c.shares[seed] = c.Alone.Shares(r)
	}
	return c.shares[seed]
}

// Roster implements client.Common.
func (c *common) Roster(s coordinator.State, before *client.Roster) *client.Roster {
	at := &s.Bytes()[0]
	if c.rosters[at] == nil {
		if len(c.rosters) >= statesMax {
			clear(c.rosters)
		}
		c.last = c.Alone.Roster(s, c.last)
		c.rosters[at] = c.last
	}
	if before.Like(c.rosters[at]) {
		return before
	}
	return c.rosters[at]
}
