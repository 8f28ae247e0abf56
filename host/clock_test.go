package host

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/wire"
)

const windowBlocks = 5

// clockedRun has windows of windowBlocks blocks of another chain.
func clockedRun(name, owner string) CreateRun {
	run := createRun(name, owner, 8)
	run.Limits.Buckets = true
	run.Config.Exchange, run.Config.WindowBlocks, run.Config.Overlap, run.Config.Clock = coordinator.Buckets, windowBlocks, 1, 1
	run.Config.EpochMs = 24 * 3600 * 1000
	return run
}

func outer(genesis string) wire.Hash { return wire.Sum("entrain/test/outer", []byte(genesis)) }

func outerBlock(genesis string, n uint64) wire.Hash {
	return wire.Sum("entrain/test/outer/block", []byte(genesis), wire.AppendU64(nil, n))
}

// sightOf names the count newest blocks of the chain of that genesis.
func sightOf(genesis string, number uint64, count uint64) Sight {
	s := Sight{clock.Sight{Genesis: outer(genesis), Number: number}}
	for n := number - count + 1; n <= number; n++ {
		s.Hashes = append(s.Hashes, outerBlock(genesis, n))
	}
	return s
}

func (c *chain) agreed() Clock {
	v, _ := c.host.Clock(0)
	return v
}

// trains brings the run to its first window.
func (c *chain) trains(run string) coordinator.State {
	c.t.Helper()
	c.accept(c.tx("ann", send(run, coordinator.Join{})))
	v, _ := c.host.View(run)
	c.accept(c.tx("ann", send(run, coordinator.Ready{Epoch: v.State.Epoch(), Params: v.State.Config().ModelHash})))
	return c.window(run)
}

func (c *chain) window(run string) coordinator.State {
	c.t.Helper()
	v, _ := c.host.View(run)
	if p := v.State.Phase(); p != coordinator.RoundTrain && p != coordinator.RoundWitness {
		c.t.Fatalf("phase %v", p)
	}
	return v.State
}

func TestABlockIsAgreedOnByMoreThanTwoThirds(t *testing.T) {
	c := newSeats(t, 1<<24, "a", "b", "c", "d")
	before := c.host.Append(nil)
	c.want(CodeUnknownReplica, c.tx("op-a", sightOf("x", 100, 1)))
	c.want(CodeClock, c.tx("op-a", clockedRun("demo", "op-a")))
	c.accept(c.tx("a", sightOf("x", 100, 3)), c.tx("b", sightOf("x", 101, 3)))
	if c.agreed().Number != 0 || bytes.Equal(before, c.host.Append(nil)) {
		t.Fatalf("two of four agree: %+v", c.agreed())
	}
	lie := sightOf("x", 101, 3)
	for i := range lie.Hashes {
		lie.Hashes[i][0] ^= 1
	}
	c.accept(c.tx("c", lie))
	c.accept(c.tx("c", sightOf("y", 101, 3)))
	c.accept(c.tx("c", sightOf("x", clock.NumberMax, clock.SightMax)))
	if c.agreed().Number != 0 {
		t.Fatalf("a lie was agreed on: %+v", c.agreed())
	}
	c.accept(c.tx("d", sightOf("x", 99, 2))) // of 98, 99
	if got := c.agreed(); got.Number != 99 || got.Hash != outerBlock("x", 99) || got.Genesis != outer("x") || got.Count != 99 || got.Standing {
		t.Fatalf("three of four name 99: %+v", got)
	}
	c.want(CodeClock, c.tx("a", sightOf("x", 99, 1)))   // an old one
	c.want(CodeClock, c.tx("a", sightOf("y", 2000, 1))) // another chain's
	c.accept(c.tx("d", sightOf("x", 103, clock.SightMax)))
	if got := c.agreed(); got.Number != 100 {
		t.Fatalf("the newest that three name is 100: %+v", got)
	}
	c.accept(c.tx("op-a", clockedRun("demo", "op-a")))
	if again, err := ParseHost(c.host.Append(nil), testRules()); err != nil || again.Hash() != c.host.Hash() {
		t.Fatalf("read again: %v", err)
	}
	list, root, err := OpenReplicas(c.host.ProveReplicas())
	if err != nil || root != c.host.Hash() || len(list) != 4 {
		t.Errorf("proof of the replicas: %d, %v", len(list), err)
	}
}

func TestWhatAReplicaNamedEndsWithItsSeat(t *testing.T) {
	c := newSeats(t, 1<<24, "a", "b", "c", "d")
	c.accept(c.tx("a", sightOf("x", 100, 1)), c.tx("b", sightOf("x", 100, 1)))
	c.accept(c.tx("op-a", Leave{Replica: public("a")}))
	c.want(CodeSeat, c.tx("a", sightOf("x", 101, 2)))
	c.accept(c.tx("c", sightOf("x", 101, 1)))
	if got := c.agreed(); got.Number != 0 || c.host.replicas.clock.Votes() != 2 {
		t.Fatalf("%+v, %d sights", got, c.host.replicas.clock.Votes())
	}
	c.accept(c.tx("d", sightOf("x", 101, 2)), c.tx("b", sightOf("x", 101, 2)))
	if got := c.agreed(); got.Number != 101 {
		t.Fatalf("the three that are left: %+v", got)
	}
}

// clockedChain has a run in its first window.
func clockedChain(t *testing.T) (*chain, coordinator.State) {
	c := newSeats(t, 1<<24, "a", "b", "c", "d")
	c.sees("x", 100)
	c.accept(c.tx("op-a", clockedRun("demo", "op-a")))
	return c, c.trains("demo")
}

// sees has three of the four replicas name a block.
func (c *chain) sees(genesis string, number uint64) {
	c.t.Helper()
	for _, name := range []string{"b", "c", "d"} {
		c.accept(c.tx(name, sightOf(genesis, number, 1)))
	}
}

func TestWindowsEndWithTheOtherChainsBlocks(t *testing.T) {
	c, s := clockedChain(t)
	if s.DeadlineHeight() != 100+windowBlocks {
		t.Fatalf("the first window ends at %d", s.DeadlineHeight())
	}
	for range 60 { // a minute of the chain's own blocks
		c.block()
	}
	if s = c.window("demo"); s.Round() != 1 || s.Phase() != coordinator.RoundTrain || c.host.Due(c.host.TimeMs()) {
		t.Fatalf("round %d, %v, before the window's end; due: %v", s.Round(), s.Phase(), c.host.Due(c.host.TimeMs()))
	}
	c.sees("x", 104)
	if c.block(); c.window("demo").Phase() != coordinator.RoundTrain {
		t.Fatal("the window ended a block early")
	}
	c.sees("x", 105)
	if !c.host.Due(c.host.TimeMs()) {
		t.Error("no block is due, and the window is over")
	}
	if c.block(); c.window("demo").Phase() != coordinator.RoundWitness {
		t.Fatal("the window did not end with its last block")
	}
}

// The seed of a round follows from the agreed block's hash and from the chain's own seed: whoever knows one of them
// does not know it.
func TestSeedsFollowFromBothChains(t *testing.T) {
	seeds := map[wire.Hash]string{}
	for _, own := range []byte{1, 2} {
		for _, genesis := range []string{"x", "y"} {
			c := newSeats(t, 1<<24, "a", "b", "c", "d")
			c.sees(genesis, 100)
			c.accept(c.tx("op-a", clockedRun("demo", "op-a")))
			c.accept(c.tx("ann", send("demo", coordinator.Join{})))
			v, _ := c.host.View("demo")
			tx := c.tx("ann", send("demo", coordinator.Ready{Epoch: v.State.Epoch(), Params: v.State.Config().ModelHash}))
			c.height++
			c.host.Begin(Block{Height: c.height, TimeMs: c.host.TimeMs() + 1, Seed: wire.Hash{own}})
			if err := c.host.Deliver(tx); err != nil {
				t.Fatal(err)
			}
			c.host.Commit()
			r, ok := c.window("demo").At(1)
			if !ok {
				t.Fatal("no round")
			}
			if was := seeds[r.Seed()]; was != "" {
				t.Errorf("the seed of %s %d is that of %s", genesis, own, was)
			}
			seeds[r.Seed()] = fmt.Sprint(genesis, own)
		}
	}
}

// Without agreed blocks a run does not stand: it counts the chain's own time. What it counted so is not counted again.
func TestTheChainsOwnTimeCountsWhereNoBlockIsAgreedOn(t *testing.T) {
	c, _ := clockedChain(t)
	since := c.agreed().SinceMs
	until := func(ms uint64) { c.blockAfter(since + ms - c.host.TimeMs()) }
	until(clock.StandsMs)
	if got := c.agreed(); got.Standing || got.Count != 100 || !got.Wanted {
		t.Fatalf("%+v", got)
	}
	until(clock.StandsMs + 3*clock.BlockMs)
	if got := c.agreed(); !got.Standing || got.Count != 103 {
		t.Fatalf("%+v", got)
	}
	c.want(CodeClock, c.tx("op-a", clockedRun("late", "op-a")))
	until(clock.StandsMs + windowBlocks*clock.BlockMs - 1)
	if c.window("demo").Phase() != coordinator.RoundTrain {
		t.Fatal("the window ended early")
	}
	if !c.host.Due(since + clock.StandsMs + windowBlocks*clock.BlockMs) {
		t.Error("no block is due at the window's end")
	}
	until(clock.StandsMs + windowBlocks*clock.BlockMs)
	if c.window("demo").Phase() != coordinator.RoundWitness {
		t.Fatal("the window did not end")
	}

	c.sees("x", 160) // the nodes were gone, and the other chain went on
	if got := c.agreed(); got.Standing || got.Count != 160 {
		t.Fatalf("after blocks of an outage: %+v", got)
	}
	since = c.agreed().SinceMs
	until(clock.StandsMs + 100*clock.BlockMs)
	c.sees("x", 161) // the other chain itself stood
	if got := c.agreed(); got.Standing || got.Count != 260 {
		t.Fatalf("after it stood: %+v", got)
	}
	c.sees("x", 170)
	if got := c.agreed(); got.Count != 269 {
		t.Fatalf("it goes on from there: %+v", got)
	}
}

// Replicas may leave a chain that has ended for another one.
func TestReplicasFollowAnotherChainOnceTheFirstStands(t *testing.T) {
	c, _ := clockedChain(t)
	since := c.agreed().SinceMs
	c.want(CodeClock, c.tx("b", sightOf("y", 7, 1)))
	c.blockAfter(since + clock.StandsMs + 2*clock.BlockMs - c.host.TimeMs())
	c.sees("y", 7)
	if got := c.agreed(); got.Genesis != outer("y") || got.Number != 7 || got.Count != 102 || got.Standing {
		t.Fatalf("%+v", got)
	}
	c.sees("y", 9)
	if got := c.agreed(); got.Count != 104 {
		t.Fatalf("%+v", got)
	}
}

func TestSightsAreStrict(t *testing.T) {
	c := newSeats(t, 1<<24, "a")
	good := sightOf("x", 40, clock.SightMax)
	for name, s := range map[string]Sight{
		"no hashes":        {clock.Sight{Genesis: good.Genesis, Number: 40}},
		"too many":         sightOf("x", 40, clock.SightMax+1),
		"before the first": {clock.Sight{Genesis: good.Genesis, Number: 2, Hashes: good.Hashes[:3]}},
		"too high":         {clock.Sight{Genesis: good.Genesis, Number: clock.NumberMax + 1, Hashes: good.Hashes}},
	} {
		tx := Tx{Chain: testChain, Nonce: 1, ExpiresMs: c.host.TimeMs() + 1000, Body: s}
		if _, err := tx.Sign(privateKey("a")); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	c.accept(c.tx("a", good)) // alone
	b := c.host.Append(nil)
	for i := range b { // no byte of the clock has two meanings
		if at := bytes.Index(b, good.Hashes[0][:]); i < at-120 || i > at+40 {
			continue
		}
		wrong := slices.Clone(b)
		wrong[i] ^= 0xff
		if again, err := ParseHost(wrong, testRules()); err == nil && again.Hash() == c.host.Hash() {
			t.Errorf("byte %d is not in the hash", i)
		}
	}
}
