package gossip

import (
	"maps"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Forwarder is a p2p.Handler that passes on what members gossip and has nothing to serve itself. A
// relay runs one for members that cannot connect to each other.
type Forwarder struct {
	absent
	run wire.Hash

	mu      sync.RWMutex // guards what follows
	members map[key.Public]coordinator.Member
	round   coordinator.Round
	// passed has the IDs of what was passed on, perMemberMax of a member in a round.
	passed map[client.Share][]wire.Hash
}

// NewForwarder returns a Forwarder for the run with this identity, which knows no members yet.
func NewForwarder(run wire.Hash) *Forwarder {
	return &Forwarder{absent: absent{Store: new(blobs.Store)}, run: run, passed: map[client.Share][]wire.Hash{}}
}

// Follow takes the members and the round from a state.
func (f *Forwarder) Follow(s coordinator.State) {
	members := make(map[key.Public]coordinator.Member, s.Present())
	for i := range s.Count() {
		if s.Status(i).Present() {
			members[s.Key(i)] = i
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members, f.round = members, s.Round()
	maps.DeleteFunc(f.passed, func(s client.Share, _ []wire.Hash) bool { return s.Round+forwardedRounds < f.round })
}

// forwardedRounds is how far the round of a commitment may be from the newest known one: the
// forwarder's state may be older than the member's, and verifiers ask for rounds that are over.
const forwardedRounds = 8

// Gossip passes on commitments to recent rounds that members signed.
func (f *Forwarder) Gossip(from key.Public, data []byte) p2p.Verdict {
	a, ok := Read(data)
	if !ok || a.Signed.Commitment.Run != f.run || a.Author != from {
		return p2p.Reject
	}
	share, id := client.Share{Round: a.Signed.Commitment.Round, Member: a.Signed.Commitment.Member}, a.ID
	if !f.wants(a.Author, share, id) {
		return p2p.Ignore
	}
	if !a.Verify() {
		return p2p.Reject
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.passed[share], id) {
		f.passed[share] = append(f.passed[share], id)
	}
	return p2p.Accept
}

// Wants reports whether a commitment of this author is to be passed on.
func (f *Forwarder) wants(author key.Public, s client.Share, id wire.Hash) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if i, member := f.members[author]; !member || i != s.Member || s.Round > f.round+forwardedRounds || s.Round+forwardedRounds < f.round {
		return false
	}
	return len(f.passed[s]) < PerMemberMax || slices.Contains(f.passed[s], id)
}
