package subset

import (
	"math/bits"

	"github.com/entrain-network/entrain/codec/internal/vec"
)

// A Table holds the binomials C(c, i), for i from 1 to its number of rows and c from 0 to the
// largest block.
type Table struct {
	rows []binomialRow // rows[i-1] holds C(., i)
}

// A binomialRow holds C(c, i) for one i and all c, each of words words, least significant first.
type binomialRow struct {
	words int
	cells []uint64
	guide guide
}

func (r *binomialRow) at(c int) []uint64 { return r.cells[c*r.words : (c+1)*r.words] }

// NewTable computes Pascal's triangle up to C(n, k): C(c, i) = C(c-1, i) + C(c-1, i-1).
func NewTable(n, k int) Table {
	column := make([]Number, n+1) // C(., i-1), then, in place, C(., i)
	for c := range column {
		column[c][0] = 1 // C(c, 0)
	}
	t := Table{rows: make([]binomialRow, 0, k)}
	for i := 1; i <= k; i++ {
		left := column[0] // C(c-1, i-1)
		column[0] = Number{}
		for c := 1; c <= n; c++ {
			next := column[c]
			column[c] = column[c-1]
			column[c].add(left[:])
			left = next
		}
		row := binomialRow{words: max(1, (column[n].bitLen()+63)/64)}
		if row.words == 3 {
			row.words = 4 // as next4 requires
		}
		row.cells = make([]uint64, 0, (n+1)*row.words+vec.BeyondCells)
		for c := range column {
			row.cells = append(row.cells, column[c][:row.words]...)
		}
		row.cells = row.cells[:cap(row.cells)] // zeros
		row.guide = newGuide(column, i)
		t.rows = append(t.rows, row)
	}
	return t
}

// choose returns C(n, i), for i >= 0 within the table.
func (t Table) choose(n, i int) Number {
	if i == 0 {
		return Number{1}
	}
	var v Number
	copy(v[:], t.rows[i-1].at(n))
	return v
}

// rank returns the number of the set p[0] < p[1] < ...: C(p[0], 1) + C(p[1], 2) + ... (the
// combinatorial number system: D. Knuth, The Art of Computer Programming 4A, 7.2.1.3). The sets of
// j positions below n have the numbers below C(n, j).
func (t Table) rank(positions []uint16) Number {
	var r Number
	for i, p := range positions {
		r.add(t.rows[i].at(int(p)))
	}
	return r
}

// Readings is the best number of readings to decode together, a multiple of vec.Numbers. Finding a
// position waits for memory repeatedly, and the processor works on one group of readings while
// another waits.
const Readings = 4 * vec.Numbers

// A Reading is a code that is being decoded.
type Reading struct {
	Rest  Number // the code, which Decode overwrites
	words int    // most words of Rest in use, at least 2
	Set   Signed
}

// unrank is the inverse of rank for several readings at once. It finds the Set.N positions of the
// set number Rest, which it overwrites, greedily from the last: p[j-1] is the largest c with C(c,
// j) <= Rest, and so on with the difference. Each position depends on the one after it, so the
// readings take turns and the processor works on several at a time.
func (t Table) unrank(loop *vec.Kernel, readings []Reading) {
	most, same := 0, len(readings)%vec.Numbers == 0
	for i := range readings {
		n := readings[i].Set.N
		same = same && (i == 0 || n == most)
		most = max(most, n)
	}
	for i := most - 1; i >= 0; i-- {
		row := &t.rows[i]
		if same && i > 0 && loop.HasBelow(row.words) {
			t.unrankBelow(loop, readings, i)
			return
		}
		if row.words == 4 && i > 0 {
			row.next4(readings, i)
			continue
		}
		for n := range readings {
			r := &readings[n]
			switch {
			case i >= r.Set.N:
			case i == 0:
				r.Set.Positions[0] = uint16(r.Rest[0]) // C(c, 1) = c
			case row.words == 1:
				r.Set.Positions[i] = r.next1(row)
			case row.words == 2:
				r.Set.Positions[i] = r.next2(row)
			default:
				r.Set.Positions[i] = r.next(row)
			}
		}
	}
}

// unrankBelow finds the positions from last down, for readings that all have them, with
// vec.Kernel.Below. The number of readings is a multiple of vec.Numbers and at most Readings.
func (t Table) unrankBelow(loop *vec.Kernel, readings []Reading, last int) {
	var space [Readings / vec.Numbers]vec.Group
	var positions [len(space)][vec.Numbers]uint16
	rest := space[:len(readings)/vec.Numbers]
	for word := range t.rows[last].words {
		for n := range readings {
			rest[n/vec.Numbers][word][n%vec.Numbers] = readings[n].Rest[word]
		}
	}
	for i := last; i > 0; i-- {
		row := &t.rows[i]
		loop.Below(row.words, rest, row.cells, row.guide.lead, row.guide.values, positions[:])
		for g := range rest {
			group := readings[g*vec.Numbers:][:vec.Numbers]
			for n, p := range &positions[g] {
				group[n].Set.Positions[i%KMax] = p
			}
		}
	}
	for n := range readings {
		readings[n].Set.Positions[0] = uint16(rest[n/vec.Numbers][0][n%vec.Numbers])
	}
}

// next subtracts the largest cell of row that does not exceed the rest, and returns its position.
func (r *Reading) next(row *binomialRow) uint16 {
	words := r.words
	for words > 2 && r.Rest[words-1] == 0 {
		words--
	}
	r.words = words
	c := row.guide.below(leading(r.Rest[words-1], r.Rest[words-2], words))
	cells := row.cells[c*row.words : (c+2)*row.words]
	c1 := cells[row.words:] // the one above c
	i := row.words - 1
	for i > 0 && c1[i] == r.Rest[i] {
		i--
	}
	// Processors cannot predict this comparison, so the deciding word is compared without a branch.
	_, above := bits.Sub64(r.Rest[i], c1[i], 0)
	cells = cells[row.words&(int(above)-1):]
	var borrow uint64
	for i, v := range r.Rest[:words] {
		r.Rest[i], borrow = bits.Sub64(v, cells[i], borrow)
	}
	return uint16(c + 1 - int(above))
}

// next1 and next2 are next for cells of one and two words.
func (r *Reading) next1(row *binomialRow) uint16 {
	rest := r.Rest[0]
	n := bits.LeadingZeros64(rest)
	c := row.guide.below(64-n, rest<<uint(n))
	cells := row.cells[c : c+2]
	_, above := bits.Sub64(rest, cells[1], 0)
	at := 1 - int(above)
	r.Rest[0] = rest - cells[at]
	return uint16(c + at)
}

func (r *Reading) next2(row *binomialRow) uint16 {
	low, high := r.Rest[0], r.Rest[1]
	c := row.guide.below(leading(high, low, 2))
	cells := row.cells[2*c : 2*c+4]
	_, above := bits.Sub64(low, cells[2], 0)
	_, above = bits.Sub64(high, cells[3], above)
	at := 1 - int(above)
	low, above = bits.Sub64(low, cells[2*at], 0)
	high, _ = bits.Sub64(high, cells[2*at+1], above)
	r.Rest[0], r.Rest[1] = low, high
	return uint16(c + at)
}

// next4 is next, for cells of four words, of position i of those readings that have it. It does not
// branch on values.
func (row *binomialRow) next4(readings []Reading, i int) {
	for n := range readings {
		r := &readings[n]
		if i >= r.Set.N {
			continue
		}
		r0, r1, r2, r3 := r.Rest[0], r.Rest[1], r.Rest[2], r.Rest[3]
		high, low, length := r3, r2, 256
		if high == 0 {
			high, low, length = r2, r1, 192
		}
		if high == 0 {
			high, low, length = r1, r0, 128
		}
		if high == 0 {
			high, low, length = r0, 0, 64
		}
		zeros := bits.LeadingZeros64(high)
		c := row.guide.below(length-zeros, high<<uint(zeros)|low>>uint(64-zeros))
		cells := row.cells[4*c : 4*c+8]
		_, above := bits.Sub64(r0, cells[4], 0)
		_, above = bits.Sub64(r1, cells[5], above)
		_, above = bits.Sub64(r2, cells[6], above)
		_, above = bits.Sub64(r3, cells[7], above)
		at := 1 - int(above)
		cell := cells[4*at : 4*at+4]
		r.Rest[0], above = bits.Sub64(r0, cell[0], 0)
		r.Rest[1], above = bits.Sub64(r1, cell[1], above)
		r.Rest[2], above = bits.Sub64(r2, cell[2], above)
		r.Rest[3], _ = bits.Sub64(r3, cell[3], above)
		r.Set.Positions[i] = uint16(c + at)
	}
}

// leading returns the length of a number in bits and its highest 64 bits, from its two highest
// words.
func leading(high, low uint64, words int) (length int, highest uint64) {
	if high == 0 {
		high, low = low, 0
		words--
	}
	n := bits.LeadingZeros64(high)
	return 64*words - n, high<<uint(n) | low>>uint(64-n)
}
