package committee

import "github.com/entrain-network/entrain/wire"

// Positions returns the place of each of n members in the line for a role: element i is
// Position(seed, role, n, i). It shares the hashes among the members and so costs about n/256 + 1
// hashes a round instead of 2*n; clients use it for the whole committee, replicas ask for one
// position. It panics when n exceeds MembersMax.
func Positions(seed wire.Hash, role Role, n uint32) []uint32 {
	at := make([]uint32, n)
	if n == 0 {
		return at
	}
	s := newShuffle(seed, role, n, 0)
	for i := range at {
		at[i] = uint32(i)
	}
	decisions := make([]wire.Hash, (n+255)/256)
	for r := range uint8(Rounds) {
		pivot := s.pivot(r)
		for b := range decisions {
			decisions[b] = s.bits(r, uint32(b))
		}
		for m, i := range at {
			flip := s.flip(pivot, i)
			larger := max(i, flip)
			decided := uint32(decisions[larger/256][larger%256/8]) >> (larger % 8) & 1
			at[m] = i ^ (i^flip)&-decided // flip if decided; a branch here is wrong half the time
		}
	}
	return at
}
