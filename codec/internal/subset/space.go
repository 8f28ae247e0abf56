// Package subset writes sets of positions, each with a sign, as numbers: the codes of what
// compressors send of a block.
//
// What can be said about a block of n positions is: j of them are in the set, for some j from 0 to
// k; which; each plus or minus. That makes T = sum of C(n, j) * 2^j for j = 0..k different things
// to say. They are numbered
//
//	code = F(j) + rank * 2^j + signs
//
// where F(j) is the number of things to say with fewer than j; rank is C(p1, 1) + C(p2, 2) + ... +
// C(pj, j) for the positions p1 < p2 < ...; and bit i-1 of signs is that of pi. The width of a code
// is ceil(log2 T) bits, less than one bit above what an ideal coder needs when all sets are equally
// likely.
package subset

import "github.com/entrain-network/entrain/codec/internal/vec"

// KMax is the most positions of a set.
const KMax = 64

// A Signed is a set of positions with a sign each.
type Signed struct {
	N         int          // how many
	Positions [KMax]uint16 // ascending; the first N count
	Negative  uint64       // bit i: that of Positions[i] is minus
}

// A Space is the sets of up to k of n positions.
type Space struct {
	N, K        int    // positions, and how many of them a set has at most
	Bits, Words int    // length of a code in bits, and in words of a Number
	Total       Number // how many codes there are

	lead      int // the highest so many bits of Total, up to 64, are totalLead
	totalLead uint64
	first     []Number // first[j] is the lowest code of j positions
	table     Table
}

// NewSpace makes the space of sets of up to k positions, or n if that is less. The table is for as
// many of each at least.
func NewSpace(n, k int, table Table) Space {
	s := Space{N: n, K: min(k, n), table: table}
	for j := range s.K + 1 {
		s.first = append(s.first, s.Total)
		sets := table.choose(n, j)
		sets.shl(uint(j), NumberWords)
		s.Total.add(sets[:])
	}
	highest := s.Total
	highest.sub([]uint64{1})
	s.Bits = highest.bitLen()
	s.Words = max(1, (s.Bits+63)/64)
	s.lead = min(64, s.Bits)
	lead := s.Total
	for n := s.Bits - s.lead; n > 0; n -= 64 {
		lead.shr(uint(min(64, n)), NumberWords)
	}
	s.totalLead = lead[0]
	return s
}

// BitsIdeal is the logarithm to base 2 of the number of codes: the bits that an ideal coder needs
// when all are equally likely.
func (s *Space) BitsIdeal() float64 { return s.Total.log2() }

// Code returns the number that stands for v: all numbers below Total stand for something, and no
// two for the same.
func (s *Space) Code(v *Signed) Number {
	c := s.table.rank(v.Positions[:v.N])
	c.shl(uint(v.N), s.Words)
	c[0] |= v.Negative
	c.add(s.first[v.N][:s.Words])
	return c
}

// Size is how many positions the set with a code below Total has.
func (s *Space) Size(code *Number) int {
	n := s.K
	for code.less(&s.first[n], s.Words) {
		n--
	}
	return n
}

// Decode is the inverse of Code for several readings at once, each with a code below Total in Rest.
func (s *Space) Decode(loop *vec.Kernel, readings []Reading) {
	for i := range readings {
		r := &readings[i]
		v := &r.Set
		v.N = s.Size(&r.Rest)
		r.Rest.take(s.first[v.N][:], s.Words)
		v.Negative = r.Rest[0] & (1<<uint(v.N) - 1) // Go's 1<<64 - 1 has all bits set
		r.Rest.shr(uint(v.N), s.Words)
		r.words = max(2, s.Words)
	}
	s.table.unrank(loop, readings)
}

// Read reads a code at bit offset of b, for Decode.
func (s *Space) Read(r *Reading, b []byte, offset int) {
	ReadNumber(&r.Rest, b, offset, s.Bits, s.Words)
}

// Valid tells whether the number at bit offset of b stands for something.
func (s *Space) Valid(b []byte, offset int) bool {
	// The highest bits nearly always tell.
	if ReadBits(b, offset+s.Bits-s.lead, s.lead) < s.totalLead {
		return true
	}
	var code Number
	ReadNumber(&code, b, offset, s.Bits, s.Words)
	return code.less(&s.Total, s.Words)
}
