// Package money hunts for ways to make tokens from nothing. A gang of twenty keys sends random
// transactions to a chain on which honest keys run a funded run, work in it, check results and lend
// to pools. At the end of an episode everything is taken apart: all leave, claim, close and
// collect. The gang may then have no more tokens than it began with, but for what it was paid for
// accepted work, and less where it was convicted. The honest member may be convicted of nothing.
// The host itself compares all tokens with the supply after every transaction.
//
// An episode follows from its seed and a list of moves. A finding is reduced to the fewest moves
// that still make it.
package money

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

const (
	gangSize = 20
	moves    = 300 // in an episode
	wealth   = 1 << 30
	funded   = 1 << 20 // in the honest run's treasury
	chainID  = "money"
	goodRun  = "good"
	bornMs   = 1_800_000_000_000
)

// A Finding is an episode whose gang has gained tokens, or that broke the host.
type Finding struct {
	Seed   uint64   `json:"seed"`
	Gained uint64   `json:"gained"` // tokens beyond pay for accepted work
	Error  string   `json:"error"`  // what the host panicked with, if it did
	Moves  []uint64 `json:"moves"`  // numbers of the moves that are needed
	Script []string `json:"script"` // what they are
}

// Options say how long to hunt.
type Options struct {
	First    uint64 // seed of the first episode
	Episodes uint64 // 0: until Limit
	Limit    time.Duration
	Workers  int
	Observe  func(Finding)
}

// Summary is what a hunt came to.
type Summary struct {
	Episodes     uint64         `json:"episodes"`
	Transactions uint64         `json:"transactions"`
	Accepted     map[string]int `json:"accepted"` // transactions that did something, by kind
	Findings     []Finding      `json:"findings"`
}

// Run plays episodes until the limit is over, the number is reached or ctx ends.
func Run(ctx context.Context, o Options) Summary {
	if o.Limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.Limit)
		defer stop()
	}
	sum := Summary{Accepted: map[string]int{}}
	next := o.First
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range max(1, o.Workers) {
		wg.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				seed := next
				next++
				over := o.Episodes > 0 && seed >= o.First+o.Episodes
				mu.Unlock()
				if over {
					return
				}
				e := play(seed, nil)
				found, bad := e.finding(seed)
				if bad {
					found = shrink(seed, found)
				}
				mu.Lock()
				sum.Episodes++
				sum.Transactions += e.sent
				for name, n := range e.accepted {
					sum.Accepted[name] += n
				}
				if bad {
					sum.Findings = append(sum.Findings, found)
					if o.Observe != nil {
						o.Observe(found)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sum
}

// shrink leaves out moves as long as the finding stays: first halves, then ever smaller parts.
func shrink(seed uint64, found Finding) Finding {
	list := make([]uint64, moves)
	for i := range list {
		list[i] = uint64(i)
	}
	for part := len(list) / 2; part > 0; {
		shorter := false
		for at := 0; at < len(list); {
			less := slices.Delete(slices.Clone(list), at, min(len(list), at+part))
			if f, bad := play(seed, less).finding(seed); bad && (f.Error == "") == (found.Error == "") {
				list, found, shorter = less, f, true
			} else {
				at += part
			}
		}
		if !shorter {
			part /= 2
		}
	}
	found.Moves = list
	return found
}

// episode is a chain with everybody on it.
type episode struct {
	host     *host.Host
	height   uint64
	nonce    uint64
	ahead    uint64        // of the chain's time, the next block's
	keys     []key.Private // the gang
	owner    key.Private   // of the honest run
	member   key.Private
	lender   key.Private
	script   []string
	sent     uint64
	accepted map[string]int
	pay      int64             // tokens that the gang may have gained: see count
	points   map[string]uint64 // of each of the gang in the honest run, as seen last
	earned   map[string]uint64
	guilty   uint32 // convictions in the honest run, as seen last
	panicked string
	before   uint64
}

var gang, honest = people("gang", gangSize), people("honest", 3)

func people(what string, n int) (list []key.Private) {
	for i := range n {
		list = append(list, key.FromSeed(wire.Sum("entrain/lab/money", []byte(what), wire.AppendU64(nil, uint64(i)))))
	}
	return list
}

// play plays an episode; only the moves in list, or all if it is nil.
func play(seed uint64, list []uint64) (e *episode) {
	e = &episode{
		keys: gang, owner: honest[0], member: honest[1], lender: honest[2],
		accepted: map[string]int{}, points: map[string]uint64{}, earned: map[string]uint64{},
	}
	defer func() {
		if p := recover(); p != nil {
			e.panicked = fmt.Sprint(p)
		}
	}()
	e.found(seed)
	for i := range uint64(moves) {
		if list != nil {
			if _, ok := slices.BinarySearch(list, i); !ok {
				continue
			}
		}
		e.move(prng.New(wire.Sum("entrain/lab/money/seed", wire.AppendU64(nil, seed)), fmt.Sprint("move ", i)))
	}
	e.liquidate()
	return e
}

// finding reports whether the episode broke something.
func (e *episode) finding(seed uint64) (Finding, bool) {
	f := Finding{Seed: seed, Error: e.panicked, Script: e.script}
	if e.panicked != "" {
		return f, true
	}
	if gained := int64(e.wealth()) - int64(e.before) - e.pay; gained > 0 {
		f.Gained = uint64(gained)
	}
	return f, f.Gained > 0
}

// found makes the chain, the honest run, and its member.
func (e *episode) found(seed uint64) {
	g := host.Genesis{Chain: chainID, TimeMs: bornMs}
	for _, k := range slices.Concat(e.keys, []key.Private{e.owner, e.member, e.lender}) {
		g.Accounts = append(g.Accounts, host.Allocation{Key: k.Public(), Amount: wealth})
	}
	slices.SortFunc(g.Accounts, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
	h, err := host.NewHost(g, host.Rules{Referees: func([]byte) (dispute.Referee, error) { return check.Program{}, nil }})
	if err != nil {
		panic(err)
	}
	e.host = h
	random := prng.New(wire.Sum("entrain/lab/money/seed", wire.AppendU64(nil, seed)), "chain")
	e.before = e.wealth()
	run := newRun(&random, goodRun, e.owner.Public())
	txs := [][]byte{e.sign(e.owner, bring(goodRun, funded, coordinator.Fund{})), e.sign(e.member, bring(goodRun, 5000, coordinator.Join{}))}
	if seed%2 == 0 { // some of the gang are there from the start, and everything is checked
		checked(&run.Config, 100)
		run.Limits.Members, run.Config.TotalSteps, run.Config.Stake, run.Config.Rate = 8, 100, 1000, 1
		run.Config.Slots = min(run.Config.Slots, 8)
		for _, k := range e.keys[:4] {
			txs = append(txs, e.sign(k, bring(goodRun, 5000, coordinator.Join{})))
		}
	}
	e.block(200, append([][]byte{e.sign(e.owner, run)}, txs...)...)
	if n := len(e.host.Runs()); n != 1 {
		panic(fmt.Sprint("the honest run was not created: ", n))
	}
}

// newRun draws a run whose times are short, so that an episode sees several of its epochs.
func newRun(random *prng.Source, name string, owner key.Public) host.CreateRun {
	spec := []byte("name = \"" + name + "\"\n")
	n := func(list ...uint64) uint64 { return list[random.Uint64n(uint64(len(list)))] }
	c := host.CreateRun{
		Limits: coordinator.Limits{Members: uint32(n(2, 4, 8)), Witnesses: 4},
		Config: coordinator.Config{
			Name: name, MinMembers: 1, StartMembers: 1, WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000,
			EpochMs: n(2000, 60_000), TotalSteps: coordinator.Step(n(2, 20)), BatchStart: 8, BatchEnd: 8, SequenceTokens: 16,
			MissedMax: uint8(n(0, 3)), Overlap: uint8(n(0, 1)), Stake: n(0, 1000), UnbondMs: n(0, 5000, 24*3600*1000), Rate: n(0, 1, 7, 1000),
			RegisterCost: n(0, 300),
			ModelHash:    wire.Sum("entrain/lab/money/model"), SpecHash: host.SpecHash(spec), Owner: owner,
		},
		Spec: spec,
	}
	if n(0, 1) == 1 {
		checked(&c.Config, uint8(n(20, 100)))
	}
	if n(0, 1) == 1 {
		c.Limits.Validators = 2
		c.Config.Validators, c.Config.ScoreWindows, c.Config.Emission = 2, 2, n(0, 100, 5000)
		c.Config.ValidatorPercent, c.Config.Penalty = uint8(n(0, 20)), uint8(n(0, 50))
	}
	if n(0, 1, 1) == 0 {
		c.Config.Slots = c.Limits.Members
	}
	return c
}

// checked has a part in per cent of a run's results checked.
func checked(c *coordinator.Config, percent uint8) {
	c.VerificationPercent, c.VerifyMs, c.DisputeMs = percent, verifyMs, disputeMs
	c.StateHash, c.UnbondMs = wire.Sum("entrain/lab/money/state"), max(c.UnbondMs, verifyMs)
}

func bring(run string, value uint64, m coordinator.Message) host.RunMessage {
	b := host.ToRun(run, m)
	b.Value = value
	return b
}

func (e *episode) sign(k key.Private, body host.Body) []byte {
	e.nonce++
	b, err := host.Tx{Chain: chainID, Nonce: e.nonce, ExpiresMs: e.host.TimeMs() + e.ahead + host.TxLifetimeMs/2, Body: body}.Sign(k)
	if err != nil {
		panic(err)
	}
	return b
}

// block makes a block some time later.
func (e *episode) block(ms uint64, txs ...[]byte) []host.Code {
	e.height++
	e.host.Begin(host.Block{Height: e.height, TimeMs: e.host.TimeMs() + ms, Seed: wire.Sum("entrain/lab/money/block", wire.AppendU64(nil, e.height))})
	var codes []host.Code
	for _, tx := range txs {
		codes = append(codes, host.CodeOf(e.host.Deliver(tx)))
		e.count()
	}
	e.count()
	e.host.Commit()
	return codes
}

// wealth is what the gang has in its purses.
func (e *episode) wealth() (n uint64) {
	for _, k := range e.keys {
		n += e.host.Balance(k.Public())
	}
	return n
}

// count adds what the honest run pays the gang for work that was accepted since it was called last,
// and takes off what its convictions cost. In its own runs the gang pays itself.
func (e *episode) count() {
	v, ok := e.host.View(goodRun)
	if !ok {
		return
	}
	c := v.State.Config()
	for i := range v.State.Count() {
		m := v.State.Member(i)
		id := fmt.Sprint(m.Key, m.JoinedMs)
		if m.Key == e.member.Public() {
			continue
		}
		e.pay += (int64(m.Points) - int64(e.points[id])) * int64(c.Rate)
		if was := e.earned[id]; m.Earned > was {
			e.pay += int64(m.Earned - was)
		}
		e.points[id], e.earned[id] = m.Points, m.Earned
	}
	for _, s := range v.State.Validators() {
		id := fmt.Sprint(s.Key, s.SinceMs, "v")
		if was := e.earned[id]; s.Earned > was {
			e.pay += int64(s.Earned - was)
		}
		e.earned[id] = s.Earned
	}
	for _, x := range v.State.Convictions() {
		if x.Number <= e.guilty {
			continue
		}
		e.guilty = x.Number
		switch {
		case x.Key == e.member.Public():
			if !x.Offence.Lesser() {
				panic(fmt.Sprintf("the honest member is convicted of %v", x.Offence))
			}
		case slices.Contains(pools, v.State.Member(x.Member).Payee): // others may have lent a half
		case x.Offence.Lesser():
			e.pay -= int64(x.Slashed)
		default:
			e.pay -= int64(x.Slashed - x.Slashed/2)
		}
	}
}

// pools are the addresses of all pools.
var pools = []key.Public{host.PoolAddress(chainID, "p"), host.PoolAddress(chainID, "q")}
