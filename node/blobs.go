package node

import (
	"maps"
	"sync"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// blobs are what peers may fetch by its root. Network goroutines read them while the loop writes.
type blobs struct {
	mu     sync.RWMutex // guards what follows
	byRoot map[wire.Hash]*blob
	// updates names the updates made here, by the round of their payloads. They are among byRoot.
	updates map[coordinator.Round]client.Update
	// In a run of slices: pieces of payloads, the own slices of updates, and what is held.
	sections map[rangeOf]keptSection
	slices   map[coordinator.Round]client.Update
	shown    map[coordinator.Round][]byte
}

func newBlobs() *blobs {
	return &blobs{
		byRoot: map[wire.Hash]*blob{}, updates: map[coordinator.Round]client.Update{},
		sections: map[rangeOf]keptSection{}, slices: map[coordinator.Round]client.Update{}, shown: map[coordinator.Round][]byte{},
	}
}

// blob is a payload or an update, which has bytes, or parameters or an optimizer state, whose
// floats are encoded chunk by chunk when they are asked for.
type blob struct {
	round  coordinator.Round // blobs of bytes are dropped with their round; the others by drop
	leaves []wire.Hash
	bytes  []byte
	floats engine.Vector
	// The own payload in a run of slices has leaves of its pieces in place of leaves, and sections is
	// how many of its sections are kept.
	pieces   []wire.Hash
	sections int
}

// putPayload keeps a payload under its root until its round is forgotten.
func (s *blobs) putPayload(round coordinator.Round, payload []byte) (root wire.Hash) {
	leaves := merkle.BlobLeaves(payload)
	root = merkle.Root(leaves)
	s.put(root, &blob{round: round, leaves: leaves, bytes: payload})
	return root
}

// putFetched is putPayload for one that was checked against its root. The root of one chunk is its
// leaf.
func (s *blobs) putFetched(round coordinator.Round, root wire.Hash, payload []byte) {
	if len(payload) > merkle.ChunkBytes {
		s.putPayload(round, payload)
		return
	}
	s.put(root, &blob{round: round, leaves: []wire.Hash{root}, bytes: payload})
}

// putReveal keeps the part of a payload that its author revealed, under revealKey of the two.
func (s *blobs) putReveal(round coordinator.Round, name wire.Hash, body []byte) {
	s.put(name, &blob{round: round, bytes: body})
}

// putFloats serves parameters or an optimizer state, which must not change before drop returns.
func (s *blobs) putFloats(root wire.Hash, leaves []wire.Hash, values engine.Vector) {
	s.put(root, &blob{leaves: leaves, floats: values})
}

// put keeps a blob. One that was there for a later round stays as long.
func (s *blobs) put(root wire.Hash, b *blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.byRoot[root]; ok {
		b.round = max(b.round, old.round)
	}
	s.byRoot[root] = b
}

// keepPayload keeps a payload for a later round too, to which it was committed again. It reports
// whether the payload is there.
func (s *blobs) keepPayload(round coordinator.Round, root wire.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.byRoot[root]
	if !ok || b.floats != nil {
		return false
	}
	b.round = max(b.round, round)
	return true
}

// payload returns a payload.
func (s *blobs) payload(root wire.Hash) ([]byte, bool) {
	b, ok := s.get(root)
	if !ok || b.floats != nil {
		return nil, false
	}
	return b.bytes, true
}

// drop stops serving a blob. Once it returns, no peer reads the blob's memory.
func (s *blobs) drop(root wire.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byRoot, root)
}

// forget drops the payloads of rounds before a given one.
func (s *blobs) forget(before coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for root, b := range s.byRoot {
		if b.floats == nil && b.round < before {
			delete(s.byRoot, root)
		}
	}
	maps.DeleteFunc(s.updates, func(round coordinator.Round, _ client.Update) bool { return round < before })
	maps.DeleteFunc(s.sections, func(_ rangeOf, k keptSection) bool { return k.round < before })
	maps.DeleteFunc(s.slices, func(round coordinator.Round, _ client.Update) bool { return round < before })
	maps.DeleteFunc(s.shown, func(round coordinator.Round, _ []byte) bool { return round < before })
}

// Leaves implements p2p.Source.
func (s *blobs) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	b, ok := s.get(root)
	return b.leaves, ok
}

// get returns a copy of the description of a blob; bytes are never changed.
func (s *blobs) get(root wire.Hash) (blob, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.byRoot[root]
	if !ok {
		return blob{}, false
	}
	return *b, true
}

// Chunk implements p2p.Source.
func (s *blobs) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	s.mu.RLock() // until the floats are read, which change after drop
	defer s.mu.RUnlock()
	b, ok := s.byRoot[root]
	if !ok || int(i) >= len(b.leaves) {
		return nil, false
	}
	if b.floats != nil {
		return chunkOf(b.floats, i), true
	}
	from := int(i) * merkle.ChunkBytes
	to := min(from+merkle.ChunkBytes, len(b.bytes))
	return b.bytes[from:to:to], true
}

// chunkOf encodes chunk i of a blob of floats.
func chunkOf(values engine.Vector, i uint32) []byte {
	const floats = merkle.ChunkBytes / 4
	from := int(i) * floats
	return tensor.AppendBytes(nil, values.Host(from, min(from+floats, values.Len())))
}
