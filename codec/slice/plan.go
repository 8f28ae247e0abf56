package slice

import (
	"math/bits"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A group is neighbouring leaves of one tensor, of which each window sends one. Leaves have the
// codec's Leaf values; the last one of a tensor may be shorter.
type group struct {
	tensor   int // number of its tensor in the layout
	ordinal  int // number of its tensor among those with elements
	from, to int // positions
	leaves   int
}

// part is a range [from, to) of groups.
type part struct{ from, to int }

// plan divides a layout into groups. It is the same in all windows.
type plan struct {
	leaf      int
	groups    []group
	tensors   []part // groups of each tensor with elements
	valuesMax int    // most values in a slice
	proofMax  int    // most hashes in the proofs of a slice
	leavesMax int    // most leaves in a group
}

func newPlan(layout tensor.Layout, cfg Config) plan {
	p := plan{leaf: int(cfg.Leaf)}
	for i, t := range layout.Tensors() {
		if t.Len == 0 {
			continue
		}
		leaves := (t.Len + p.leaf - 1) / p.leaf
		groups := (leaves + int(cfg.Compression) - 1) / int(cfg.Compression)
		from := 0 // leaf
		for g := range groups {
			n := leaves / groups
			if g < leaves%groups {
				n++
			}
			p.groups = append(p.groups, group{
				tensor: i, ordinal: len(p.tensors), from: t.Offset + from*p.leaf, to: t.Offset + min((from+n)*p.leaf, t.Len), leaves: n,
			})
			from += n
			p.leavesMax = max(p.leavesMax, n)
			p.valuesMax += min(p.leaf, t.Len)
			p.proofMax += proofLen(0, n)
		}
		p.tensors = append(p.tensors, part{len(p.groups) - groups, len(p.groups)})
	}
	return p
}

// ObjectMax returns a bound of the length in bytes of a layout's reveals and state slices. It makes
// no codec: the plan of a huge layout takes gigabytes.
func (c Config) ObjectMax(layout tensor.Layout) uint64 {
	leaf, compression := uint64(c.Leaf), uint64(c.Compression)
	var groups, values uint64
	for _, t := range layout.Tensors() {
		leaves := (uint64(t.Len) + leaf - 1) / leaf
		n := (leaves + compression - 1) / compression
		groups += n
		values += n * min(leaf, uint64(t.Len))
	}
	proofs := groups * uint64(bits.Len64(compression-1)*hashLen)
	return uint64(codec.HeaderLen+hashLen) + max(4*values, values+proofs)
}

// proofLen returns the number of hashes in the proof of leaf i of n. The proof of leaf 0 is the
// longest.
func proofLen(i, n int) int {
	k := 0
	for ; n > 1; k++ {
		left := 1 << (bits.Len(uint(n-1)) - 1)
		if i < left {
			n = left
		} else {
			i, n = i-left, n-left
		}
	}
	return k
}

// leafRange returns the range of leaf i of a group.
func (p *plan) leafRange(g *group, i int) codec.Range {
	from := g.from + i*p.leaf
	return codec.Range{Tensor: g.tensor, From: from, To: min(from+p.leaf, g.to)}
}

// A draw yields the leaves of successive groups.
type draw struct {
	source prng.Source
}

func newDraw(seed wire.Hash) draw { return draw{prng.New(seed, "slice")} }

// next draws a leaf of the group, each equally likely and independently of other groups.
func (d *draw) next(g *group) int { return int(d.source.Uint64n(uint64(g.leaves))) }

// Ranges returns the ranges that the seed draws, one leaf of each group, ascending.
func (c *Codec) Ranges(seed wire.Hash) []codec.Range {
	ranges := make([]codec.Range, len(c.plan.groups))
	d := newDraw(seed)
	for i := range ranges {
		g := &c.plan.groups[i]
		ranges[i] = c.plan.leafRange(g, d.next(g))
	}
	return ranges
}
