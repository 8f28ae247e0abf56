package p2p

import (
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// lists says which leaf lists travel in parts, and of how many leaves. Tests make it smaller.
var lists = struct{ whole, part uint32 }{MaxChunks, PartChunks}

// parts returns the number of answers in which the leaf list comes, and the number of leaves in all
// of them but the last, which may have fewer.
func (r Ref) parts() (n, each uint32) {
	chunks := r.Chunks()
	if chunks <= lists.whole {
		return 1, chunks
	}
	return (chunks-1)/lists.part + 1, lists.part
}

// knownLeaves takes the leaf list from where no peer is needed: the fetch itself,
// or, for a blob of one chunk, the root, which is the leaf (RFC 6962, 2.1).
func (d *Download) knownLeaves() {
	if d.leaves != nil || d.err != nil {
		return
	}
	if n := d.fetch.Ref.Chunks(); n == 1 && d.partial != nil {
		d.learn([]wire.Hash{d.fetch.Ref.Root}) // the partial keeps it
	} else if n == 1 {
		d.one.leaf[0] = d.fetch.Ref.Root
		d.learn(d.one.leaf[:])
	} else if uint32(len(d.fetch.Leaves)) == n && merkle.Root(d.fetch.Leaves) == d.fetch.Ref.Root {
		d.learn(d.fetch.Leaves)
	} else if leaves, ok := d.partial.Leaves(d.fetch.Ref.Root); ok {
		d.learn(leaves)
	}
}

// askLeaves asks peer p for leaves that no other peer is to bring in time.
func (d *Download) askLeaves(p int) *flight {
	parts, each := d.fetch.Ref.parts()
	for i := range parts {
		asked := func(f *flight) bool { return f.From == i*each && (!f.late || f.peer == p) }
		if (d.listed == nil || !d.listed[i]) && !slices.ContainsFunc(d.open, asked) {
			return d.request(p, i*each, 0)
		}
	}
	return nil
}

// Leaves is the answer to a request for leaves, which it ends: the leaf list, or a part of it and
// its proof.
func (d *Download) Leaves(r Request, leaves []wire.Hash) {
	f := d.find(r)
	if f == nil || d.Done() {
		return
	}
	if parts, each := d.fetch.Ref.parts(); parts > 1 {
		d.part(r, leaves, parts, each)
		return
	}
	switch {
	case len(leaves) == 0 || len(leaves) > MaxChunks || merkle.Root(leaves) != d.fetch.Ref.Root:
		d.End(r, ErrLied)
	case uint32(len(leaves)) != d.fetch.Ref.Chunks():
		// Either the reference is false, or the peer sent inner nodes as leaves, which
		// have the same root. The two cannot be told apart here, so no peer is blamed.
		d.End(r, ErrWrongSize)
	default:
		d.End(r, nil)
		if d.leaves == nil {
			d.learn(leaves)
		}
	}
}

// part takes a part of the leaf list.
func (d *Download) part(r Request, hashes []wire.Hash, parts, each uint32) {
	i, n := r.From/each, min(each, d.fetch.Ref.Chunks()-r.From)
	if uint32(len(hashes)) < n || !merkle.Check(d.fetch.Ref.Root, merkle.Root(hashes[:n]), uint64(i), uint64(parts), hashes[n:]) {
		d.End(r, ErrLied)
		return
	}
	d.End(r, nil)
	if d.list == nil {
		d.list, d.listed = make([]wire.Hash, d.fetch.Ref.Chunks()), make([]bool, parts)
	}
	if d.leaves != nil || d.listed[i] {
		return
	}
	copy(d.list[r.From:], hashes[:n])
	d.listed[i] = true
	if d.parts++; d.parts == parts {
		d.learn(d.list)
	}
}

// learn goes from the leaf list to chunks. Only now is the blob's memory taken:
// the author of the reference has shown a blob of that many chunks.
func (d *Download) learn(leaves []wire.Hash) {
	n := d.fetch.Ref.Chunks()
	d.leaves = leaves
	d.owner, d.held, d.vacant = d.one.owner[:], d.one.held[:], d.one.vacant[:]
	if n > 1 {
		d.owner, d.held, d.vacant = make([]uint64, n), make([]bool, n), make(chunkSet, (n+63)/64)
		if d.fetch.Into == nil {
			d.data = make([]byte, d.fetch.Ref.Size)
		}
	}
	if d.partial != nil {
		copy(d.held, d.partial.learn(leaves))
	}
	for i := range n {
		if d.held[i] {
			d.heldCount++
			d.heldBytes += uint64(d.fetch.Ref.chunkLen(i))
		} else {
			d.vacant.set(i)
			d.unowned++
		}
	}
	if d.fetch.Have == nil {
		return
	}
	all := Request{Ref: d.fetch.Ref, Count: n, leaves: leaves}
	for i := uint32(0); i < n && d.err == nil; i++ {
		if d.held[i] {
			continue
		}
		if b := d.fetch.Have(i, leaves[i]); b != nil {
			if c, err := all.Verify(i, b); err == nil {
				d.keep(c)
			}
		}
	}
}

// chunkSet is a set of chunks.
type chunkSet []uint64

func (b chunkSet) has(i uint32) bool { return b[i/64]>>(i%64)&1 == 1 }
func (b chunkSet) set(i uint32)      { b[i/64] |= 1 << (i % 64) }
func (b chunkSet) clear(i uint32)    { b[i/64] &^= 1 << (i % 64) }

// next returns the first element from i on.
func (b chunkSet) next(i uint32) (uint32, bool) {
	rest := b[i/64] >> (i % 64) << (i % 64)
	for w := i / 64; ; rest = b[w] {
		if rest != 0 {
			return w*64 + uint32(bits.TrailingZeros64(rest)), true
		}
		if w++; int(w) == len(b) {
			return 0, false
		}
	}
}
