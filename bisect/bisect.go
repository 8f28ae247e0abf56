// Package bisect commits to the values of a long computation by one hash, and lets two parties
// that disagree about them find the first difference in few messages.
//
// The tree is a perfect binary tree. Leaves are padded with zero hashes to the next power of
// sixteen, and
//
//	node = wire.Sum("entrain/bisect", left | right)
//
// so that a tree of n leaves has 4*Depth(n) levels, and the root of one leaf is that leaf. Sixteen
// children at a time, four binary levels, are revealed in a dispute (Children): each reveal costs
// 512 bytes and divides what is left by sixteen. The depth must be known from elsewhere, as it is
// in a dispute: a root alone does not say how many leaves it has.
//
//	root                                     of 256 leaves, depth 2
//	 |- child 0 ... child 15                 Children(leaves, 2, 0)
//	     |- leaf 16*c ... leaf 16*c+15       Children(leaves, 1, c)
//
// Leaf is the hash of a piece of a value, a list of 32-bit words.
//
// The package is replicated (see package wire).
package bisect

import "github.com/entrain-network/entrain/wire"

// Fan is the number of children revealed at a time, and fanLevels the binary levels between them
// and their node.
const (
	Fan       = 16
	fanLevels = 4
)

// DepthMax bounds Depth: 16^8 leaves are more than a U32 counts.
const DepthMax = 8

// Depth returns how many levels of Fan children a tree of n leaves has: the smallest d with 16^d >=
// n, 0 for one leaf or none.
func Depth(n uint32) uint8 {
	d := uint8(0)
	for size := uint64(1); size < uint64(n); size *= Fan {
		d++
	}
	return d
}

// Leaf returns the hash of a piece of a value: wire.Sum("entrain/words", words), each word in four
// bytes, little endian.
func Leaf(words []uint32) wire.Hash {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = wire.AppendU32(b, w)
	}
	return wire.Sum("entrain/words", b)
}

// pair returns the hash of two subtrees.
func pair(left, right wire.Hash) wire.Hash { return wire.Sum("entrain/bisect", left[:], right[:]) }

// Node returns the hash of the node with these children.
func Node(children *[Fan]wire.Hash) wire.Hash {
	return climb(children[:], fanLevels)
}

// Root returns the root over the leaves. It panics when there are none.
func Root(leaves []wire.Hash) wire.Hash {
	if len(leaves) == 0 {
		panic("bisect: root of no leaves")
	}
	return climb(leaves, fanLevels*Depth(uint32(len(leaves))))
}

// climb returns the root of the subtree of levels binary levels over the leaves, which are padded
// with zero hashes. There are at most 2^levels leaves.
func climb(leaves []wire.Hash, levels uint8) wire.Hash {
	var zero wire.Hash // the hash of a subtree of nothing but padding
	row := append([]wire.Hash(nil), leaves...)
	for range levels {
		if len(row)&1 == 1 {
			row = append(row, zero)
		}
		for i := range len(row) >> 1 {
			row[i] = pair(row[2*i], row[2*i+1])
		}
		row = row[:len(row)>>1]
		zero = pair(zero, zero)
	}
	if len(row) == 0 {
		return zero
	}
	return row[0]
}

// Children returns the children of the node that is number index, from 0, among those which are
// depth levels of Fan above the leaves. Depth(len(leaves)) and 0 name the root. It panics when
// depth is 0 or the tree has no such node.
func Children(leaves []wire.Hash, depth uint8, index uint32) [Fan]wire.Hash {
	top := Depth(uint32(len(leaves)))
	if depth == 0 || depth > top || uint64(index) >= 1<<(fanLevels*uint64(top-depth)) {
		panic("bisect: children of a node beyond the tree")
	}
	levels := fanLevels * (depth - 1)
	n := uint64(len(leaves))
	var children [Fan]wire.Hash
	for c := range children {
		first := (uint64(index)*Fan + uint64(c)) << levels
		from, to := min(first, n), min(first+1<<levels, n)
		children[c] = climb(leaves[from:to], levels)
	}
	return children
}

// Prove returns the proof that leaf i is in the tree over the leaves: its 4*Depth siblings, lowest
// first. It panics when there is no leaf i.
func Prove(leaves []wire.Hash, i uint32) []wire.Hash {
	n := uint64(len(leaves))
	if uint64(i) >= n {
		panic("bisect: proof of a leaf beyond the tree")
	}
	levels := fanLevels * Depth(uint32(n))
	proof := make([]wire.Hash, levels)
	for l := range levels {
		first := (uint64(i)>>l ^ 1) << l
		from, to := min(first, n), min(first+1<<l, n)
		proof[l] = climb(leaves[from:to], l)
	}
	return proof
}

// Check reports whether proof shows that leaf is number i of the n leaves under root.
func Check(root, leaf wire.Hash, i, n uint32, proof []wire.Hash) bool {
	if i >= n || len(proof) != fanLevels*int(Depth(n)) {
		return false
	}
	for l, sibling := range proof {
		if i>>l&1 == 1 {
			leaf = pair(sibling, leaf)
		} else {
			leaf = pair(leaf, sibling)
		}
	}
	return leaf == root
}
