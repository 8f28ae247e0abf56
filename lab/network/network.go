// Package network runs real members over libp2p, in one process on loopback addresses, and beside
// them the same run in package sim, to compare what members send: whether the simulation's messages
// and bytes are those of the real network.
//
// Both runs have the members of one [Config]: the same keys, model, specification, times of shares
// and moves (who crashes, leaves, comes back and joins, in which round). The real one has the wall
// clock, libp2p's network and files; its ledger is in memory too, on a loop of its own. Both are
// counted by one [Counter], between node and network.
package network

import (
	"context"
	"errors"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/lab/sim"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Config configures a run. Start from [NewConfig].
type Config struct {
	sim.Config
	// Memory has connections of libp2p in memory in place of TCP on loopback addresses, so that they
	// can be under the clock of testing/synctest.
	Memory  bool
	For     time.Duration // after which the real run ends; 0: at the last step
	Observe func(Record)  // called when a round opens
}

// Record is what all members had sent when a round opened.
type Record struct {
	Round   coordinator.Round `json:"round"`
	Step    coordinator.Step  `json:"step"`
	Epoch   coordinator.Epoch `json:"epoch"`
	Present int               `json:"present"` // members
	Elapsed float64           `json:"elapsed"` // seconds since the beginning
	Counts  Counts            `json:"counts"`
	// Wire is what the network sent: each gossip message on each hop (lp2p.CountGossip), and streams
	// by their protocol, in the simulation all as "stream".
	Wire map[string]Count `json:"wire"`
	// Carried is the bytes that connections in memory have carried, with TLS and yamux, or that the
	// loopback interface of the process's network namespace has sent since it came up.
	Carried uint64 `json:"carried,omitempty"`
}

// NewConfig returns a run of members that all come at the start, and of newcomers, which come one
// after another in later rounds. In each round from the third, churn members leave or crash by
// chance, and come back one to three rounds later.
func NewConfig(seed uint64, members, newcomers, churn int, steps uint32, pace time.Duration) Config {
	c := Config{Config: sim.Config{
		Seed: seed, Clients: members + newcomers, Steps: steps, Pace: pace, Everybody: true,
		Delay: 5 * time.Millisecond, Jitter: 10 * time.Millisecond, Limit: 1000 * time.Hour,
	}}
	random := prng.New(wire.Sum("entrain/lab/network", wire.AppendU64(nil, seed)), "moves")
	back := make([]coordinator.Round, members) // when each is back
	every := max(1, int(steps)/(newcomers+1))
	for r := coordinator.Round(3); r <= coordinator.Round(2*steps); r++ {
		for i, at := range back {
			if at == r {
				c.Moves = append(c.Moves, sim.Move{Round: r, Client: i, Do: sim.Come})
			}
		}
		if k := int(r-3) / every; int(r-3)%every == 0 && k < newcomers {
			c.Moves = append(c.Moves, sim.Move{Round: r, Client: members + k, Do: sim.Come})
		}
		for range churn {
			i := int(random.Uint64n(uint64(members)))
			if back[i]+restFor > r && back[i] > 0 {
				continue
			}
			do := sim.Leave
			if random.Uint64n(2) == 0 {
				do = sim.Crash
			}
			c.Moves = append(c.Moves, sim.Move{Round: r, Client: i, Do: do})
			back[i] = r + 1 + coordinator.Round(random.Uint64n(3))
		}
	}
	return c
}

// Aggregate has a quarter of the members be witnesses, at most 32, and the others follow them, or
// groups of aggregators or more sum slices of the updates, if that is not 0.
func (c *Config) Aggregate(followers bool, aggregators uint16) {
	c.Followers, c.Aggregators = followers, aggregators
	if followers {
		c.Witnesses = uint16(min(32, max(1, c.Clients/4)))
	}
	if aggregators > 0 {
		c.Overlap = 1
	}
}

// restFor is the number of rounds that a member that came back stays at least.
const restFor = 2

// counter returns a counter for a run.
func (c Config) counter(ctx context.Context) (*Counter, error) {
	s, err := sim.Prepare(ctx, c.Config)
	if err != nil {
		return nil, err
	}
	count, err := newCounter(s)
	return count, errors.Join(err, s.Close())
}

func newCounter(s *sim.Setup) (*Counter, error) {
	e, err := newEngine(s.Run)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return &Counter{payload: e.PayloadMax(), model: min(4*e.ParamsLen(), 4*e.StateLen())}, nil
}

func newEngine(run engine.Run) (engine.Engine, error) {
	return cpu.New(run, cpu.Options{Workers: 1, Micro: 4})
}

// Simulate runs the simulation up to the last round, and returns a record for each round.
func Simulate(ctx context.Context, c Config, last coordinator.Round) (list []Record, err error) {
	count, err := c.counter(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.Wrap = count.Wrap
	c.Count = func(stream bool, bytes int) {
		if stream {
			count.sent("stream", bytes)
		} else {
			count.sent(lp2p.CountGossip, bytes)
		}
	}
	c.Entered = func(s coordinator.State, at time.Duration) {
		list = append(list, record(s, at, count))
		if c.Observe != nil {
			c.Observe(list[len(list)-1])
		}
		if last > 0 && s.Round() >= last {
			end(errEnough)
		}
	}
	_, err = sim.Run(ctx, c.Config)
	if context.Cause(ctx) == errEnough {
		err = nil
	}
	return list, err
}

var errEnough = errors.New("enough rounds")

func record(s coordinator.State, at time.Duration, count *Counter) Record {
	return Record{Round: s.Round(), Step: s.Step(), Epoch: s.Epoch(), Present: int(s.Present()), Elapsed: at.Seconds(), Counts: count.Counts(), Wire: count.Wire()}
}
