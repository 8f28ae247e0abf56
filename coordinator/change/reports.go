package change

import (
	"bytes"
	"slices"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Reports is what an elected member needs to make the filters of a round's reports again, which a
// light picture lacks, from the commitments that it knows. A filter follows from who holds what and
// from these. Whether it does, the hashes of its pages tell, which a picture proves. So it does not
// matter who says what is held.
type Reports struct {
	Round coordinator.Round
	Pages []wire.Hash // of the pages that the picture lacks, in order
	Held  [][]byte    // by seat, as in the report; empty if there is none, or if nobody knows
}

// ReportsOf returns those of a round that is over. held returns what the report with a filter says
// is held. ok is false if there are no filters, or if a picture has them.
func ReportsOf(s coordinator.State, number coordinator.Round, held func(filter []byte) []byte) (reports Reports, ok bool) {
	g, r, ok := lacking(s, number)
	if !ok || number >= s.Round() {
		return reports, false
	}
	reports = Reports{Round: number, Held: make([][]byte, len(r.Witnesses()))}
	for page := g.from; page < g.to; page++ {
		reports.Pages = append(reports.Pages, leaf(s.Bytes(), page))
	}
	seats := r.Witnesses()
	for _, report := range r.Reports() {
		for p, member := range seats {
			if member == report.Member {
				reports.Held[p] = held(report.Commitments)
			}
		}
	}
	return reports, true
}

// Told reports whether a witness says that it holds a member's result.
func (r Reports) Told(i coordinator.Member) bool {
	return slices.ContainsFunc(r.Held, func(set []byte) bool { return int(i/8) < len(set) && set[i/8]>>(i%8)&1 == 1 })
}

// lacking returns the gap of a round's filters in a light picture.
func lacking(s coordinator.State, number coordinator.Round) (g gap, r coordinator.RoundState, ok bool) {
	list := gaps(layout(s.Limits()))
	r, ok = s.At(number)
	if !ok || len(list) == 0 || r.Filter().Bits == 0 {
		return gap{}, r, false
	}
	return filtersOf(list, number), r, true
}

// Append appends the encoding:
//
//	U32 round | U32 count of pages | their hashes | U8 count of seats | what each holds, as Var
func (r Reports) Append(dst []byte) []byte {
	dst = wire.AppendU32(wire.AppendU32(dst, uint32(r.Round)), uint32(len(r.Pages)))
	for _, h := range r.Pages {
		dst = wire.AppendHash(dst, h)
	}
	dst = wire.AppendU8(dst, uint8(len(r.Held)))
	for _, b := range r.Held {
		dst = wire.AppendVar(dst, b)
	}
	return dst
}

// ReportsBytesMax bounds the encoding of what belongs to a picture.
func (p *Picture) ReportsBytesMax() int {
	return 9 + int(p.layout.Slot/record.PageBytes*hashBytes) + coordinator.WitnessesMax*int(4+p.layout.Bitmap)
}

// ReadReports reads what Append has written.
func (p *Picture) ReadReports(r *wire.Reader) (reports Reports) {
	reports.Round = coordinator.Round(r.U32())
	for range min(r.U32(), p.layout.Slot/record.PageBytes) {
		reports.Pages = append(reports.Pages, r.Hash())
	}
	for range min(r.U8(), coordinator.WitnessesMax) {
		reports.Held = append(reports.Held, bytes.Clone(r.Var(int(p.layout.Bitmap))))
	}
	return reports
}

// Proves reports whether the picture has these pages.
func (p *Picture) Proves(r Reports) bool {
	if len(p.gaps) == 0 {
		return false
	}
	g := filtersOf(p.gaps, r.Round)
	if len(r.Pages) != int(g.to-g.from) {
		return false
	}
	same, at := true, p.b[g.hashes:]
	g.visit(func(from uint32, height int) {
		same = same && root(r.Pages[from-g.from:][:1<<height]) == wire.Hash(at[:hashBytes])
		at = at[hashBytes:]
	})
	return same
}

// root returns the root over pages.
func root(pages []wire.Hash) wire.Hash {
	var t merkle.Tree
	for _, h := range pages {
		t.Add(h)
	}
	return t.Root()
}

// Filters are the filters of a round's reports, as far as they could be made again. Others are
// empty: they confirm nothing.
type Filters struct {
	Round coordinator.Round
	at    uint32 // place in the state
	b     []byte
}

// Rebuild makes the filters of a round again from the commitments that a member knows, of which id
// returns the ID. s is the state that lacks them. ok is false if those that follow from these
// commitments do not confirm all accepted results: then others have to be known, or the filters.
func (r Reports) Rebuild(s coordinator.State, id func(coordinator.Member) (wire.Hash, bool)) (f Filters, ok bool) {
	g, round, ok := lacking(s, r.Round)
	attested, known := s.At(round.Attests())
	seats := round.Witnesses()
	if !ok || !known || len(r.Pages) != int(g.to-g.from) || len(r.Held) != len(seats) {
		return f, false
	}
	l := layout(s.Limits())
	size := uint32(round.Filter().Bytes())
	f = Filters{Round: r.Round, at: l.Ring + uint32(r.Round%record.RingRounds)*l.Slot + l.Filters, b: make([]byte, l.FiltersLen)}
	r.fill(f.b, s, round, id)
	good := r.compare(s, g, f)
	confirmed := make([]uint32, s.Count())
	for p := range seats {
		from := f.at + uint32(p)*size
		if !good.all(from, from+size) {
			clear(f.b[uint32(p)*size:][:size])
			continue
		}
		each(r.Held[p], s.Count(), func(i coordinator.Member) { confirmed[i]++ })
	}
	for i, n := range confirmed {
		if attested.Accepted(coordinator.Member(i)) && n < round.Quorum() {
			return f, false
		}
	}
	return f, true
}

// fill writes the filters that follow from what each seat holds.
func (r Reports) fill(b []byte, s coordinator.State, round coordinator.RoundState, id func(coordinator.Member) (wire.Hash, bool)) {
	p := round.Filter()
	ids, known := make([]wire.Hash, s.Count()), make([]bool, s.Count())
	for i := range ids {
		ids[i], known[i] = id(coordinator.Member(i))
	}
	for seat, member := range round.Witnesses() {
		filter, salt := bloom.Filter(b[seat*p.Bytes():][:p.Bytes()]), s.Key(member)
		each(r.Held[seat], s.Count(), func(i coordinator.Member) {
			if known[i] {
				filter.Add(p, salt[:], ids[i])
			}
		})
	}
}

// each calls f for the members of a set.
func each(set []byte, count coordinator.Member, f func(coordinator.Member)) {
	for i := range min(count, coordinator.Member(8*len(set))) {
		if set[i/8]>>(i%8)&1 == 1 {
			f(i)
		}
	}
}

// matches is which pages of a state, from the first one on, are those that were made again.
type matches struct {
	first uint32
	page  []bool
}

// compare returns which pages of the round are as they are in the state.
func (r Reports) compare(s coordinator.State, g gap, f Filters) matches {
	end := f.at + uint32(len(f.b))
	m := matches{first: f.at / record.PageBytes}
	for page := m.first; page*record.PageBytes < end; page++ {
		at := page * record.PageBytes
		before := s.Bytes()[at:][:record.PageBytes]
		now := bytes.Clone(before)
		from, to := max(at, f.at), min(at+record.PageBytes, end)
		copy(now[from-at:], f.b[from-f.at:to-f.at])
		if page >= g.from && page < g.to {
			m.page = append(m.page, leaf(now, 0) == r.Pages[page-g.from])
		} else {
			m.page = append(m.page, bytes.Equal(before, now))
		}
	}
	return m
}

// all reports whether a filter is as in the state. Its first and last page may be shared with
// filters that could not be made again. Without these it counts if others are three times as many:
// they have most bits of every commitment.
func (m matches) all(from, to uint32) bool {
	inner, outer := 0, 0
	shared := true
	for page := from / record.PageBytes; page*record.PageBytes < to; page++ {
		whole, good := page*record.PageBytes >= from && (page+1)*record.PageBytes <= to, m.page[page-m.first]
		switch {
		case whole && !good:
			return false
		case whole:
			inner++
		default:
			outer++
			shared = shared && good
		}
	}
	return shared || inner >= 3*outer
}

// Rebuilt are the filters of several rounds that were made again.
type Rebuilt []Filters

// Has reports whether the filters of a round are there.
func (l Rebuilt) Has(number coordinator.Round) bool {
	return slices.ContainsFunc(l, func(f Filters) bool { return f.Round == number })
}

// Into returns a light state with the filters. Those of rounds that it no longer has are dropped.
func (l *Rebuilt) Into(s coordinator.State) coordinator.State {
	*l = slices.DeleteFunc(*l, func(f Filters) bool { _, _, ok := lacking(s, f.Round); return !ok })
	if len(*l) == 0 {
		return s
	}
	b := bytes.Clone(s.Bytes())
	for _, f := range *l {
		copy(b[f.at:], f.b)
	}
	filled, err := coordinator.Open(b)
	if err != nil {
		return s // it was one, so this cannot be
	}
	return filled
}
