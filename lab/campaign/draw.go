package campaign

import (
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/sim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Limits of random configurations.
const (
	clientsMin, clientsMax = 4, 20
	stepsMin, stepsMax     = 6, 30
	gangPercentMax         = 40 // of clients that cheat
	limit                  = 30 * time.Minute
)

// draws draws the parts of a configuration.
type draws struct{ prng.Source }

func (d *draws) between(low, high int) int { return low + int(d.Uint64n(uint64(high-low+1))) }

func (d *draws) millis(low, high int) time.Duration {
	return time.Duration(d.between(low, high)) * time.Millisecond
}

// draw returns the configuration of a seed: a random network with random faults and cheats. One in
// five exchanges by buckets.
func draw(seed uint64) Config {
	d := draws{prng.New(wire.Sum("entrain/campaign", wire.AppendU64(nil, seed)), "trial")}
	if seed%5 == 4 {
		b := d.buckets(seed)
		return Config{Buckets: &b}
	}
	c := d.peers(seed)
	return Config{Peers: &c}
}

// peers draws a network of peers. In a third of the seeds members that attest nothing follow. In
// another third updates are made in slices, each by more than twice as many members as lie.
func (d *draws) peers(seed uint64) sim.Config {
	sliced := seed%3 == 1
	c := d.network(seed, sliced)
	if sliced {
		least := 2*liars(c.Adversaries) + 2
		c.Overlap, c.Aggregators = 1, uint16(d.between(least, max(least, c.Clients/2)))
	}
	if d.between(0, 1) == 0 { // what operators and owners do
		c.Leaves = d.between(0, c.Clients/3)
		c.Restores = d.between(0, c.Clients/6)
		c.FullDisks = d.between(0, c.Clients/6)
		c.Pauses = d.between(0, 2)
	}
	return c
}

// liars returns how many of the adversaries lie as aggregators.
func liars(names []string) (n int) {
	for _, name := range names {
		if slices.ContainsFunc(adversary.Aggregators(), func(k adversary.Kind) bool { return k.Name == name }) {
			n++
		}
	}
	return n
}

func (d *draws) network(seed uint64, sliced bool) sim.Config {
	c := sim.Config{
		Seed: seed, Clients: d.between(clientsMin, clientsMax), Steps: uint32(d.between(stepsMin, stepsMax)),
		Overlap: uint8(d.between(0, 1)), Delay: d.millis(1, 150), Jitter: d.millis(0, 100),
		BySpeed: d.between(0, 3) == 0, Limit: limit, Followers: seed%3 == 0,
	}
	if d.between(0, 2) > 0 {
		c.Loss = float64(d.between(0, 15)) / 100
		c.Crashes = d.between(0, c.Clients/3)
		c.Stragglers = d.between(0, c.Clients/6)
		c.Partitions = d.between(0, 2)
		c.Outages = d.between(0, 2)
		c.Jumps = d.between(0, c.Clients/4)
	}
	if d.between(0, 2) == 0 {
		c.Witnesses = uint16(d.between(4, 10))
	}
	if d.between(0, 3) == 0 {
		return c
	}
	c.Verification = []uint8{5, 20, 50, 100}[d.between(0, 3)]
	kinds := sim.Kinds(c.Followers)
	if sliced {
		kinds = append(kinds, adversary.Aggregators()...)
	}
	for n := c.Clients * d.between(0, gangPercentMax) / 100; len(c.Adversaries) < n; {
		k := d.kind(kinds)
		if size := max(1, k.Gang); len(c.Adversaries)+size <= n { // a single adversary always fits
			c.Adversaries = append(c.Adversaries, slices.Repeat([]string{k.Name}, size)...)
		}
	}
	return c
}

// kind draws a kind of adversary: every third is one of two in turn.
func (d *draws) kind(kinds []adversary.Kind) adversary.Kind {
	k := kinds[d.between(0, len(kinds)-1)]
	if d.between(0, 2) > 0 {
		return k
	}
	if both, ok := adversary.Find(k.Name + "+" + kinds[d.between(0, len(kinds)-1)].Name); ok {
		return both
	}
	return k
}

// faults returns the number of faults and cheats in a configuration.
func (c Config) faults() int {
	if b := c.Buckets; b != nil {
		return b.faults()
	}
	p := c.Peers
	return p.Crashes + p.Stragglers + p.Partitions + p.Outages + p.Jumps + p.Leaves + p.Restores + p.FullDisks + p.Pauses + len(p.Adversaries)
}

// tolerated reports whether a failure is one that the protocol does not exclude: blockers that are
// a third of a round's witnesses, by number or by luck, can keep the others from a quorum, and so
// stop a run for as long as they stay. If they are a third of all members, honest ones may pay for
// absence.
func tolerated(c Config, err error) bool {
	p := c.Peers
	if p == nil {
		return false
	}
	block := 0
	for _, name := range p.Adversaries {
		if slices.ContainsFunc(strings.Split(name, "+"), func(kind string) bool { return slices.Contains(blockers, kind) }) {
			block++
		}
	}
	third := 3*block >= p.Clients
	return (third || p.Witnesses > 0 && 3*block >= int(p.Witnesses)) && strings.Contains(err.Error(), "not finished in time") ||
		third && (strings.Contains(err.Error(), "an honest one, is convicted of absence") || strings.Contains(err.Error(), "is charged in round"))
}

// blockers are the kinds that can withhold a quorum: by what they say as witnesses, or because what
// they send reaches only some.
var blockers = []string{"blinder", "colluder", "lying-witness", "late", "stutter", "equivocate", "halves", "shunner"}

// simplifications each make a configuration smaller in one respect, and report whether that is
// possible.
var simplifications = []func(Config) (Config, bool){
	peers(halve(func(c *sim.Config) *uint32 { return &c.Steps }, 1)),
	peers(zero(func(c *sim.Config) *int { return &c.Crashes })),
	peers(zero(func(c *sim.Config) *int { return &c.Stragglers })),
	peers(zero(func(c *sim.Config) *int { return &c.Partitions })),
	peers(zero(func(c *sim.Config) *int { return &c.Outages })),
	peers(zero(func(c *sim.Config) *int { return &c.Jumps })),
	peers(zero(func(c *sim.Config) *int { return &c.Leaves })),
	peers(zero(func(c *sim.Config) *int { return &c.Restores })),
	peers(zero(func(c *sim.Config) *int { return &c.FullDisks })),
	peers(zero(func(c *sim.Config) *int { return &c.Pauses })),
	peers(zero(func(c *sim.Config) *float64 { return &c.Loss })),
	peers(zero(func(c *sim.Config) *time.Duration { return &c.Jitter })),
	peers(zero(func(c *sim.Config) *uint8 { return &c.Overlap })),
	peers(zero(func(c *sim.Config) *uint16 { return &c.Witnesses })),
	peers(zero(func(c *sim.Config) *bool { return &c.BySpeed })),
	peers(zero(func(c *sim.Config) *bool { return &c.Followers })),
	peers(zero(func(c *sim.Config) *uint16 { return &c.Aggregators })),
	peers(dropFirst),
	peers(dropLast),
	peers(fewerClients),
	peers(less(func(c *sim.Config) *int { return &c.Crashes }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Stragglers }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Partitions }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Outages }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Jumps }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Leaves }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Restores }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.FullDisks }, 0)),
	peers(less(func(c *sim.Config) *int { return &c.Pauses }, 0)),
	peers(less(func(c *sim.Config) *uint32 { return &c.Steps }, 1)),
	buckets(halve(func(b *Buckets) *uint32 { return &b.Steps }, 4)),
	buckets(zero(func(b *Buckets) *int { return &b.Crashes })),
	buckets(zero(func(b *Buckets) *int { return &b.Down })),
	buckets(zero(func(b *Buckets) *bool { return &b.Pooled })),
	buckets(zero(func(b *Buckets) *int { return &b.Fail })),
	buckets(zero(func(b *Buckets) *time.Duration { return &b.Lag })),
	buckets(shorter(func(b *Buckets) *[]string { return &b.Judges })),
	buckets(shorter(func(b *Buckets) *[]string { return &b.Miners })),
}

// peers lifts a simplification of a network of peers.
func peers(simplify func(sim.Config) (sim.Config, bool)) func(Config) (Config, bool) {
	return func(c Config) (Config, bool) {
		if c.Peers == nil {
			return c, false
		}
		smaller, ok := simplify(*c.Peers)
		return Config{Peers: &smaller}, ok
	}
}

// zero sets a field to its zero value.
func zero[C any, T comparable](field func(*C) *T) func(C) (C, bool) {
	return func(c C) (C, bool) {
		var none T
		was := *field(&c)
		*field(&c) = none
		return c, was != none
	}
}

// less decrements a field that is above low.
func less[T int | uint32](field func(*sim.Config) *T, low T) func(sim.Config) (sim.Config, bool) {
	return func(c sim.Config) (sim.Config, bool) {
		if *field(&c) <= low {
			return c, false
		}
		*field(&c)--
		return c, true
	}
}

// halve halves a field, but not below low.
func halve[C any](field func(*C) *uint32, low uint32) func(C) (C, bool) {
	return func(c C) (C, bool) {
		if *field(&c)/2 < low {
			return c, false
		}
		*field(&c) /= 2
		return c, true
	}
}

// dropFirst removes the first cheat, with its gang, and its client.
func dropFirst(c sim.Config) (sim.Config, bool) { return drop(c, 0) }

// dropLast removes the last cheat, with its gang, and its client.
func dropLast(c sim.Config) (sim.Config, bool) { return drop(c, len(c.Adversaries)-1) }

func drop(c sim.Config, at int) (sim.Config, bool) {
	if len(c.Adversaries) == 0 {
		return c, false
	}
	was := len(c.Adversaries)
	c.Adversaries = without(slices.Clone(c.Adversaries), c.Adversaries[at])
	c.Clients -= was - len(c.Adversaries)
	return c, true
}

// fewerClients removes an honest client.
func fewerClients(c sim.Config) (sim.Config, bool) {
	if c.Clients-len(c.Adversaries) <= 2 {
		return c, false
	}
	c.Clients--
	return c, true
}

// without returns a list without one member of a kind, or without all of them if the kind acts as a
// gang.
func without(names []string, name string) []string {
	if k, _ := adversary.Find(name); k.Gang > 1 {
		return slices.DeleteFunc(names, func(n string) bool { return n == name })
	}
	at := slices.Index(names, name)
	return slices.Delete(names, at, at+1)
}
