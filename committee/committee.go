// Package committee assigns the roles of a round. From one seed, every participant derives on its
// own the same order of trainers and the same witnesses.
//
// The members of a round are numbered 0 to n-1. For each role a seeded shuffle puts them into a
// line; the first in the line hold the role's seats. The shuffle is that of Fisher and Yates
// (Knuth, "The Art of Computer Programming", volume 2, algorithm P), from the first place up, with
// the choices of package prng for the round's seed and the role's name:
//
//	line = 0, 1, .., n-1
//	for p = 0, 1, ..: exchange line[p] and line[p + Uint64n(n - p)]
//
// So the first places do not depend on how many are asked for. For example, with the seed sha256 of
// the U64 12345 ten members stand in the line of Trainers as 7 1 6 3 9 2 0 5 4 8 and in that of
// Witnesses as 6 0 9 5 7 4 8 2 1 3.
//
// The package is replicated (see package wire).
package committee

import (
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Role is the purpose of a line.
type Role uint8

// The roles. Their numbers are not part of any format; their names are.
const (
	Trainers  Role = 1 // the order in which shares of the batch are given out
	Witnesses Role = 2 // the order in which members are elected to report received results
	Verifiers Role = 3 // the order in which members recompute results of an earlier round
)

// String returns the role's name as it labels the line's choices.
func (r Role) String() string {
	switch r {
	case Trainers:
		return "committee"
	case Witnesses:
		return "witness"
	case Verifiers:
		return "verifier"
	}
	panic("committee: unknown role")
}

// Line returns the members at the first w places of the line of n members for a role, or the whole
// line if w is n or more. It panics if n exceeds MembersMax.
func Line(seed wire.Hash, role Role, n, w uint32) []uint32 {
	if n > MembersMax {
		panic("committee: too many members")
	}
	line := make([]uint32, n)
	for i := range line {
		line[i] = uint32(i)
	}
	return Seat(seed, role, line, w)
}

// Seat returns those of the members that have the first w places in the line for a role, or the
// whole line if there are w or fewer. It changes the order of members, and returns a part of it. It
// panics if there are more than MembersMax.
func Seat[T any](seed wire.Hash, role Role, members []T, w uint32) []T {
	if len(members) > MembersMax {
		panic("committee: too many members")
	}
	n := uint32(len(members))
	choices := prng.New(seed, role.String())
	w = min(w, n)
	for p := range w {
		q := p + uint32(choices.Uint64n(uint64(n-p)))
		members[p], members[q] = members[q], members[p]
	}
	return members[:w]
}

// Quorum returns how many of the elected witnesses must agree: strictly more than two thirds, and
// all of one or two. It counts the elected witnesses, not the reports, so silence never makes it
// smaller. The quorum of no witnesses cannot be reached.
func Quorum(witnesses uint32) uint32 {
	return uint32(uint64(witnesses)*2/3) + 1
}

// MembersMax bounds the members of a line. Runs have at most 10,000.
const MembersMax = 1 << 24
