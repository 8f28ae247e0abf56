package sim

import (
	"sync"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/wire"
)

// common is what all participants know alike. It computes each answer once, as their client.Common,
// and reads and checks each commitment once. Two parts that ask at the same time may both compute
// an answer.
type common struct {
	client.Alone
	overlap coordinator.Round
	most    int // answers, commitments and the like that are remembered

	mu      sync.RWMutex                 // guards what follows
	answers map[wire.Hash][]answer       // by the round's seed, and by member
	records map[string]*gossip.Authored  // by what gossip carries
	shares  map[wire.Hash]*client.Shares // by the round's seed
	rosters map[*byte]*client.Roster     // by state
	last    *client.Roster
	dockets map[*byte]*client.Docket // by state
	news    map[step]*[]event.Event  // of disputes and convictions
}

// step is from one state to another, and the number of convictions before it.
type step struct {
	before, now *client.Docket
	convicted   uint32
}

// rememberMin is the least number of answers and the like that are remembered, and rememberRounds
// how many of each client.
const rememberMin, rememberRounds = 1 << 16, 16

func newCommon(cfg Config) *common {
	return &common{
		overlap: coordinator.Round(cfg.Overlap), most: max(rememberMin, rememberRounds*cfg.Clients), answers: map[wire.Hash][]answer{},
		records: map[string]*gossip.Authored{},
		shares:  map[wire.Hash]*client.Shares{}, rosters: map[*byte]*client.Roster{}, dockets: map[*byte]*client.Docket{}, news: map[step]*[]event.Event{},
	}
}

// read is node.Config.Read. All that hold a commitment hold the same memory, and its signature is
// checked once: signatures would be most of what participants compute.
func (c *common) read(data []byte) (*gossip.Authored, bool) {
	c.mu.RLock()
	a, known := c.records[string(data)]
	c.mu.RUnlock()
	if known {
		return a, true
	}
	a, ok := gossip.Read(data)
	if !ok {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, known := c.records[string(data)]; known {
		return first, true
	}
	if len(c.records) >= c.most {
		clear(c.records)
	}
	c.records[string(data)] = a
	return a, true
}

// answer is that of coordinator.State.Select about a member of a round whose accepted results are
// final, to those that asked last. Nearly all know the same commitments.
type answer struct {
	ids   [3]wire.Hash
	count int // of ids; 0: there is none
	i     int
	ok    bool
}

// Select implements client.Common: each participant asks about each other one, and an answer takes
// a hash for each witness.
func (c *common) Select(s coordinator.State, a coordinator.Round, member coordinator.Member, ids []wire.Hash) (int, bool) {
	r, ok := s.At(a)
	if _, attested := s.At(a + c.overlap); !ok || !attested || !r.Final() || len(ids) == 0 || len(ids) > len(answer{}.ids) {
		return s.Select(a, member, ids)
	}
	q, seed := answer{count: len(ids)}, r.Seed()
	copy(q.ids[:], ids)
	var found answer
	c.mu.RLock()
	if list := c.answers[seed]; int(member) < len(list) {
		found = list[member]
	}
	c.mu.RUnlock()
	if found.count == q.count && found.ids == q.ids {
		return found.i, found.ok
	}
	q.i, q.ok = s.Select(a, member, ids)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[seed] == nil {
		if len(c.answers) >= statesMax {
			clear(c.answers)
		}
		c.answers[seed] = make([]answer, s.Limits().Members)
	}
	c.answers[seed][member] = q
	return q.i, q.ok
}

// statesMax bounds the states and rounds of which answers are remembered.
const statesMax = 16

// Shares implements client.Common.
func (c *common) Shares(r coordinator.RoundState) *client.Shares {
	return once(&c.mu, c.shares, r.Seed(), func() *client.Shares { return c.Alone.Shares(r) })
}

// Roster implements client.Common.
func (c *common) Roster(s coordinator.State, before *client.Roster) *client.Roster {
	now := once(&c.mu, c.rosters, &s.Bytes()[0], func() *client.Roster {
		c.last = c.Alone.Roster(s, c.last)
		return c.last
	})
	if before.Like(now) {
		return before
	}
	return now
}

// Docket implements client.Common.
func (c *common) Docket(s coordinator.State) *client.Docket {
	return once(&c.mu, c.dockets, &s.Bytes()[0], func() *client.Docket { return c.Alone.Docket(s) })
}

// News returns what is told of disputes and convictions, which all tell alike.
func (c *common) News(before, now *client.Docket, convicted uint32, list func() []event.Event) []event.Event {
	return *once(&c.mu, c.news, step{before, now, convicted}, func() *[]event.Event {
		news := list()
		return &news
	})
}

// once returns the answer to a question, which it computes if it does not remember it.
func once[Q comparable, A any](mu *sync.RWMutex, answers map[Q]*A, q Q, compute func() *A) *A {
	mu.RLock()
	a := answers[q]
	mu.RUnlock()
	if a != nil {
		return a
	}
	mu.Lock()
	defer mu.Unlock()
	if answers[q] == nil {
		if len(answers) >= statesMax {
			clear(answers)
		}
		answers[q] = compute()
	}
	return answers[q]
}
