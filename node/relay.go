package node

import (
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Forwarder is somebody among the peers of a run who passes on what members gossip, and has nothing to say or to serve
// itself: a relay, through which those are heard who cannot connect to each other. It is a p2p.Handler.
type Forwarder struct {
	absent
	run wire.Hash

	mu      sync.RWMutex // guards what follows
	members map[key.Public]uint32
	round   uint32
}

// NewForwarder makes one for the run of an identity, which knows no members yet.
func NewForwarder(run wire.Hash) *Forwarder { return &Forwarder{run: run} }

// Follow tells who the members are, and which round it is.
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

// forwardedRounds is how far a commitment's round may be from the newest that is known: the forwarder's view may be a little
// older than the member's, and verifiers ask for what is a few rounds old.
const forwardedRounds = 8

// Gossip passes on commitments that members have signed, to rounds of now.
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
