// Package blobs holds what the peers of a node may fetch and ask for: payloads and updates, the
// parts of them that a run of slices exchanges, and versions of the parameters and the optimizer
// state. Peers read while the node goes on, without waiting for its loop.
package blobs

import (
	"maps"
	"sync"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A Store has what peers may fetch by its root. Network goroutines read it while the loop writes.
// It implements p2p.Source.
type Store struct {
	mu     sync.RWMutex // guards what follows
	byRoot map[wire.Hash]Blob
	// updates names the updates made here, by the round of their payloads. They are among byRoot.
	updates map[coordinator.Round]client.Update
	// In a run of slices: pieces of payloads, this member's slices of updates, and what is held.
	sections map[Range]keptSection
	slices   map[coordinator.Round]client.Update
	shown    map[coordinator.Round][]byte
}

// New returns a store that is empty.
func New() *Store {
	return &Store{
		byRoot: map[wire.Hash]Blob{}, updates: map[coordinator.Round]client.Update{},
		sections: map[Range]keptSection{}, slices: map[coordinator.Round]client.Update{}, shown: map[coordinator.Round][]byte{},
	}
}

// Blob is a payload or an update, which has bytes, or parameters or an optimizer state, whose
// floats are encoded chunk by chunk when they are asked for.
type Blob struct {
	round coordinator.Round // blobs of bytes are dropped with their round; the others by Drop
	bytes []byte
	*described
}

// described is what a blob has beside bytes. Nearly all, in a large run, have nothing, and share
// bare, or fetched if they are of one chunk, whose leaf is their root.
type described struct {
	leaves []wire.Hash
	floats engine.Vector
	// A version that only its file has is of size bytes there.
	disk *Disk
	size int
	// This member's payload in a run of slices has leaves of its pieces in place of leaves, and
	// sections is how many of its sections are kept.
	pieces   []wire.Hash
	sections int
}

// version reports whether the blob is floats.
func (b Blob) version() bool { return b.floats != nil || b.disk != nil }

var bare, fetched = &described{}, &described{}

// PutPayload keeps a payload under its root until its round is forgotten.
func (s *Store) PutPayload(round coordinator.Round, payload []byte) (root wire.Hash) {
	leaves := merkle.BlobLeaves(payload)
	root = merkle.Root(leaves)
	s.Put(root, &Blob{round, payload, &described{leaves: leaves}})
	return root
}

// PutFetched is PutPayload for one that was checked against its root. The root of one chunk is its
// leaf.
func (s *Store) PutFetched(round coordinator.Round, root wire.Hash, payload []byte) {
	if len(payload) > merkle.ChunkBytes {
		s.PutPayload(round, payload)
		return
	}
	s.Put(root, &Blob{round, payload, fetched})
}

// PutReveal keeps the part of a payload that its author revealed, under revealKey of the two.
func (s *Store) PutReveal(round coordinator.Round, name wire.Hash, body []byte) {
	s.Put(name, &Blob{round, body, bare})
}

// PutVersion serves a version, whose values must not change before Drop returns.
func (s *Store) PutVersion(v *Version) { s.putVersion(v, nil, 0) }

// putVersion serves a version from its file if its values are not in memory. Once it returns, no
// peer reads memory that the version had.
func (s *Store) putVersion(v *Version, d *Disk, size int) {
	b := &described{leaves: v.Leaves, floats: v.Values}
	if v.Values == nil {
		b.disk, b.size = d, size
	}
	s.Put(v.Root, &Blob{described: b})
}

// Put keeps a blob. One that was there for a later round stays as long.
func (s *Store) Put(root wire.Hash, b *Blob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.byRoot[root]; ok {
		b.round = max(b.round, old.round)
	}
	s.byRoot[root] = *b
}

// KeepPayload keeps a payload for a later round too, to which it was committed again. It reports
// whether the payload is there.
func (s *Store) KeepPayload(round coordinator.Round, root wire.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.byRoot[root]
	if !ok || b.version() {
		return false
	}
	b.round = max(b.round, round)
	s.byRoot[root] = b
	return true
}

// Payload returns a payload.
func (s *Store) Payload(root wire.Hash) ([]byte, bool) {
	b, ok := s.get(root)
	if !ok || b.version() {
		return nil, false
	}
	return b.bytes, true
}

// BulkMax bounds the payloads of a question, and BulkBytes their lengths.
const BulkMax, BulkBytes = 1024, p2p.MaxAnswer / 2

// AnswerBulk answers a question for payloads or updates with the bytes of each, none of one that is
// not here or for which there is no room:
//
//	question: n × Hash root
//	answer:   n × (u32 length | bytes)
func (s *Store) AnswerBulk(r *wire.Reader) (answer []byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([][]byte, r.Len()/32)
	size := 4 * len(list)
	for i := range list {
		if b := s.byRoot[r.Hash()].bytes; size+len(b) <= p2p.MaxAnswer {
			list[i], size = b, size+len(b)
		}
	}
	if r.Done() != wire.OK {
		return nil
	}
	answer = make([]byte, 0, size)
	for _, b := range list {
		answer = wire.AppendVar(answer, b)
	}
	return answer
}

// ParseBulk returns the next bytes of such an answer if they are those of a payload, nil if not.
func ParseBulk(r *wire.Reader, root wire.Hash, size uint32) []byte {
	b := r.Var(p2p.MaxAnswer)
	if uint32(len(b)) != size || size == 0 || merkle.BlobRoot(b) != root {
		return nil
	}
	return b[:len(b):len(b)]
}

// Drop stops serving a blob. Once it returns, no peer reads the blob's memory.
func (s *Store) Drop(root wire.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byRoot, root)
}

// Forget drops the payloads of rounds before a given one.
func (s *Store) Forget(before coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := len(s.byRoot)
	for root, b := range s.byRoot {
		if !b.version() && b.round < before {
			delete(s.byRoot, root)
		}
	}
	if len(s.byRoot) < held/2 {
		// A map keeps the memory of what is deleted, and a member is seldom a witness, who holds most.
		left := make(map[wire.Hash]Blob, len(s.byRoot))
		maps.Copy(left, s.byRoot)
		s.byRoot = left
	}
	maps.DeleteFunc(s.updates, func(round coordinator.Round, _ client.Update) bool { return round < before })
	maps.DeleteFunc(s.sections, func(_ Range, k keptSection) bool { return k.round < before })
	maps.DeleteFunc(s.slices, func(round coordinator.Round, _ client.Update) bool { return round < before })
	maps.DeleteFunc(s.shown, func(round coordinator.Round, _ []byte) bool { return round < before })
}

// Leaves implements p2p.Source.
func (s *Store) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	b, ok := s.get(root)
	switch {
	case !ok:
		return nil, false
	case b.described == fetched:
		return []wire.Hash{root}, true
	}
	return b.leaves, true
}

func (s *Store) get(root wire.Hash) (Blob, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.byRoot[root]
	return b, ok
}

// Chunk implements p2p.Source.
func (s *Store) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	s.mu.RLock() // until the floats are read, which change after Drop
	b, ok := s.byRoot[root]
	if ok = ok && (int(i) < len(b.leaves) || i == 0 && b.described == fetched); ok && b.floats != nil {
		defer s.mu.RUnlock()
		return chunkOf(b.floats, i), true
	}
	s.mu.RUnlock()
	switch {
	case !ok:
		return nil, false
	case b.disk != nil: // a disk may take its time
		chunk := b.disk.chunk(root, b.leaves[i], i, b.size)
		return chunk, chunk != nil
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

// appendNamed encodes what an update is named by.
func appendNamed(u client.Update, ok bool) []byte {
	if !ok {
		return nil
	}
	return wire.AppendU64(wire.AppendHash(nil, u.Root), u.Bytes)
}

// ParseNamed decodes the answer to a question for an update or a slice: Hash root | u64 length. It
// reports whether the update is named.
func ParseNamed(answer []byte) (u client.Update, ok bool) {
	r := wire.NewReader(answer)
	u = client.Update{Root: r.Hash(), Bytes: r.U64()}
	return u, r.Done() == wire.OK && !u.Root.IsZero()
}

// NewUpdate returns the blob of the update of a round's accepted set. It may be called off the
// loop.
func NewUpdate(round coordinator.Round, update []byte) *Blob {
	return &Blob{round, update, &described{leaves: merkle.BlobLeaves(update)}}
}

// Name returns what peers name the update by.
func (b *Blob) Name() client.Update {
	return client.Update{Root: merkle.Root(b.leaves), Bytes: uint64(len(b.bytes))}
}

// PutMade serves an update that was made here, and has questions for it answered.
func (s *Store) PutMade(b *Blob) (root wire.Hash) {
	name := b.Name()
	s.Put(name.Root, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates[b.round] = name
	return name.Root
}

// AnswerUpdate answers a question for an update.
func (s *Store) AnswerUpdate(round coordinator.Round) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	u, ok := s.updates[round]
	return appendNamed(u, ok)
}
