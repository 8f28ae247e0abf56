package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Sight names the newest final blocks of another chain, Bittensor's, as a seated replica sees them.
// The replica's own key signs it. Clocked runs (coordinator.Config.Clock) count the blocks on which
// replicas with more than two thirds of the power agree.
type Sight struct {
	Genesis wire.Hash   // of the other chain
	Number  uint64      // of its newest final block
	Hashes  []wire.Hash // of its newest final blocks, 1 to SightMax, that of Number last
}

// clock is what the chain knows of the other chain's blocks.
//
// Clocked runs see its count of blocks as their height, and the hash of the agreed block enters
// their seeds. When no block was agreed on for ClockStandsMs, they count each ClockBlockMs of the
// chain's own time as a block, and their seeds are the chain's own. What was counted so is not
// counted again once blocks are agreed on: the count never decreases, and never waits.
type clock struct {
	genesis wire.Hash // of the other chain
	number  uint64    // of the newest block agreed on
	hash    wire.Hash
	sinceMs uint64 // when it was agreed on, in the chain's time; 0 if none ever was
	count   uint64 // what clocked runs counted then
	sights  []seen // the newest of each replica, in order of keys
}

type seen struct {
	replica key.Public
	Sight
}

func (Sight) kind() uint8 { return kindSight }

func (s Sight) append(dst []byte) []byte {
	dst = wire.AppendU8(wire.AppendU64(wire.AppendHash(dst, s.Genesis), s.Number), uint8(len(s.Hashes)))
	for _, x := range s.Hashes {
		dst = wire.AppendHash(dst, x)
	}
	return dst
}

func readSight(r *wire.Reader) Sight {
	s := Sight{Genesis: r.Hash(), Number: r.U64()}
	n := r.U8()
	if n == 0 || n > SightMax || s.Number > ClockNumberMax || uint64(n) > s.Number {
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

// at returns how many blocks clocked runs count at a time of the chain's, and whether they do so
// without agreed blocks.
func (c *clock) at(nowMs uint64) (count uint64, standing bool) {
	late := nowMs - min(nowMs, c.sinceMs)
	if late <= ClockStandsMs {
		return c.count, false
	}
	return c.count + (late-ClockStandsMs)/ClockBlockMs, true
}

// agree makes a block the newest one agreed on.
func (c *clock) agree(genesis wire.Hash, number uint64, hash wire.Hash, nowMs uint64) {
	counted, _ := c.at(nowMs)
	switch {
	case c.sinceMs == 0:
		c.count = number
	case genesis != c.genesis:
		c.count = counted
	default:
		c.count = max(counted, c.count+number-c.number)
	}
	c.genesis, c.number, c.hash, c.sinceMs = genesis, number, hash, nowMs
}

// sight keeps what a replica names, and agrees on the newest block that it completes the votes for.
// A replica may take back what it named before; only what is agreed on stays.
func (h *Host) sight(sender key.Public, s Sight) error {
	r, c := &h.replicas, &h.replicas.clock
	i, known := r.find(sender)
	_, standing := c.at(h.timeMs)
	switch {
	case !known:
		return refuse(CodeUnknownReplica, sender)
	case r.list[i].seat != seatTaken:
		return refuse(CodeSeat, "replica ", sender, " is ", r.list[i].seat)
	case s.Genesis != c.genesis && !standing:
		return refuse(CodeClock, "this chain follows the one with genesis ", c.genesis, ", the blocks are of ", s.Genesis)
	case s.Genesis == c.genesis && s.Number <= c.number:
		return refuse(CodeClock, "block ", s.Number, " is not newer than ", c.number, ", which is agreed on")
	}
	r.dirty = true
	c.sights = slices.DeleteFunc(c.sights, func(e seen) bool { return e.replica == sender || r.weight(e.replica, h.bank.supply) == 0 })
	j, _ := slices.BinarySearchFunc(c.sights, sender, func(e seen, k key.Public) int { return e.replica.Compare(k) })
	c.sights = slices.Insert(c.sights, j, seen{sender, s})
	for n := s.Number; ; n-- {
		hash, named := s.at(n)
		if !named || s.Genesis == c.genesis && n <= c.number {
			return nil
		}
		if h.agrees(s.Genesis, n, hash) {
			c.agree(s.Genesis, n, hash, h.timeMs)
			return nil
		}
	}
}

// agrees reports whether replicas with more than two thirds of the seated power name a block.
func (h *Host) agrees(genesis wire.Hash, number uint64, hash wire.Hash) bool {
	all, want := uint64(0), uint64(0)
	for _, e := range h.replicas.list {
		all += e.power(h.bank.supply)
	}
	for _, e := range h.replicas.clock.sights {
		if x, ok := e.at(number); ok && x == hash && e.Genesis == genesis {
			want += h.replicas.weight(e.replica, h.bank.supply)
		}
	}
	return want*3 > all*2
}

// weight returns the power of a replica, 0 if it has no seat.
func (r *replicas) weight(k key.Public, supply uint64) uint64 {
	if i, ok := r.find(k); ok {
		return r.list[i].power(supply)
	}
	return 0
}

// clocked replaces height and seed of the environment of a run that counts the other chain's
// blocks.
func (h *Host) clocked(r *run, env coordinator.Env) coordinator.Env {
	if !r.clocked {
		return env
	}
	c, standing := &h.replicas.clock, false
	if env.Height, standing = c.at(env.NowMs); !standing {
		env.Seed = wire.Sum("entrain/ledger/seed/clock", env.Seed[:], c.hash[:])
	}
	return env
}

func (c *clock) append(dst []byte) []byte {
	dst = wire.AppendHash(wire.AppendU64(wire.AppendHash(dst, c.genesis), c.number), c.hash)
	dst = wire.AppendU8(wire.AppendU64(wire.AppendU64(dst, c.sinceMs), c.count), uint8(len(c.sights)))
	for _, e := range c.sights {
		dst = e.Sight.append(append(dst, e.replica[:]...))
	}
	return dst
}

func parseClock(r *wire.Reader) clock {
	c := clock{genesis: r.Hash(), number: r.U64(), hash: r.Hash(), sinceMs: r.U64(), count: r.U64()}
	n := r.U8()
	if n == 0 || n > SeatsMax || c.number > ClockNumberMax {
		r.Fail(wire.ErrOutOfRange)
		return clock{}
	}
	for range n {
		e := seen{readKey(r), readSight(r)}
		if k := len(c.sights); k > 0 && c.sights[k-1].replica.Compare(e.replica) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return clock{}
		}
		c.sights = append(c.sights, e)
	}
	return c
}

// Clock is the newest block of the other chain that the replicas agree on.
type Clock struct {
	Genesis wire.Hash `json:"genesis"` // of that chain
	Number  uint64    `json:"number"`
	Hash    wire.Hash `json:"hash"`
	SinceMs uint64    `json:"since_ms"` // when they agreed, in milliseconds since 1970
	// Count is the height that clocked runs see: see Standing.
	Count uint64 `json:"count"`
	// Standing reports that no newer block was agreed on for ClockStandsMs, so that clocked runs
	// count ClockBlockMs of the chain's time as a block.
	Standing bool `json:"standing"`
	Wanted   bool `json:"wanted"` // a run on the chain is clocked and counts on
}

// Clock returns what clocked runs see at a time, or at the chain's if that is later; false if the
// replicas have never agreed on a block.
func (h *Host) Clock(nowMs uint64) (Clock, bool) {
	c := &h.replicas.clock
	v := Clock{Genesis: c.genesis, Number: c.number, Hash: c.hash, SinceMs: c.sinceMs}
	v.Count, v.Standing = c.at(max(nowMs, h.timeMs))
	v.Wanted = slices.ContainsFunc(h.runs, func(r *run) bool {
		return r.clocked && (r.state.Phase() != coordinator.Finished || r.state.CountsBlocks())
	})
	return v, c.sinceMs > 0
}

// Seated reports whether a replica has a seat.
func (h *Host) Seated(replica key.Public) bool {
	return h.replicas.weight(replica, h.bank.supply) > 0
}
