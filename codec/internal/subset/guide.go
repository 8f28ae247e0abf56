package subset

import "math"

// A guide tells for a number r about where it lies among C(c, i), c = 0, 1, ..., for one i: below
// returns the largest c with C(c, i) <= r, or the number before that. So one comparison finds out
// which, where a binary search has a dozen.
//
// It is a piecewise linear function of r. The pieces are those numbers which have the same length
// and the same leading bits; it knows the value where each piece begins, and that of the next
// piece, in units of 1/65536. As C(c, i) is convex in c the position is concave in r, so that the
// chord of a piece lies below it; the pieces are made so short that it lies less than 1 below, and
// newGuide has proven both for every number.
type guide struct {
	lead   uint     // how many bits after the highest tell pieces apart
	values []uint32 // where pieces begin, by length and leading bits; one more ends the last
}

// guideFraction is how many bits after the leading ones place a number within its piece, and how
// many bits of a value are after the point.
const guideFraction = 16

// below takes r as its length in bits and its highest 64 bits, the first of which is at the top.
func (g *guide) below(length int, highest uint64) int {
	rest := highest << 1
	piece := length<<(g.lead&63) | int(rest>>((64-g.lead)&63))
	fraction := rest << (g.lead & 63) >> (64 - guideFraction)
	values := g.values[piece : piece+2]
	from, to := uint64(values[0]), uint64(values[1])
	return int((from + (to-from)*fraction>>guideFraction) >> guideFraction)
}

// belowNumber is below of r.
func (g *guide) belowNumber(r *Number) int {
	length := r.bitLen()
	highest := *r
	for n := 64*NumberWords - length; n > 0; n -= 64 {
		highest.shl(uint(min(n, 64)), NumberWords)
	}
	return g.below(length, highest[NumberWords-1])
}

// newGuide makes the guide for the cells C(0, i), C(1, i), ..., with as few leading bits as will
// do: up to 7 for the blocks of any Config.
func newGuide(cells []Number, i int) guide {
	for lead := uint(2); lead < guideFraction; lead++ {
		if g := newGuideOf(cells, i, lead); g.proven(cells, i) {
			return g
		}
	}
	panic("distro: no guide for Table")
}

// newGuideOf makes the guide with so many leading bits, in binary64, whose errors proven has to
// bear in mind and not this.
func newGuideOf(cells []Number, i int, lead uint) guide {
	last := len(cells) - 1
	length := cells[last].bitLen()
	g := guide{lead: lead, values: make([]uint32, 0, (length+1)<<lead+1)}
	c := min(i-1, last)    // C(i-1, i) = 0
	low, width := 0.0, 1.0 // of the cell
	for piece := range (length+1)<<lead + 1 {
		var from float64 // the least number of the piece; 0 for those of no length
		if n := piece >> lead; n > 0 {
			from = math.Ldexp(1+float64(piece&(1<<lead-1))/float64(int(1)<<lead), n-1)
		}
		for c < last && from >= low+width {
			c++
			low = cells[c].float()
			if c < last { // the last goes on as the one before, so that the function stays concave
				width = cells[c+1].float() - low
			}
		}
		at := float64(c) + (from-low)/width
		g.values = append(g.values, uint32(max(0, float64(at*(1<<guideFraction))-1)))
	}
	return g
}

// proven tells whether below does what it promises for every number below the last cell. As it
// never falls it does so for all r from C(c, i) up to C(c+1, i) - 1 if it does for these two.
func (g *guide) proven(cells []Number, i int) bool {
	for p := range len(g.values) - 1 {
		if g.values[p] > g.values[p+1] {
			return false
		}
	}
	for c := i - 1; c < len(cells)-1; c++ {
		if g.belowNumber(&cells[c]) < c-1 {
			return false
		}
		r := cells[c+1]
		r.sub([]uint64{1})
		if g.belowNumber(&r) > c {
			return false
		}
	}
	return true
}
