package docket

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Vouchers are the members that attested a result and have shown a commitment to it, with its ID.
type Vouchers map[key.Public]wire.Hash

// Add notes what a member shows, if it was elected in the round that attested the result. It
// reports whether it was.
func (v *Vouchers) Add(s coordinator.State, r coordinator.RoundState, from key.Public, id wire.Hash) bool {
	i, known := s.Find(from)
	if !known || !r.Elected(i) {
		return false
	}
	if *v == nil {
		*v = Vouchers{}
	}
	(*v)[from] = id
	return true
}

// Agree reports whether a quorum shows this commitment.
func (v Vouchers) Agree(quorum uint32, id wire.Hash) bool {
	shown := uint32(0)
	for _, o := range v {
		if o == id {
			shown++
		}
	}
	return shown >= quorum
}

// Ask returns as many of those who attested the result as a quorum lacks, without self, beginning
// with another one for each other number.
func (v Vouchers) Ask(s coordinator.State, r coordinator.RoundState, self key.Public, number uint32) (list []key.Public) {
	seats, lacking := r.Witnesses(), int(r.Quorum())-len(v)
	for k := range seats {
		to := s.Key(seats[(number+uint32(k))%uint32(len(seats))])
		if _, shown := v[to]; len(list) < lacking && !shown && to != self {
			list = append(list, to)
		}
	}
	return list
}
