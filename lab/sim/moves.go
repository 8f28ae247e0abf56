package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// A Move is what a participant does when a round opens.
type Move struct {
	Round  coordinator.Round
	Client int
	Do     Doing
}

// Doing is what a Move does.
type Doing uint8

// What participants do.
const (
	Come  Doing = iota // begin, unless it is there
	Leave              // withdraw from the run and end
	Crash              // end as kill -9 does
)

// first returns the number of clients that are there from the start.
func (c Config) first() (count uint32) {
	for i := range c.Clients {
		if !c.Later(i) {
			count++
		}
	}
	return count
}

// Later reports whether a client comes with its first move.
func (c Config) Later(client int) bool {
	i := slices.IndexFunc(c.Moves, func(m Move) bool { return m.Client == client })
	return i >= 0 && c.Moves[i].Do == Come
}

// move makes the moves that are due.
func (n *network) move(ctx context.Context) {
	s := n.state()
	if s.Round() > n.round {
		n.round = s.Round()
		if n.cfg.Entered != nil {
			n.cfg.Entered(s, n.clock.Now().Sub(n.start))
		}
	}
	due, left := Due(n.moves, s)
	n.moves = left
	for _, m := range due {
		n.check.movedAt = n.clock.Now()
		p := n.members[m.Client]
		switch m.Do {
		case Come:
			if p.comes = p.node != nil; !p.comes {
				p.begin(ctx)
			}
		case Leave:
			if left := p.node; left != nil {
				p.comes = false
				p.impaired()
				left.Stop(leavePatience, func() {
					p.end()
					if p.comes {
						p.begin(ctx)
					}
				})
			}
		case Crash:
			p.crash()
		}
	}
}

// Due splits moves that are left into those to make in a state of the run and later ones. No round
// opens while too few members are present: then those that are away come before their round.
func Due(moves []Move, s coordinator.State) (due, later []Move) {
	few := s.Round() > 0 && s.Phase() == coordinator.WaitingForMembers && s.Present() < s.Config().StartMembers
	if len(moves) == 0 || moves[0].Round > s.Round() && !few {
		return nil, moves
	}
	seen := map[int]bool{}
	for _, m := range moves {
		if m.Round <= s.Round() || few && m.Do == Come && !seen[m.Client] {
			due = append(due, m)
		} else {
			later = append(later, m)
		}
		seen[m.Client] = true
	}
	return due, later
}

// Cost returns the time that a job takes on a client's machine.
func (c Config) Cost(client int, j node.Job) time.Duration {
	switch {
	case j.Kind == "train" && c.Pace > 0:
		random := prng.New(wire.Sum("entrain/sim/pace", wire.AppendU64(nil, c.Seed), wire.AppendU32(nil, uint32(client))), "pace")
		return c.Pace/2 + time.Duration(random.Uint64n(uint64(c.Pace)))
	case j.Kind == "train":
		return time.Duration(j.Sequences) * 150 * time.Millisecond
	case j.Kind == "trace":
		return time.Duration(j.Sequences) * time.Second
	}
	return 20 * time.Millisecond
}

// times returns the times of a run in which shares take Pace.
func (c Config) times() spec.Times {
	n := func(most time.Duration, paces int) spec.Duration {
		return spec.Duration(max(most, time.Duration(paces)*c.Pace))
	}
	return spec.Times{
		Waiting: n(6*time.Second, 1), Warmup: n(20*time.Second, 4), RoundTrain: n(10*time.Second, 3), RoundWitness: n(2*time.Second, 1),
		Cooldown: n(3*time.Second, 1), Epoch: n(60*time.Second, 20),
	}
}

// Setup is what the network of a Config begins with, for those who run it elsewhere.
type Setup struct {
	Spec    spec.Spec
	Run     engine.Run
	Initial []float32
	Genesis host.Genesis
	Owner   key.Private
	Create  host.CreateRun
	Keys    []key.Private // by client

	clean func() error
}

// RunName is the name of the simulated run.
const RunName = runName

// Prepare makes the setup of a Config without verification. The caller must close it.
func Prepare(ctx context.Context, cfg Config) (*Setup, error) {
	s, err := simSpec(cfg)
	if err != nil {
		return nil, err
	}
	n := &network{cfg: cfg, spec: s, seed: wire.Sum("entrain/sim", wire.AppendU64(nil, cfg.Seed)), owner: key.FromSeed(wire.Sum("entrain/sim/owner"))}
	if err := n.prepareData(ctx); err != nil {
		return nil, err
	}
	setup := &Setup{Genesis: n.genesis(), Owner: n.owner, clean: n.clean}
	if err := n.makeRun(); err != nil {
		return nil, errors.Join(err, n.clean())
	}
	if setup.Create, err = n.creation(); err != nil {
		return nil, errors.Join(err, n.clean())
	}
	setup.Spec, setup.Run, setup.Initial = n.spec, n.run, n.initial
	for i := range cfg.Clients {
		setup.Keys = append(setup.Keys, n.key(i))
	}
	return setup, nil
}

// Close removes the setup's files.
func (s *Setup) Close() error { return s.clean() }
