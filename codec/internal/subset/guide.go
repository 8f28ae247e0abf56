package subset

import "math"

// A guide locates a number r among C(c, i), c = 0, 1, ..., for one i. below returns the largest c
// with C(c, i) <= r, or the number before it, so one comparison replaces the dozen of a binary
// search.
//
// A guide is a piecewise linear function of r. Numbers with the same length and the same leading
// bits share a piece; the guide knows the function's value where each piece begins, in units of
// 1/65536. As C(c, i) is convex in c, the position is concave in r, so the chord of a piece is
// below it. Pieces are so short that the chord is less than 1 below. newGuide has verified both for
// every number.
type guide struct {
	lead   uint     // number of bits after the highest that select a piece
	values []uint32 // at the start of each piece, by length and leading bits; then the last end
}

// guideFraction is the number of bits after the leading ones that locate a number in its piece, and
// the number of fraction bits of a value.
const guideFraction = 16

// below takes r as its length in bits and its highest 64 bits, left-aligned.
func (g *guide) below(length int, highest uint64) int {
	rest := highest << 1
	piece := length<<(g.lead&63) | int(rest>>((64-g.lead)&63))
	fraction := rest << (g.lead & 63) >> (64 - guideFraction)
	values := g.values[piece : piece+2]
	from, to := uint64(values[0]), uint64(values[1])
	return int((from + (to-from)*fraction>>guideFraction) >> guideFraction)
}

// belowNumber is below for a Number.
func (g *guide) belowNumber(r *Number) int {
	for w := numberWords; w > 1; w-- {
		if r[w-1] != 0 {
			return g.below(leading(r[w-1], r[w-2], w))
		}
	}
	if r[0] == 0 {
		return g.below(0, 0)
	}
	return g.below(leading(r[0], 0, 1))
}

// newGuide makes the guide for the cells C(0, i), C(1, i), ..., with the least sufficient number of
// leading bits: up to 7 for the blocks of any Config.
func newGuide(cells []Number, i int) guide {
	floats := make([]float64, len(cells))
	for c := range cells {
		floats[c] = cells[c].float()
	}
	for lead := uint(2); lead < guideFraction; lead++ {
		if g := newGuideOf(floats, cells[len(cells)-1].bitLen(), i, lead); g.proven(cells, i) {
			return g
		}
	}
	panic("distro: no guide for Table")
}

// newGuideOf makes the guide with the given number of leading bits. It computes in binary64; proven
// accounts for its errors. length is that of the last cell in bits.
func newGuideOf(cells []float64, length, i int, lead uint) guide {
	last := len(cells) - 1
	g := guide{lead: lead, values: make([]uint32, 0, (length+1)<<lead+1)}
	c := min(i-1, last)    // C(i-1, i) = 0
	low, width := 0.0, 1.0 // the cell and the distance to the next
	for piece := range (length+1)<<lead + 1 {
		var from float64 // the least number of the piece; 0 for length 0
		if n := piece >> lead; n > 0 {
			from = math.Ldexp(1+float64(piece&(1<<lead-1))/float64(int(1)<<lead), n-1)
		}
		for c < last && from >= low+width {
			c++
			low = cells[c]
			if c < last { // extends the last but one, so that the function stays concave
				width = cells[c+1] - low
			}
		}
		at := float64(c) + (from-low)/width
		g.values = append(g.values, uint32(max(0, float64(at*(1<<guideFraction))-1)))
	}
	return g
}

// proven reports whether below is right for every number below the last cell. below is monotonic,
// so it is right for all r from C(c, i) to C(c+1, i) - 1 if it is for these two.
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
