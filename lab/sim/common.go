package sim

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
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

	answers answers[wire.Hash, []atomic.Pointer[answer]] // by the round's seed, and by member
	shares  answers[wire.Hash, client.Shares]            // by the round's seed
	rosters answers[*byte, client.Roster]                // by state
	last    *client.Roster                               // guarded by rosters
	dockets answers[*byte, client.Docket]                // by state
	news    answers[step, []event.Event]                 // of disputes and convictions
	records [64]records                                  // by a byte of the signature
}

// records are commitments by what gossip carries. Parts that read others do not wait for each
// other.
type records struct {
	mu   sync.RWMutex
	read map[string]*gossip.Authored
	_    [32]byte // no other lock is in its line of the caches
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
	return &common{overlap: coordinator.Round(cfg.Overlap), most: max(rememberMin, rememberRounds*cfg.Clients)}
}

// read is node.Config.Read. All that hold a commitment hold the same memory, and its signature is
// checked once: signatures would be most of what participants compute.
func (c *common) read(data []byte) (*gossip.Authored, bool) {
	const signed = len(key.Signature{})
	if len(data) < signed {
		return nil, false
	}
	r := &c.records[data[len(data)-signed]%byte(len(c.records))]
	r.mu.RLock()
	a, known := r.read[string(data)]
	r.mu.RUnlock()
	if known {
		return a, true
	}
	a, ok := gossip.Read(data)
	if !ok {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, known := r.read[string(data)]; known {
		return first, true
	}
	if r.read == nil || len(r.read) >= c.most/len(c.records) {
		r.read = map[string]*gossip.Authored{}
	}
	r.read[string(data)] = a
	return a, true
}

// answer is that of coordinator.State.Select about a member of a round whose accepted results are
// final, to those that asked last. Nearly all know the same commitments.
type answer struct {
	ids   [3]wire.Hash
	count int // of ids
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
	kept := &(*c.answers.to(seed, func() *[]atomic.Pointer[answer] {
		list := make([]atomic.Pointer[answer], s.Limits().Members)
		return &list
	}))[member]
	if found := kept.Load(); found != nil && found.count == q.count && found.ids == q.ids {
		return found.i, found.ok
	}
	q.i, q.ok = s.Select(a, member, ids)
	kept.Store(&q)
	return q.i, q.ok
}

// statesMax bounds the states and rounds of which answers are remembered.
const statesMax = 16

// Shares implements client.Common.
func (c *common) Shares(r coordinator.RoundState) *client.Shares {
	return c.shares.to(r.Seed(), func() *client.Shares { return c.Alone.Shares(r) })
}

// Roster implements client.Common.
func (c *common) Roster(s coordinator.State, before *client.Roster) *client.Roster {
	now := c.rosters.to(&s.Bytes()[0], func() *client.Roster {
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
	return c.dockets.to(&s.Bytes()[0], func() *client.Docket { return c.Alone.Docket(s) })
}

// News returns what is told of disputes and convictions, which all tell alike.
func (c *common) News(before, now *client.Docket, convicted uint32, list func() []event.Event) []event.Event {
	return *c.news.to(step{before, now, convicted}, func() *[]event.Event {
		news := list()
		return &news
	})
}

// answers are those to the questions of a kind, of which there are few. A part that finds one does
// not wait: all parts ask at once.
type answers[Q comparable, A any] struct {
	known atomic.Pointer[map[Q]*A] // nobody changes the map
	mu    sync.Mutex               // held to replace it
}

// to returns the answer to a question, which it computes if it does not remember it.
func (l *answers[Q, A]) to(q Q, compute func() *A) *A {
	if known := l.known.Load(); known != nil && (*known)[q] != nil {
		return (*known)[q]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[Q]*A{}
	if known := l.known.Load(); known != nil {
		if a := (*known)[q]; a != nil {
			return a
		}
		if len(*known) < statesMax {
			next = maps.Clone(*known)
		}
	}
	next[q] = compute()
	l.known.Store(&next)
	return next[q]
}
