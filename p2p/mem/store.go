package mem

import (
	"fmt"
	"sync"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// A Store is a [p2p.Source] that holds blobs in memory, up to a number of bytes. It may
// be used from any goroutine. Make one with [NewStore].
type Store struct {
	limit uint64

	blobsMu sync.RWMutex // guards what follows
	blobs   map[wire.Hash]stored
	bytes   uint64
}

type stored struct {
	leaves []wire.Hash
	data   []byte
}

// NewStore returns an empty store for at most limit bytes of blobs.
func NewStore(limit uint64) *Store {
	return &Store{limit: limit, blobs: make(map[wire.Hash]stored)}
}

// Put keeps data, which must not change afterwards, and returns its reference. It
// fails if the store is full, which changes nothing.
func (s *Store) Put(data []byte) (p2p.Ref, error) {
	leaves := merkle.BlobLeaves(data)
	ref := p2p.Ref{Root: merkle.Root(leaves), Size: uint64(len(data))}
	s.blobsMu.Lock()
	defer s.blobsMu.Unlock()
	if _, ok := s.blobs[ref.Root]; ok {
		return ref, nil
	}
	if ref.Size > s.limit-s.bytes {
		return p2p.Ref{}, fmt.Errorf("keep a blob of %d bytes: %w: %d of %d bytes are taken", ref.Size, p2p.ErrTooLarge, s.bytes, s.limit)
	}
	s.blobs[ref.Root] = stored{leaves: leaves, data: data}
	s.bytes += ref.Size
	return ref, nil
}

// Drop forgets a blob if it is held.
func (s *Store) Drop(root wire.Hash) {
	s.blobsMu.Lock()
	defer s.blobsMu.Unlock()
	s.bytes -= uint64(len(s.blobs[root].data))
	delete(s.blobs, root)
}

// Blob is a blob that is held, which must not be changed.
func (s *Store) Blob(root wire.Hash) ([]byte, bool) {
	s.blobsMu.RLock()
	defer s.blobsMu.RUnlock()
	b, ok := s.blobs[root]
	return b.data, ok
}

// Leaves is the leaf list of a blob that is held. See [p2p.Source].
func (s *Store) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	s.blobsMu.RLock()
	defer s.blobsMu.RUnlock()
	b, ok := s.blobs[root]
	return b.leaves, ok
}

// Chunk is a chunk of a blob that is held. See [p2p.Source].
func (s *Store) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	s.blobsMu.RLock()
	defer s.blobsMu.RUnlock()
	b, ok := s.blobs[root]
	if !ok || uint64(i) >= merkle.BlobChunks(uint64(len(b.data))) {
		return nil, false
	}
	from, to := merkle.Chunk(uint64(len(b.data)), uint64(i))
	return b.data[from:to:to], true
}

// NewRef returns the reference of data.
func NewRef(data []byte) p2p.Ref {
	return p2p.Ref{Root: merkle.BlobRoot(data), Size: uint64(len(data))}
}
