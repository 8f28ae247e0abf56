// Package clock counts the blocks of another chain, Bittensor's, for the runs of this one. Replicas
// name its newest final blocks (Sight), and the newest that those with more than two thirds of the
// power name alike is agreed on. The package is replicated (see package wire).
package clock

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

const (
	// SightMax bounds the blocks that a replica names at once, NumberMax their numbers.
	SightMax  = 16
	NumberMax = 1 << 40
	// StandsMs is how long runs wait for a newer block of the other chain, and BlockMs the chain's own
	// time that counts as a block after that: Bittensor makes one in 12 seconds. In ten minutes an
	// operator's node restarts, or finality that has stopped goes on.
	StandsMs = 10 * 60 * 1000
	BlockMs  = 12 * 1000
)

// Sight is the newest final blocks of the other chain, as a replica sees them.
type Sight struct {
	Genesis wire.Hash   // of the other chain
	Number  uint64      // of its newest final block
	Hashes  []wire.Hash // of its newest final blocks, 1 to SightMax, that of Number last
}

// Append appends the sight: 32 genesis | U64 number | U8 count | count × 32 hash.
func (s Sight) Append(dst []byte) []byte {
	dst = wire.AppendU8(wire.AppendU64(wire.AppendHash(dst, s.Genesis), s.Number), uint8(len(s.Hashes)))
	for _, x := range s.Hashes {
		dst = wire.AppendHash(dst, x)
	}
	return dst
}

// ReadSight reads what Append wrote.
func ReadSight(r *wire.Reader) Sight {
	s := Sight{Genesis: r.Hash(), Number: r.U64()}
	n := r.U8()
	if n == 0 || n > SightMax || s.Number > NumberMax || uint64(n) > s.Number {
		r.Fail(wire.ErrOutOfRange)
		return s
	}
	for range n {
		s.Hashes = append(s.Hashes, r.Hash())
	}
	return s
}

// at returns the hash that s gives to the block of a number; false if it gives none.
func (s Sight) at(number uint64) (wire.Hash, bool) {
	if back := s.Number - number; number <= s.Number && back < uint64(len(s.Hashes)) {
		return s.Hashes[uint64(len(s.Hashes))-1-back], true
	}
	return wire.Hash{}, false
}

// Clock is what the chain knows of the other chain's blocks.
//
// Runs see its count of blocks as their height, and the hash of the agreed block enters their
// seeds. When no block was agreed on for StandsMs, they count each BlockMs of the chain's own time
// as a block, and their seeds are the chain's own. What was counted so is not counted again once
// blocks are agreed on: the count never decreases, and never waits.
type Clock struct {
	Genesis wire.Hash // of the other chain
	Number  uint64    // of the newest block agreed on
	Hash    wire.Hash
	SinceMs uint64 // when it was agreed on, in the chain's time; 0 if none ever was

	count  uint64 // what runs counted then
	sights []seen // the newest of each replica, in order of keys
}

type seen struct {
	replica key.Public
	Sight
}

// Votes returns how many replicas have named blocks.
func (c *Clock) Votes() int { return len(c.sights) }

// At returns how many blocks runs count at a time of the chain's, and whether they do so without
// agreed blocks.
func (c *Clock) At(nowMs uint64) (count uint64, standing bool) {
	late := nowMs - min(nowMs, c.SinceMs)
	if late <= StandsMs {
		return c.count, false
	}
	return c.count + (late-StandsMs)/BlockMs, true
}

// Name keeps what a replica names, and agrees on the newest block that it completes the votes for.
// Votes weigh as weight says, and all replicas weigh whole; those without weight are forgotten. A
// replica may take back what it named before; only what is agreed on stays.
func (c *Clock) Name(replica key.Public, s Sight, nowMs uint64, weight func(key.Public) uint64, whole uint64) {
	c.sights = slices.DeleteFunc(c.sights, func(e seen) bool { return e.replica == replica || weight(e.replica) == 0 })
	j, _ := slices.BinarySearchFunc(c.sights, replica, func(e seen, k key.Public) int { return e.replica.Compare(k) })
	c.sights = slices.Insert(c.sights, j, seen{replica, s})
	for n := s.Number; ; n-- {
		hash, named := s.at(n)
		if !named || s.Genesis == c.Genesis && n <= c.Number {
			return
		}
		votes := uint64(0)
		for _, e := range c.sights {
			if x, ok := e.at(n); ok && x == hash && e.Genesis == s.Genesis {
				votes += weight(e.replica)
			}
		}
		if votes*3 > whole*2 {
			c.agree(s.Genesis, n, hash, nowMs)
			return
		}
	}
}

// agree makes a block the newest one agreed on.
func (c *Clock) agree(genesis wire.Hash, number uint64, hash wire.Hash, nowMs uint64) {
	counted, _ := c.At(nowMs)
	switch {
	case c.SinceMs == 0:
		c.count = number
	case genesis != c.Genesis:
		c.count = counted
	default:
		c.count = max(counted, c.count+number-c.Number)
	}
	c.Genesis, c.Number, c.Hash, c.SinceMs = genesis, number, hash, nowMs
}

// Append appends the clock, which is not empty.
func (c *Clock) Append(dst []byte) []byte {
	dst = wire.AppendHash(wire.AppendU64(wire.AppendHash(dst, c.Genesis), c.Number), c.Hash)
	dst = wire.AppendU8(wire.AppendU64(wire.AppendU64(dst, c.SinceMs), c.count), uint8(len(c.sights)))
	for _, e := range c.sights {
		dst = e.Sight.Append(append(dst, e.replica[:]...))
	}
	return dst
}

// Parse reads what Append wrote, with the sights of at most replicas replicas.
func Parse(r *wire.Reader, replicas int) Clock {
	c := Clock{Genesis: r.Hash(), Number: r.U64(), Hash: r.Hash(), SinceMs: r.U64(), count: r.U64()}
	n := r.U8()
	if n == 0 || int(n) > replicas || c.Number > NumberMax {
		r.Fail(wire.ErrOutOfRange)
		return Clock{}
	}
	for range n {
		e := seen{key.Public(r.Hash()), ReadSight(r)}
		if k := len(c.sights); k > 0 && c.sights[k-1].replica.Compare(e.replica) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return Clock{}
		}
		c.sights = append(c.sights, e)
	}
	return c
}
