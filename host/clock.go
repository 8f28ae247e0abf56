package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Sight names the newest final blocks of another chain, Bittensor's, as a seated replica sees them.
// The replica's own key signs it. Clocked runs (coordinator.Config.Clock) count the blocks on which
// replicas with more than two thirds of the power agree: see clock.Clock.
type Sight struct{ clock.Sight }

func (Sight) kind() uint8                { return kindSight }
func (s Sight) append(dst []byte) []byte { return s.Append(dst) }

// sight keeps what a replica names.
func (h *Host) sight(sender key.Public, s Sight) error {
	r, c := &h.replicas, &h.replicas.clock
	i, known := r.find(sender)
	_, standing := c.At(h.timeMs)
	switch {
	case !known:
		return refuse(CodeUnknownReplica, sender)
	case r.list[i].seat != seatTaken:
		return refuse(CodeSeat, "replica ", sender, " is ", r.list[i].seat)
	case s.Genesis != c.Genesis && !standing:
		return refuse(CodeClock, "this chain follows the one with genesis ", c.Genesis, ", the blocks are of ", s.Genesis)
	case s.Genesis == c.Genesis && s.Number <= c.Number:
		return refuse(CodeClock, "block ", s.Number, " is not newer than ", c.Number, ", which is agreed on")
	}
	r.dirty = true
	all := uint64(0)
	for _, e := range r.list {
		all += e.power(h.bank.supply)
	}
	c.Name(sender, s.Sight, h.timeMs, h.weight, all)
	return nil
}

// weight returns the power of a replica, 0 if it has no seat.
func (h *Host) weight(k key.Public) uint64 {
	if i, ok := h.replicas.find(k); ok {
		return h.replicas.list[i].power(h.bank.supply)
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
	if env.Height, standing = c.At(env.NowMs); !standing {
		env.Seed = wire.Sum("entrain/ledger/seed/clock", env.Seed[:], c.Hash[:])
	}
	return env
}

// Clock is the newest block of the other chain that the replicas agree on.
type Clock struct {
	Genesis wire.Hash `json:"genesis"` // of that chain
	Number  uint64    `json:"number"`
	Hash    wire.Hash `json:"hash"`
	SinceMs uint64    `json:"since_ms"` // when they agreed, in milliseconds since 1970
	// Count is the height that clocked runs see: see Standing.
	Count uint64 `json:"count"`
	// Standing reports that no newer block was agreed on for clock.StandsMs, so that clocked runs
	// count clock.BlockMs of the chain's time as a block.
	Standing bool `json:"standing"`
	Wanted   bool `json:"wanted"` // a run on the chain is clocked and counts on
}

// Clock returns what clocked runs see at a time, or at the chain's if that is later; false if the
// replicas have never agreed on a block.
func (h *Host) Clock(nowMs uint64) (Clock, bool) {
	c := &h.replicas.clock
	v := Clock{Genesis: c.Genesis, Number: c.Number, Hash: c.Hash, SinceMs: c.SinceMs}
	v.Count, v.Standing = c.At(max(nowMs, h.timeMs))
	v.Wanted = slices.ContainsFunc(h.runs, func(r *run) bool {
		return r.clocked && (r.state.Phase() != coordinator.Finished || r.state.CountsBlocks())
	})
	return v, c.SinceMs > 0
}

// Seated reports whether a replica has a seat.
func (h *Host) Seated(replica key.Public) bool { return h.weight(replica) > 0 }
