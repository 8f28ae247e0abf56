package node

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// shelf is what peers may read: blobs by their root and signed commitments by round. Network goroutines read it while the loop writes.
type shelf struct {
	mu          sync.RWMutex // guards all below
	blobs       map[wire.Hash]*blob
	commitments map[uint32][]kept // by round
	members     map[key.Public]bool
	spared      map[client.Share]bool // whose commitments outlast their round
	given       map[wire.Hash][]byte  // spans of those shares, by their hash
}

// blob is one servable object: a payload, or parameters or an optimizer state, which are encoded chunk by chunk when asked for.
type blob struct {
	round  uint32 // payloads are dropped with their round; the others by drop
	leaves []wire.Hash
	bytes  []byte
	floats engine.Vector
}

// kept is a signed commitment in the form in which it is gossiped.
type kept struct {
	member uint32
	id     wire.Hash
	bytes  []byte
}

// commitmentsMax bounds the commitments kept for one round: a few for each of the most members a run can have.
const commitmentsMax = 30_000

// setMembers replaces who takes part.
func (s *shelf) setMembers(m map[key.Public]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = m
}

func (s *shelf) takesPart(k key.Public) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[k]
}

func newShelf() *shelf {
	return &shelf{blobs: map[wire.Hash]*blob{}, commitments: map[uint32][]kept{}}
}

// putPayload keeps a payload under its root until its round is forgotten.
func (s *shelf) putPayload(round uint32, payload []byte) wire.Hash {
	leaves := merkle.BlobLeaves(payload)
	root := merkle.Root(leaves)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.blobs[root]; ok {
		round = max(round, b.round)
	}
	s.blobs[root] = &blob{round: round, leaves: leaves, bytes: payload}
	return root
}

// putReveal keeps what somebody revealed of a payload, under revealKey of the two.
func (s *shelf) putReveal(round uint32, name wire.Hash, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.blobs[name]; ok {
		round = max(round, b.round)
	}
	s.blobs[name] = &blob{round: round, bytes: body}
}

// keepPayload keeps a payload that is held for a later round too, to which somebody committed again; false if it is not held.
func (s *shelf) keepPayload(round uint32, root wire.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[root]
	if !ok || b.floats != nil {
		return false
	}
	b.round = max(b.round, round)
	return true
}

// putFloats serves parameters or an optimizer state, which must not change until dropped.
func (s *shelf) putFloats(root wire.Hash, leaves []wire.Hash, values engine.Vector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[root] = &blob{leaves: leaves, floats: values}
}

// drop stops serving a blob. Once it returns nobody reads the blob's memory any more.
func (s *shelf) drop(root wire.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, root)
}

func (s *shelf) payload(root wire.Hash) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[root]
	if !ok || b.floats != nil {
		return nil, false
	}
	return b.bytes, true
}

// forget drops payloads and commitments of rounds before the given one.
func (s *shelf) forget(before uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for root, b := range s.blobs {
		if b.floats == nil && b.round < before {
			delete(s.blobs, root)
		}
	}
	for round, list := range s.commitments {
		if round >= before {
			continue
		}
		list = slices.DeleteFunc(list, func(k kept) bool { return !s.spared[client.Share{Round: round, Member: k.member}] })
		if s.commitments[round] = list; len(list) == 0 {
			delete(s.commitments, round)
		}
	}
}

// spare replaces the shares whose commitments forget leaves alone, and of what was given to their members.
func (s *shelf) spare(shares []client.Share, list []client.Assignment) {
	spared := make(map[client.Share]bool, len(shares))
	for _, share := range shares {
		spared[share] = true
	}
	given := make(map[wire.Hash][]byte, len(list))
	for _, g := range list {
		given[g.Hash] = batch.Append(nil, g.Spans)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spared, s.given = spared, given
}

// spares says whether the commitments to a share outlast its round.
func (s *shelf) spares(share client.Share) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.spared[share]
}

// putAuthored keeps a signed commitment for peers that ask, with its author, as it is gossiped. It is false if it was kept already, or
// there are too many.
func (s *shelf) putAuthored(author key.Public, signed coordinator.Signed) bool {
	c := signed.Commitment
	id := c.ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.commitments[c.Round]
	for i := range list {
		if list[i].id == id {
			return false
		}
	}
	if len(list) >= commitmentsMax {
		return false
	}
	s.commitments[c.Round] = append(list, kept{member: c.Member, id: id, bytes: signed.Append(append([]byte(nil), author[:]...))})
	return true
}

// knows says whether a commitment was kept already, in the form in which it is gossiped; its signature was good then.
func (s *shelf) knows(authored []byte) bool {
	const roundAt = 32 + 32 + 4 // author, run, epoch
	if len(authored) < roundAt+4 {
		return false
	}
	round := binary.LittleEndian.Uint32(authored[roundAt:])
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.commitments[round] {
		if bytes.Equal(k.bytes, authored) {
			return true
		}
	}
	return false
}

// own returns the signed bytes of a member's commitment in a round.
func (s *shelf) own(round, member uint32) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.commitments[round] {
		if k.member == member {
			return k.bytes, true
		}
	}
	return nil, false
}

// Leaves is part of p2p.Source.
func (s *shelf) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[root]
	if !ok {
		return nil, false
	}
	return b.leaves, true
}

// Chunk is part of p2p.Source. The returned bytes are the caller's.
func (s *shelf) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.blobs[root]
	if !ok || int(i) >= len(b.leaves) {
		return nil, false
	}
	if b.floats != nil {
		return chunkOf(b.floats, i), true
	}
	from := int(i) * merkle.ChunkBytes
	return append([]byte(nil), b.bytes[from:min(from+merkle.ChunkBytes, len(b.bytes))]...), true
}
