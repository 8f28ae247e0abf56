package table

import "github.com/entrain-network/entrain/coordinator"

// Seats remembers in which of the last rounds a member is elected. That is asked at every event,
// and never changes once a round is open.
type Seats [8]seat

// seat is whether a member is elected in a round.
type seat struct {
	round   coordinator.Round
	member  coordinator.Member
	elected bool
}

// Elected reports whether a member is elected in a round, once it is open.
func (s *Seats) Elected(state coordinator.State, round coordinator.Round, member coordinator.Member) bool {
	at := &s[round%coordinator.Round(len(s))]
	if at.round == round && at.member == member {
		return at.elected
	}
	r, ok := state.At(round)
	if ok {
		*at = seat{round, member, r.Elected(member)}
	}
	return ok && at.elected
}
