package sim

import (
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// common is what all participants know alike. It computes each answer once, as their client.Common,
// and reads and checks each commitment once.
type common struct {
	client.Alone
	overlap coordinator.Round
	most    int // answers, commitments and the like that are remembered
	answers map[question]answer
	records map[string]*node.Authored    // by what gossip carries
	good    map[*node.Authored]bool      // signatures checked
	shares  map[wire.Hash]*client.Shares // by the round's seed
	rosters map[*byte]*client.Roster     // by state
	last    *client.Roster
	dockets map[*byte]*client.Docket // by state
}

// rememberMin is the least number of answers and the like that are remembered, and rememberRounds
// how many of each client.
const rememberMin, rememberRounds = 1 << 16, 16

func newCommon(cfg Config) *common {
	return &common{
		overlap: coordinator.Round(cfg.Overlap), most: max(rememberMin, rememberRounds*cfg.Clients), answers: map[question]answer{},
		records: map[string]*node.Authored{}, good: map[*node.Authored]bool{},
		shares: map[wire.Hash]*client.Shares{}, rosters: map[*byte]*client.Roster{}, dockets: map[*byte]*client.Docket{},
	}
}

// read is node.Config.Read. All that hold a commitment hold the same memory.
func (c *common) read(data []byte) (*node.Authored, bool) {
	a, known := c.records[string(data)]
	if known {
		return a, true
	}
	a, ok := node.ReadAuthored(data)
	if ok {
		if len(c.records) >= c.most {
			clear(c.records)
			clear(c.good)
		}
		c.records[string(data)] = a
	}
	return a, ok
}

// verify is node.Config.Verify: signatures would be most of what participants compute.
func (c *common) verify(a *node.Authored) bool {
	good, known := c.good[a]
	if !known {
		good = a.Verify()
		c.good[a] = good
	}
	return good
}

// A question is one that all participants with the same commitments ask of a round whose accepted
// results are final.
type question struct {
	seed   wire.Hash // the round's
	member coordinator.Member
	count  int
	ids    [3]wire.Hash
}

// answer is that of coordinator.State.Select.
type answer struct {
	i  int
	ok bool
}

// Select implements client.Common: each participant asks about each other one, and an answer takes
// a hash for each witness.
func (c *common) Select(s coordinator.State, a coordinator.Round, member coordinator.Member, ids []wire.Hash) (int, bool) {
	r, ok := s.At(a)
	if _, attested := s.At(a + c.overlap); !ok || !attested || !r.Final() {
		return s.Select(a, member, ids)
	}
	q := question{seed: r.Seed(), member: member, count: len(ids)}
	if copy(q.ids[:], ids) < len(ids) {
		return s.Select(a, member, ids)
	}
	found, known := c.answers[q]
	if !known {
		found.i, found.ok = s.Select(a, member, ids)
		if len(c.answers) >= c.most {
			clear(c.answers)
		}
		c.answers[q] = found
	}
	return found.i, found.ok
}

// statesMax bounds the states and rounds of which answers are remembered.
const statesMax = 16

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

// Docket implements client.Common.
func (c *common) Docket(s coordinator.State) *client.Docket {
	at := &s.Bytes()[0]
	if c.dockets[at] == nil {
		if len(c.dockets) >= statesMax {
			clear(c.dockets)
		}
		c.dockets[at] = c.Alone.Docket(s)
	}
	return c.dockets[at]
}
