// Package share lists the sequences that the members have in a round.
package share

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// Shares are a round's shares, by their batch.Hash.
type Shares struct {
	Hashes []wire.Hash // by member; zero: it has none
	Count  int         // members that have one

	spans []batch.Span // of the round
	cuts  []cut        // by member
}

// cut is the part of a round's sequences that a member has.
type cut struct{ from, count uint32 }

// All returns the shares of a round.
func All(r coordinator.RoundState) *Shares {
	s := &Shares{spans: r.Spans()}
	if !r.Trains() {
		return s
	}
	from := uint32(0)
	r.Shares(func(i coordinator.Member, spans []batch.Span) {
		if more := int(i) + 1 - len(s.Hashes); more > 0 {
			s.Hashes = append(s.Hashes, make([]wire.Hash, more)...)
			s.cuts = append(s.cuts, make([]cut, more)...)
		}
		count := batch.Total(spans)
		s.Hashes[i], s.cuts[i] = batch.Hash(spans), cut{from, count}
		from += count
		s.Count++
	})
	return s
}

// Of returns the sequences of a member, none if it has no share.
func (s *Shares) Of(i coordinator.Member) []batch.Span {
	if int(i) >= len(s.cuts) || s.cuts[i].count == 0 {
		return nil
	}
	return batch.Cut(s.spans, s.cuts[i].from, s.cuts[i].count)
}
