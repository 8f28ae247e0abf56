package p2p

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A Partial is what a fetch has verified so far, for others who want the same blob at the same
// time: so a model that one member holds reaches many without being sent as often by that one. It
// is a [Source], for any goroutine. One with a file outlives its fetch, and the next one continues
// it.
type Partial struct {
	ref  Ref
	file File // nil if the blob comes into memory

	mu     sync.RWMutex // guards what follows
	leaves []wire.Hash
	held   []bool
	data   []byte
}

// A File takes the chunks of a blob in place of memory. It may lose them: those that it gives back
// are verified.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// ErrFile ends a fetch whose file cannot be written.
var ErrFile = errors.New("cannot write what came to its file")

// NewPartial returns one of which nothing has come yet, for [Fetch.Into].
func NewPartial(ref Ref, f File) *Partial { return &Partial{ref: ref, file: f} }

// learn takes over the leaf list, and returns which chunks an earlier fetch brought.
func (p *Partial) learn(leaves []wire.Hash) (held []bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaves == nil {
		p.leaves, p.held = leaves, make([]bool, len(leaves))
	}
	return p.held
}

// keep copies a chunk to its place in the blob, or in the file.
func (p *Partial) keep(c Chunk, blob []byte) error {
	from := int(c.index) * merkle.ChunkBytes
	if p.file != nil { // others read meanwhile, since a disk may take its time
		if _, err := p.file.WriteAt(c.data, int64(from)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		p.data = blob
		copy(p.data[from:], c.data)
	}
	p.held[c.index] = true
	return nil
}

// end forgets everything: the blob is the fetch's now. What is in a file stays.
func (p *Partial) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		p.leaves, p.held, p.data = nil, nil, nil
	}
}

// Leaves is the leaf list, once it is known.
func (p *Partial) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.leaves, root == p.ref.Root && p.leaves != nil
}

// Chunk is a copy of a chunk that came.
func (p *Partial) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	p.mu.RLock()
	if root != p.ref.Root || int(i) >= len(p.held) || !p.held[i] {
		p.mu.RUnlock()
		return nil, false
	}
	from, leaf := int(i)*merkle.ChunkBytes, p.leaves[i]
	if p.file == nil {
		defer p.mu.RUnlock()
		return bytes.Clone(p.data[from : from+p.ref.chunkLen(i)]), true
	}
	p.mu.RUnlock()
	b := make([]byte, p.ref.chunkLen(i))
	_, err := p.file.ReadAt(b, int64(from))
	ok := (err == nil || err == io.EOF) && merkle.Leaf(b) == leaf // it may come with the last bytes
	return b, ok
}

// Underway is a [Source] of what is held and, where that has nothing, of fetches that run. Make it
// with [NewUnderway].
type Underway struct {
	held Source

	mu       sync.RWMutex // guards partials
	partials map[wire.Hash]*Partial

	partsMu sync.Mutex // guards parts, and lets one goroutine at a time compute roots
	parts   map[wire.Hash][]wire.Hash
}

// NewUnderway makes one of what is held.
func NewUnderway(held Source) *Underway {
	return &Underway{held: held, partials: make(map[wire.Hash]*Partial)}
}

// Begin shows a fetch to others, until the function that it returns is called.
func (u *Underway) Begin(d *Download) (end func()) {
	p := d.partial
	if p == nil {
		return func() {}
	}
	u.mu.Lock()
	u.partials[p.ref.Root] = p
	u.mu.Unlock()
	return func() {
		u.mu.Lock()
		if u.partials[p.ref.Root] == p {
			delete(u.partials, p.ref.Root)
		}
		u.mu.Unlock()
		p.end()
	}
}

func (u *Underway) partial(root wire.Hash) *Partial {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.partials[root]
}

// Leaves is part of Source.
func (u *Underway) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	if leaves, ok := u.held.Leaves(root); ok {
		return leaves, true
	}
	if p := u.partial(root); p != nil {
		return p.Leaves(root)
	}
	return nil, false
}

// Chunk is part of Source.
func (u *Underway) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	if b, ok := u.held.Chunk(root, i); ok {
		return b, true
	}
	if p := u.partial(root); p != nil {
		return p.Chunk(root, i)
	}
	return nil, false
}

// list answers a query for a blob's leaf list, or a part of it, which its proof follows.
func (u *Underway) list(q Query, leaves []wire.Hash) []byte {
	n, each := q.Ref.parts()
	part := leaves[q.From:min(q.From+each, uint32(len(leaves)))]
	var proof []wire.Hash
	if n > 1 {
		proof = merkle.Prove(u.partRoots(q.Ref.Root, leaves, each), uint64(q.From/each))
	}
	b := make([]byte, 0, 32*(len(part)+len(proof)))
	for _, list := range [][]wire.Hash{part, proof} {
		for _, h := range list {
			b = append(b, h[:]...)
		}
	}
	return b
}

// partsMost is the number of blobs of which the roots of the parts are remembered. A participant
// holds fewer that are so large.
const partsMost = 8

// partRoots returns the roots of the parts of a leaf list. To compute them takes as long as to send
// a megabyte, so they are remembered: nobody can make a participant work by asking.
func (u *Underway) partRoots(root wire.Hash, leaves []wire.Hash, each uint32) []wire.Hash {
	u.partsMu.Lock()
	defer u.partsMu.Unlock()
	if roots, ok := u.parts[root]; ok {
		return roots
	}
	var roots []wire.Hash
	for part := range slices.Chunk(leaves, int(each)) {
		roots = append(roots, merkle.Root(part))
	}
	if u.parts == nil || len(u.parts) >= partsMost {
		u.parts = make(map[wire.Hash][]wire.Hash)
	}
	u.parts[root] = roots
	return roots
}
