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

// Draw returns the configuration of a seed: a random network with random faults and cheats.
func Draw(seed uint64) sim.Config {
	src := prng.New(wire.Sum("entrain/campaign", wire.AppendU64(nil, seed)), "trial")
	between := func(low, high int) int { return low + int(src.Uint64n(uint64(high-low+1))) }
	millis := func(low, high int) time.Duration { return time.Duration(between(low, high)) * time.Millisecond }
	c := sim.Config{
		Seed: seed, Clients: between(clientsMin, clientsMax), Steps: uint32(between(stepsMin, stepsMax)),
		Overlap: uint8(between(0, 1)), Delay: millis(1, 150), Jitter: millis(0, 100),
		BySpeed: between(0, 3) == 0, Limit: limit,
	}
	if between(0, 2) > 0 {
		c.Loss = float64(between(0, 15)) / 100
		c.Crashes = between(0, c.Clients/3)
		c.Stragglers = between(0, c.Clients/6)
		c.Partitions = between(0, 2)
		c.Outages = between(0, 2)
	}
	if between(0, 3) == 0 {
		return c
	}
	c.Verification = []uint8{5, 20, 50, 100}[between(0, 3)]
	kinds := adversary.Kinds()
	for n := c.Clients * between(0, gangPercentMax) / 100; len(c.Adversaries) < n; {
		k := kinds[between(0, len(kinds)-1)]
		if size := max(1, k.Gang); len(c.Adversaries)+size <= n { // a single adversary always fits
			c.Adversaries = append(c.Adversaries, slices.Repeat([]string{k.Name}, size)...)
		}
	}
	return c
}

// faults returns the number of faults and cheats in a configuration.
func faults(c sim.Config) int {
	return c.Crashes + c.Stragglers + c.Partitions + c.Outages + len(c.Adversaries)
}

// tolerated reports whether a failure is one that the protocol does not exclude: a third of the
// members can keep the others from a quorum, and so stop a run for as long as they stay.
func tolerated(c sim.Config, err error) bool {
	return 3*len(c.Adversaries) >= c.Clients && strings.Contains(err.Error(), "not finished in time")
}

// simplifications each make a configuration smaller in one respect, and report whether that is
// possible.
var simplifications = []func(sim.Config) (sim.Config, bool){
	halve(func(c *sim.Config) *uint32 { return &c.Steps }, 1),
	zero(func(c *sim.Config) *int { return &c.Crashes }),
	zero(func(c *sim.Config) *int { return &c.Stragglers }),
	zero(func(c *sim.Config) *int { return &c.Partitions }),
	zero(func(c *sim.Config) *int { return &c.Outages }),
	zero(func(c *sim.Config) *float64 { return &c.Loss }),
	zero(func(c *sim.Config) *time.Duration { return &c.Jitter }),
	zero(func(c *sim.Config) *uint8 { return &c.Overlap }),
	zero(func(c *sim.Config) *bool { return &c.BySpeed }),
	dropFirst,
	dropLast,
	fewerClients,
	less(func(c *sim.Config) *int { return &c.Crashes }, 0),
	less(func(c *sim.Config) *int { return &c.Stragglers }, 0),
	less(func(c *sim.Config) *int { return &c.Partitions }, 0),
	less(func(c *sim.Config) *int { return &c.Outages }, 0),
	less(func(c *sim.Config) *uint32 { return &c.Steps }, 1),
}

// zero sets a field to its zero value.
func zero[T comparable](field func(*sim.Config) *T) func(sim.Config) (sim.Config, bool) {
	return func(c sim.Config) (sim.Config, bool) {
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
func halve[T int | uint32](field func(*sim.Config) *T, low T) func(sim.Config) (sim.Config, bool) {
	return func(c sim.Config) (sim.Config, bool) {
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
