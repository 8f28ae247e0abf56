package change

import (
	"math/bits"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Picture is a run's state as a watcher holds it. It does not change.
type Picture struct {
	layout *record.Layout
	gaps   []gap
	b      []byte // the state, zero in the gaps, and then the hashes over them
}

// gap is a range of pages that a light picture lacks, and the place of its hashes.
type gap struct {
	from, to uint32 // pages
	hashes   uint32 // place of the first in Picture.b
	count    uint32
}

// hashBytes is the length of a hash.
const hashBytes = uint32(len(wire.Hash{}))

// Of returns the picture of a state.
func Of(s coordinator.State) *Picture {
	b := s.Bytes()
	p := Blank(s.Limits())
	copy(p.b, b)
	at := p.b[p.layout.Total:]
	for _, g := range p.gaps {
		g.visit(func(from uint32, height int) {
			h := subtree(b, from, height)
			at = at[copy(at, h[:]):]
		})
		clear(p.b[g.from*record.PageBytes : g.to*record.PageBytes])
	}
	return p
}

// Blank returns the picture in which every byte is zero, from which a first one is made. The limits
// must be in range.
func Blank(l coordinator.Limits) *Picture {
	p := &Picture{layout: layout(l)}
	p.gaps = gaps(p.layout)
	size := p.layout.Total
	for i := range p.gaps {
		g := &p.gaps[i]
		g.hashes = size
		g.visit(func(uint32, int) { g.count++ })
		size += g.count * hashBytes
	}
	p.b = make([]byte, size)
	return p
}

func layout(l coordinator.Limits) *record.Layout {
	return record.LayoutOf(l.Members, uint32(l.Witnesses), uint32(l.Validators), l.Buckets, l.Speeds)
}

// gaps returns the pages of each slot that have nothing but counts of witnesses, if there are any,
// and those that have nothing but filters, and no more than zeros after them.
func gaps(l *record.Layout) (list []gap) {
	within := func(from, to uint32) gap {
		return gap{from: (from + record.PageBytes - 1) / record.PageBytes, to: to / record.PageBytes}
	}
	for k := range uint32(record.RingRounds) {
		at := l.Ring + k*l.Slot
		end := at + l.Filters + l.FiltersLen
		if !l.Buckets && !l.Speeds {
			end = at + l.Slot
		}
		counts, filters := within(at+l.Counts, at+l.Counts+l.Members), within(at+l.Filters, end)
		if l.FiltersLen == 0 || filters.from >= filters.to {
			return nil
		}
		if counts.from < counts.to {
			list = append(list, counts)
		}
		list = append(list, filters)
	}
	return list
}

// filtersOf returns the gap of the filters of a round's reports.
func filtersOf(list []gap, number coordinator.Round) gap {
	each := len(list) / record.RingRounds
	return list[int(number%record.RingRounds)*each+each-1]
}

// State returns the state's bytes, which must not be written to. Those that a light picture lacks
// are zero.
func (p *Picture) State() []byte { return p.b[:p.layout.Total:p.layout.Total] }

// Light reports whether the picture lacks filters. In a small run there is no page without
// anything else, and none lacks them.
func (p *Picture) Light() bool { return len(p.gaps) > 0 }

// Hash returns the hash of the state that the picture is of: coordinator.State.Hash.
func (p *Picture) Hash() wire.Hash {
	var t merkle.Tree
	page := uint32(0)
	for _, g := range p.gaps {
		for ; page < g.from; page++ {
			t.Add(leaf(p.b, page))
		}
		at := p.b[g.hashes:]
		g.visit(func(_ uint32, height int) {
			t.AddFull(height, wire.Hash(at[:hashBytes]))
			at = at[hashBytes:]
		})
		page = g.to
	}
	for ; page < p.layout.Total/record.PageBytes; page++ {
		t.Add(leaf(p.b, page))
	}
	return t.Root()
}

// visit calls f for the largest full subtrees that make up the gap: the first page of each, and its
// height.
func (g gap) visit(f func(from uint32, height int)) {
	for at := g.from; at < g.to; {
		height := bits.Len32(g.to-at) - 1
		if at > 0 {
			height = min(height, bits.TrailingZeros32(at))
		}
		f(at, height)
		at += 1 << height
	}
}

func leaf(b []byte, page uint32) wire.Hash {
	return merkle.Leaf(b[page*record.PageBytes:][:record.PageBytes])
}

// subtree returns the root over the 1<<height pages from one on.
func subtree(b []byte, from uint32, height int) wire.Hash {
	var t merkle.Tree
	for i := range uint32(1) << height {
		t.Add(leaf(b, from+i))
	}
	return t.Root()
}
