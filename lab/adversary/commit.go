package adversary

import (
	"maps"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
)

// holdBack withholds the member's commitment of a round until something is published in its place.
func (m *member) holdBack(s dispute.Signed) []dispute.Signed {
	r := s.Commitment.Round
	if other, ok := m.instead[r]; ok {
		return []dispute.Signed{other}
	}
	m.pending[r] = s
	m.news++
	for old := range m.pending {
		if old+keepRounds < r {
			delete(m.pending, old)
			delete(m.instead, old)
		}
	}
	return nil
}

// copyFrom commits to another member's payload, as soon as it is there, as if it were the member's
// own: to that of one member, or of any if only is zero.
func (m *member) copyFrom(only key.Public) func() []dispute.Signed {
	looked, place := 0, coordinator.Member(0) // place is that of only
	return func() (out []dispute.Signed) {
		if looked == m.news { // most news is of commitments whose payload is not there yet
			return nil
		}
		looked = m.news
		if !only.IsZero() && (place >= m.state.Count() || m.state.Key(place) != only) {
			place, _ = m.state.Find(only)
		}
		for _, round := range slices.Sorted(maps.Keys(m.pending)) {
			own, seen := m.pending[round], m.seen[round]
			if _, done := m.instead[round]; done || !m.hasState {
				continue
			}
			copied, found := coordinator.Member(0), false // the first such member
			suits := func(i coordinator.Member, s *dispute.Signed) bool {
				return i < m.state.Count() && (!found || i < copied) && m.held[s.Commitment.Payload] && m.state.Key(i) != m.self
			}
			if s := seen[place]; only.IsZero() {
				for i, s := range seen {
					if suits(i, s) {
						copied, found = i, true
					}
				}
			} else if s != nil && m.state.Key(place) == only {
				copied, found = place, suits(place, s)
			}
			if !found {
				continue
			}
			s, c := m.seen[round][copied], own.Commitment
			c.Payload, c.PayloadBytes, c.Loss = s.Commitment.Payload, s.Commitment.PayloadBytes, s.Commitment.Loss
			m.instead[round] = m.sign(c)
			out = append(out, m.instead[round])
		}
		return out
	}
}

// afterwards publishes the withheld commitment once the round's results are settled.
func (m *member) afterwards() (out []dispute.Signed) {
	if !m.hasState {
		return nil
	}
	for _, round := range slices.Sorted(maps.Keys(m.pending)) {
		own := m.pending[round]
		if r, ok := m.state.At(round); m.instead[round] == own || ok && !r.Final() {
			continue
		}
		m.instead[round] = own
		out = append(out, own)
	}
	return out
}

// twice signs a second commitment for the same share.
func (m *member) twice(s dispute.Signed) []dispute.Signed {
	c := s.Commitment
	c.Loss++
	return []dispute.Signed{s, m.sign(c)}
}

// conceal publishes a commitment and keeps from peers the optimizer states that it names.
func (m *member) conceal(s dispute.Signed) []dispute.Signed {
	m.secret[s.Commitment.Prev], m.secret[s.Commitment.State] = true, true
	return []dispute.Signed{s}
}
