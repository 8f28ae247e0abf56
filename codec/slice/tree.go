package slice

import (
	"fmt"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

const hashLen = len(wire.Hash{})

// Root returns the hash that a member commits to: the root of the tree over the groups, each of which is the root of the tree over its leaves
// (package merkle). It panics if sealed is not what Encode appended.
func (c *Codec) Root(sealed []byte) wire.Hash {
	values := c.values(sealed)
	roots := make([]merkle.Hash, len(c.plan.groups))
	c.pool.Run(len(roots), func(i int) {
		g := &c.plan.groups[i]
		var t merkle.Tree
		for k := range g.leaves {
			r := c.plan.leafRange(g, k)
			t.Add(merkle.Leaf(values[r.From:r.To]))
		}
		roots[i] = t.Root()
	})
	return merkle.Root(roots)
}

// values is sealed without its header.
func (c *Codec) values(sealed []byte) []byte {
	if err := c.sealed.Check(sealed, c.SealedLen()); err != nil {
		panic("slice: not a sealed update: " + err.Error())
	}
	return sealed[len(c.sealed):]
}

// Reveal appends to dst what the seed draws of a sealed update, with the proofs that it is part of what Root says. It panics if sealed is not what
// Encode appended.
func (c *Codec) Reveal(dst, sealed []byte, seed wire.Hash) []byte {
	values := c.values(sealed)
	start := len(dst)
	dst = append(append(dst, c.revealed[:]...), seed[:]...)
	ranges := c.Ranges(seed)
	for _, r := range ranges {
		dst = append(dst, values[r.From:r.To]...)
	}
	proofs := make([][]merkle.Hash, len(ranges))
	c.pool.Run(len(ranges), func(i int) {
		g := &c.plan.groups[i]
		leaves := make([]merkle.Hash, g.leaves)
		for k := range leaves {
			r := c.plan.leafRange(g, k)
			leaves[k] = merkle.Leaf(values[r.From:r.To])
		}
		proofs[i] = merkle.Prove(leaves, uint64((ranges[i].From-g.from)/c.plan.leaf))
	})
	for _, proof := range proofs {
		for _, h := range proof {
			dst = append(dst, h[:]...)
		}
	}
	return append(dst, make([]byte, c.RevealLen()-(len(dst)-start))...)
}

// Open returns the root that a reveal belongs to and the seed that it says drew it, both of which the caller compares with what it knows. The error
// says in what the reveal is not well formed.
func (c *Codec) Open(reveal []byte) (root, seed wire.Hash, err error) {
	if err := c.Check(reveal); err != nil {
		return wire.Hash{}, wire.Hash{}, err
	}
	seed = seedOf(reveal)
	ranges := c.Ranges(seed)
	type place struct{ value, proof, proofLen int }
	places := make([]place, len(ranges))
	at := place{value: headLen}
	for i, r := range ranges {
		g := &c.plan.groups[i]
		at.proofLen = proofLen((r.From-g.from)/c.plan.leaf, g.leaves)
		places[i] = at
		at.value += r.Len()
		at.proof += at.proofLen
	}
	roots := make([]merkle.Hash, len(ranges))
	c.pool.Run(len(ranges), func(i int) {
		g, p, r := &c.plan.groups[i], places[i], ranges[i]
		var proof [64]merkle.Hash
		for k := range p.proofLen {
			copy(proof[k][:], reveal[at.value+(p.proof+k)*hashLen:])
		}
		leaf := merkle.Leaf(reveal[p.value : p.value+r.Len()])
		// The proof has the length of one for this leaf, so it leads to a root.
		roots[i], _ = merkle.Climb(leaf, uint64((r.From-g.from)/c.plan.leaf), uint64(g.leaves), proof[:p.proofLen])
	})
	return merkle.Root(roots), seed, nil
}

// headLen is the length of what comes before the values of a reveal or a state slice.
const headLen = 12 + hashLen

func seedOf(b []byte) (seed wire.Hash) {
	copy(seed[:], b[headLen-hashLen:])
	return seed
}

// Check returns nil if reveal has exactly the form of what Reveal appends. Whether it is of the committed update, Open tells. It allocates nothing but
// the error.
func (c *Codec) Check(reveal []byte) error {
	if err := c.revealed.Check(reveal, c.RevealLen()); err != nil {
		return fmt.Errorf("slice: %w", err)
	}
	at, hashes := headLen, 0
	d := newDraw(seedOf(reveal))
	for i := range c.plan.groups {
		g := &c.plan.groups[i]
		k := d.next(g)
		for _, v := range reveal[at : at+c.plan.leafRange(g, k).Len()] {
			if int8(v) == -128 {
				return fmt.Errorf("slice: value %d is -128, which no member sends", at-headLen)
			}
			at++
		}
		hashes += proofLen(k, g.leaves)
	}
	for i, v := range reveal[at+hashes*hashLen:] {
		if v != 0 {
			return fmt.Errorf("slice: byte %d after the proofs is not zero", i)
		}
	}
	return nil
}
