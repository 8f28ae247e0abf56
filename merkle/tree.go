package merkle

import (
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// Tree computes a root while leaves arrive, in constant memory. Its zero value is the empty tree. A
// copy is independent of the original.
type Tree struct {
	n     uint64   // leaves so far
	peaks [64]Hash // peaks[h] is the root of a full subtree of 1<<h leaves, if bit h of n is set
}

// Add appends the hash of the next leaf.
func (t *Tree) Add(leaf Hash) {
	h := 0
	for ; t.n>>h&1 == 1; h++ {
		leaf = node(t.peaks[h], leaf)
	}
	t.peaks[h] = leaf
	t.n++
}

// AddFull appends the next 1<<h leaves at once, of which root is the root. The number of leaves so
// far must be a multiple of theirs.
func (t *Tree) AddFull(h int, root Hash) {
	n := t.n
	for t.n += 1 << h; n>>h&1 == 1; h++ {
		root = node(t.peaks[h], root)
	}
	t.peaks[h] = root
}

// Len returns the number of leaves added.
func (t *Tree) Len() uint64 { return t.n }

// Root returns the root over the leaves added so far. More may follow.
func (t *Tree) Root() Hash {
	if t.n == 0 {
		return wire.SHA256()
	}
	h := bits.TrailingZeros64(t.n)
	root := t.peaks[h]
	for h++; h < 64; h++ {
		if t.n>>h&1 == 1 {
			root = node(t.peaks[h], root)
		}
	}
	return root
}

// Append appends the encoding of the tree: U64 leaves | a hash for each bit set in that number,
// lowest first. A list of any length can thus be continued from at most 64 hashes.
func (t *Tree) Append(dst []byte) []byte {
	dst = wire.AppendU64(dst, t.n)
	for h := range 64 {
		if t.n>>h&1 == 1 {
			dst = wire.AppendHash(dst, t.peaks[h])
		}
	}
	return dst
}

// ReadTree reads the encoding that Append writes. A tree of 1<<63 leaves or more is refused: it
// would overflow when more follow.
func ReadTree(r *wire.Reader) Tree {
	t := Tree{n: r.U64()}
	if t.n>>63 == 1 {
		r.Fail(wire.ErrOutOfRange)
		return Tree{}
	}
	for h := range 64 {
		if t.n>>h&1 == 1 && r.Err() == wire.OK {
			t.peaks[h] = r.Hash()
		}
	}
	return t
}
