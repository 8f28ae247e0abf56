package node

import (
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Forwarder is a p2p.Handler that passes on what members gossip and has nothing to serve itself. A
// relay runs one for members that cannot connect to each other.
type Forwarder struct {
	absent
	run wire.Hash

	mu      sync.RWMutex // guards what follows
	members map[key.Public]uint32
	round   uint32
}

// NewForwarder returns a Forwarder for the run with this identity, which knows no members yet.
func NewForwarder(run wire.Hash) *Forwarder { return &Forwarder{run: run} }

// Follow takes the members and the round from a state.
func (f *Forwarder) Follow(s coordinator.State) {
	members := make(map[key.Public]uint32, s.Present())
	for i := range s.Count() {
		if s.Status(i).Present() {
			members[s.Key(i)] = i
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members, f.round = members, s.Round()
}

// forwardedRounds is how far the round of a commitment may be from the newest known one: the
// forwarder's state may be older than the member's, and verifiers ask for rounds that are over.
const forwardedRounds = 8

// Gossip passes on commitments to recent rounds that members signed.
func (f *Forwarder) Gossip(from key.Public, data []byte) p2p.Verdict {
	author, signed, ok := parseAuthored(f.run, data, coordinator.Signed.Verify)
	if !ok || author != from {
		return p2p.Reject
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	c := signed.Commitment
	if i, member := f.members[author]; !member || i != c.Member || c.Round > f.round+forwardedRounds || c.Round+forwardedRounds < f.round {
		return p2p.Ignore
	}
	return p2p.Accept
}
