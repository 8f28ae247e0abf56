// Package subset encodes sets of positions, each with a sign, as numbers: what compressors send of
// a block.
//
// A block of n positions has T = sum of C(n, j) * 2^j, j = 0..k, sets of up to k signed positions.
// The set of positions p1 < p2 < ... < pj has the number
//
//	code = F(j) + rank * 2^j + signs
//
// where F(j) is the number of sets with fewer than j positions, rank is C(p1, 1) + C(p2, 2) + ... +
// C(pj, j), and bit i-1 of signs is 1 if the sign of pi is minus. A code has ceil(log2 T) bits,
// less than one bit more than an ideal coder needs if all sets are equally likely.
package subset

import "github.com/entrain-network/entrain/codec/internal/vec"

// KMax is the most positions of a set.
const KMax = 64

// A Signed is a set of positions with a sign each.
type Signed struct {
	N         int          // number of positions
	Positions [KMax]uint16 // the first N, ascending
	Negative  uint64       // bit i is set if the sign of Positions[i] is minus
}

// A Space encodes the sets of up to K of N positions.
type Space struct {
	N, K        int    // positions, and most positions of a set
	Bits, Words int    // length of a code in bits, and in words of a Number
	Total       Number // number of codes

	lead      int // number of bits of totalLead, the highest bits of Total
	totalLead uint64
	first     []Number // first[j] is the lowest code of j positions
	table     Table
}

// NewSpace makes the space of sets of up to k positions, or n if that is less. The table must cover
// n and k.
func NewSpace(n, k int, table Table) Space {
	s := Space{N: n, K: min(k, n), table: table}
	for j := range s.K + 1 {
		s.first = append(s.first, s.Total)
		sets := table.choose(n, j)
		sets.shl(uint(j), numberWords)
		s.Total.add(sets[:])
	}
	highest := s.Total
	highest.sub([]uint64{1})
	s.Bits = highest.bitLen()
	s.Words = max(1, (s.Bits+63)/64)
	s.lead = min(64, s.Bits)
	lead := s.Total
	for n := s.Bits - s.lead; n > 0; n -= 64 {
		lead.shr(uint(min(64, n)), numberWords)
	}
	s.totalLead = lead[0]
	return s
}

// BitsIdeal returns the base-2 logarithm of the number of codes.
func (s *Space) BitsIdeal() float64 { return s.Total.log2() }

// Code returns the code of v. Every number below Total is the code of exactly one set.
func (s *Space) Code(v *Signed) Number {
	c := s.table.rank(v.Positions[:v.N])
	c.shl(uint(v.N), s.Words)
	c[0] |= v.Negative
	c.add(s.first[v.N][:s.Words])
	return c
}

// Size returns the number of positions of the set with a code below Total.
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
		v.Negative = r.Rest[0] & (1<<uint(v.N) - 1) // all bits for N = 64
		r.Rest.shr(uint(v.N), s.Words)
		r.words = max(2, s.Words)
	}
	s.table.unrank(loop, readings)
}

// Read reads a code at bit offset of b into r.Rest, for Decode.
func (s *Space) Read(r *Reading, b []byte, offset int) {
	readNumber(&r.Rest, b, offset, s.Bits, s.Words)
}

// Valid reports whether the number at bit offset of b is a code.
func (s *Space) Valid(b []byte, offset int) bool {
	// The highest bits nearly always decide.
	if ReadBits(b, offset+s.Bits-s.lead, s.lead) < s.totalLead {
		return true
	}
	var code Number
	readNumber(&code, b, offset, s.Bits, s.Words)
	return code.less(&s.Total, s.Words)
}
