package slice

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

const hashLen = len(wire.Hash{})

// headLen is the length of the header and seed of a reveal or a state slice.
const headLen = 12 + hashLen

func seedOf(b []byte) (seed wire.Hash) {
	copy(seed[:], b[headLen-hashLen:])
	return seed
}

// Root returns the hash that a member commits to: the root of the tree over the roots of the
// groups. It panics if Encode did not make sealed.
func (c *Codec) Root(sealed []byte) wire.Hash {
	j := c.get()
	defer c.put(j)
	j.values = c.valuesOf(sealed)
	c.pool.RunOn(len(j.roots), j.root)
	return merkle.Root(j.roots)
}

// valuesOf returns sealed without its header.
func (c *Codec) valuesOf(sealed []byte) []byte {
	if err := c.sealed.Check(sealed, c.SealedLen()); err != nil {
		panic("slice: not a sealed update: " + err.Error())
	}
	return sealed[len(c.sealed):]
}

func (j *job) rootGroup(_ *exact.Worker, i int) {
	g := &j.c.plan.groups[i]
	var t merkle.Tree
	for k := range g.leaves {
		r := j.c.plan.leafRange(g, k)
		t.Add(merkle.Leaf(j.values[r.From:r.To]))
	}
	j.roots[i] = t.Root()
}

// Reveal appends to dst the values that the seed draws of a sealed update, and the proofs that they
// are under its Root. It panics if Encode did not make sealed.
func (c *Codec) Reveal(dst, sealed []byte, seed wire.Hash) []byte {
	j := c.get()
	defer c.put(j)
	j.values = c.valuesOf(sealed)
	j.locate(newDraw(seed))
	start, length := len(dst), c.RevealLen()
	dst = slices.Grow(dst, length)[:start+length]
	j.reveal = dst[start:]
	clear(j.reveal)
	copy(j.reveal[copy(j.reveal, c.revealed[:]):], seed[:])
	c.pool.RunOn(len(j.places), j.prove)
	return dst
}

func (j *job) proveGroup(w *exact.Worker, i int) {
	g, p := &j.c.plan.groups[i], &j.places[i]
	copy(j.reveal[p.value:], j.values[p.positions.From:p.positions.To])
	leaves := j.scratch[w.Index()].leaves[:g.leaves]
	for k := range leaves {
		r := j.c.plan.leafRange(g, k)
		leaves[k] = merkle.Leaf(j.values[r.From:r.To])
	}
	at := p.proof
	for _, h := range merkle.Prove(leaves, uint64(p.drawn)) {
		at += copy(j.reveal[at:], h[:])
	}
}

// Open returns the root of a reveal's update, and the seed of its draw; the caller compares both
// with what it knows. It returns an error if the reveal is not well formed.
func (c *Codec) Open(reveal []byte) (root, seed wire.Hash, err error) {
	if err := c.Check(reveal); err != nil {
		return wire.Hash{}, wire.Hash{}, err
	}
	j := c.get()
	defer c.put(j)
	seed = seedOf(reveal)
	j.reveal = reveal
	j.locate(newDraw(seed))
	c.pool.RunOn(len(j.places), j.open)
	return merkle.Root(j.roots), seed, nil
}

func (j *job) openGroup(_ *exact.Worker, i int) {
	p := &j.places[i]
	var proof [64]merkle.Hash
	for k := range p.proofLen {
		copy(proof[k][:], j.reveal[p.proof+k*hashLen:])
	}
	leaf := merkle.Leaf(j.reveal[p.value : p.value+p.positions.Len()])
	// The proof has the right length for this leaf, so Climb cannot fail.
	j.roots[i], _ = merkle.Climb(leaf, uint64(p.drawn), uint64(j.c.plan.groups[i].leaves), proof[:p.proofLen])
}

// Check returns an error unless reveal has the form of a reveal. Only Open finds out whether it
// belongs to the committed update. Check allocates nothing except the error.
func (c *Codec) Check(reveal []byte) error {
	if err := c.check(reveal); err != nil {
		return fmt.Errorf("slice: %w", err)
	}
	return nil
}

func (c *Codec) check(reveal []byte) error {
	if err := c.revealed.Check(reveal, c.RevealLen()); err != nil {
		return err
	}
	at, hashes := headLen, 0
	d := newDraw(seedOf(reveal))
	for i := range c.plan.groups {
		g := &c.plan.groups[i]
		k := d.next(g)
		at += c.plan.leafRange(g, k).Len()
		hashes += proofLen(k, g.leaves)
	}
	for i, v := range reveal[headLen:at] {
		if int8(v) < -valueMax {
			return fmt.Errorf("value %d is %d, below -%d", i, int8(v), valueMax)
		}
	}
	for i, v := range reveal[at+hashes*hashLen:] {
		if v != 0 {
			return fmt.Errorf("byte %d after the proofs is not zero", i)
		}
	}
	return nil
}
