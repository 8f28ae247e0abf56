package distro

import "github.com/entrain-network/entrain/codec/internal/vec"

// A votes is what a payload says about one block: which coefficients it moves, and whether down.
type votes struct {
	n         int             // how many
	positions [TopKMax]uint16 // of coefficients in the block, row-major, ascending; the first n count
	negative  uint64          // bit i: positions[i] is moved down
}

// A shape is a size of blocks, with what coding needs to know of it. Blocks of one size share it.
type shape struct {
	h, w         int
	k            int    // most coefficients sent of a block: min(TopK, h*w)
	bits, words  int    // length of a code in bits, and in words of a number
	run          int    // how many coefficients after one another make vec.Lanes groups for top: about 8k groups in all
	total        number // how many codes there are: the sum over j = 0..k of C(h*w, j) * 2^j
	lead         int    // the highest so many bits of total, up to 64, are totalLead
	totalLead    uint64
	first        []number // first[j] is the lowest code of j coefficients
	rows, cols   *basis   // of h and of w points
	byRow        []uint16 // of each position, where it is when coefficients are in rows, row-major: there
	byColumn     []uint16 // where it is when they are in columns of rows.ld; nil if the shape is not worth it
	combinations binomials
}

func newShape(h, w, topK int, rows, cols *basis, combinations binomials) *shape {
	s := &shape{h: h, w: w, k: min(topK, h*w), rows: rows, cols: cols, combinations: combinations}
	for j := range s.k + 1 {
		s.first = append(s.first, s.total)
		sets := combinations.choose(h*w, j)
		sets.shl(uint(j), numberWords)
		s.total.add(sets[:])
	}
	highest := s.total
	highest.sub([]uint64{1})
	s.bits = highest.bitLen()
	s.words = max(1, (s.bits+63)/64)
	s.lead = min(64, s.bits)
	lead := s.total
	for n := s.bits - s.lead; n > 0; n -= 64 {
		lead.shr(uint(min(64, n)), numberWords)
	}
	s.totalLead = lead[0]
	const groups = 8 // a coefficient sent
	s.run = max(1, h*w/(groups*s.k)) * vec.Lanes
	return s
}

// code returns the number that stands for v: all numbers below s.total stand for something, and no two for the same.
func (s *shape) code(v *votes) number {
	c := s.combinations.rank(v.positions[:v.n])
	c.shl(uint(v.n), s.words)
	c[0] |= v.negative
	c.add(s.first[v.n][:s.words])
	return c
}

// decode is the inverse of code for several readings at once, each with a code below s.total in rest.
func (s *shape) decode(loop *vec.Kernel, readings []reading) {
	for i := range readings {
		r := &readings[i]
		v := &r.votes
		v.n = s.k
		for r.rest.less(&s.first[v.n], s.words) {
			v.n--
		}
		r.rest.take(s.first[v.n][:], s.words)
		v.negative = r.rest[0] & (1<<uint(v.n) - 1) // Go's 1<<64 - 1 has all bits set
		r.rest.shr(uint(v.n), s.words)
		r.words = max(2, s.words)
	}
	s.combinations.unrank(loop, readings)
}
