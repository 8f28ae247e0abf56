// Package committee assigns the roles of a round. From one seed, every participant derives on its
// own the same order of trainers and the same witnesses.
//
// The members of a round are numbered 0 to n-1. For each role a seeded permutation puts them into a
// line; the first in the line hold the role's seats. The permutation is the swap-or-not
// shuffle (Hoang, Morris and Rogaway, "An Enciphering Scheme Based on a Card Shuffle", 2012) in the
// form that Ethereum's consensus specification made known as compute_shuffled_index, with Rounds
// rounds:
//
//	role seed = sha256(seed | name of the role)
//	for r = 0 .. Rounds-1:
//	    pivot = first U64 of sha256(role seed | U8 r), modulo n
//	    flip  = (pivot + n - i) mod n
//	    at    = max(i, flip)
//	    if bit at mod 256 of sha256(role seed | U8 r | U32 at/256) is set: i = flip
//
// Bits count from the least significant of the first byte; numbers are little endian. The advantage
// is that one member's place is found without the others', in constant memory and 2*Rounds hashes,
// and that each round undoes itself, so the member at a place is found by the same rounds
// backwards. For example, with the seed sha256 of the U64 12345 the members 0 to 9 stand at the
// places 1 7 2 9 5 0 8 3 4 6 of the line of Trainers and 7 4 9 2 6 1 0 3 5 8 of that of Witnesses.
//
// The package is replicated (see package wire).
package committee

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/wire"
)

// Rounds is the number of rounds of the shuffle, Ethereum's choice: enough that which permutation
// comes out of a seed cannot be told from chance for far more members than a run has.
const Rounds = 90

// Role is the purpose of a line.
type Role uint8

// The roles. Their numbers are not part of any format; their names are, in the role's seed.
const (
	Trainers  Role = 1 // the order in which shares of the batch are given out
	Witnesses Role = 2 // the order in which members are elected to report received results
	Verifiers Role = 3 // the order in which members recompute results of an earlier round
)

// String returns the role's name as it is hashed into the role's seed.
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

// Position returns the place, from 0, of member i among n in the line for a role. It panics when
// there is no member i, or when n exceeds MembersMax.
func Position(seed wire.Hash, role Role, n, i uint32) uint32 {
	s := newShuffle(seed, role, n, i)
	for r := range uint8(Rounds) {
		i = s.round(r, i)
	}
	return i
}

// Member returns the member at a place in the line for a role: the inverse of Position. It panics
// when there is no such place, or when n exceeds MembersMax.
func Member(seed wire.Hash, role Role, n, position uint32) uint32 {
	s := newShuffle(seed, role, n, position)
	for r := uint8(Rounds); r > 0; r-- {
		position = s.round(r-1, position)
	}
	return position
}

// Witness reports whether member i among n is one of the w elected witnesses; all members are when
// w is n or more. It panics as Position does.
func Witness(seed wire.Hash, n, i, w uint32) bool {
	return Position(seed, Witnesses, n, i) < w
}

// Quorum returns how many of the elected witnesses must agree: strictly more than two thirds, and
// all of one or two. It counts the elected witnesses, not the reports, so silence never makes it
// smaller. The quorum of no witnesses cannot be reached.
func Quorum(witnesses uint32) uint32 {
	return uint32(uint64(witnesses)*2/3) + 1
}

// MembersMax bounds the members of a line, so that no number below overflows. Runs have at most
// 10,000.
const MembersMax = 1 << 24

// shuffle is the permutation of one line.
type shuffle struct {
	n   uint32
	src [32 + 1 + 4]byte // role seed | round | place / 256
}

func newShuffle(seed wire.Hash, role Role, n, i uint32) shuffle {
	if n > MembersMax {
		panic("committee: too many members")
	}
	if i >= n {
		panic("committee: place beyond the members")
	}
	s := shuffle{n: n}
	roleSeed := wire.SHA256(seed[:], []byte(role.String()))
	copy(s.src[:], roleSeed[:])
	return s
}

// round moves i through one round of the shuffle. Applied twice it changes nothing.
func (s *shuffle) round(r uint8, i uint32) uint32 {
	flip := s.flip(s.pivot(r), i)
	at := max(i, flip)
	bits := s.bits(r, at/256)
	if bits[at%256/8]>>(at%8)&1 == 1 {
		return flip
	}
	return i
}

// pivot returns round r's pivot, below n.
func (s *shuffle) pivot(r uint8) uint32 {
	s.src[32] = r
	h := wire.SHA256(s.src[:33])
	return uint32(binary.LittleEndian.Uint64(h[:]) % uint64(s.n))
}

// flip returns the partner of i in a round: the place at the same distance on the other side of the
// pivot, modulo n.
func (s *shuffle) flip(pivot, i uint32) uint32 {
	f := pivot + s.n - i // below 2n, so one subtraction is the remainder
	if f >= s.n {
		f -= s.n
	}
	return f
}

// bits returns round r's decisions for the pairs whose larger place is in the given block of 256.
func (s *shuffle) bits(r uint8, block uint32) wire.Hash {
	s.src[32] = r
	binary.LittleEndian.PutUint32(s.src[33:], block)
	return wire.SHA256(s.src[:])
}
