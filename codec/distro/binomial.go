package distro

import "math/bits"

// binomials holds the numbers C(c, i), the ways to choose i of c positions, for i from 1 to rows and c from 0 to the largest block.
type binomials struct {
	rows []binomialRow // rows[i-1] holds C(., i)
}

// A binomialRow holds C(c, i) for one i and all c, each in so many words, least significant first.
type binomialRow struct {
	words int
	cells []uint64
	index []uint16 // index[prefix(r)] is the largest c with C(c, i) at most the least number of that prefix; one more entry ends the last
}

func (r *binomialRow) at(c int) []uint64 { return r.cells[c*r.words : (c+1)*r.words] }

// newBinomials computes Pascal's triangle up to C(n, k): C(c, i) = C(c-1, i) + C(c-1, i-1).
func newBinomials(n, k int) binomials {
	column := make([]number, n+1) // C(., i-1), then, in place, C(., i)
	for c := range column {
		column[c][0] = 1 // C(c, 0)
	}
	t := binomials{rows: make([]binomialRow, 0, k)}
	for range k {
		left := column[0] // C(c-1, i-1)
		column[0] = number{}
		for c := 1; c <= n; c++ {
			next := column[c]
			column[c] = column[c-1]
			column[c].add(left[:])
			left = next
		}
		row := binomialRow{words: max(1, (column[n].bitLen()+63)/64)}
		row.cells = make([]uint64, 0, (n+1)*row.words)
		for c := range column {
			row.cells = append(row.cells, column[c][:row.words]...)
		}
		row.makeIndex(column)
		t.rows = append(t.rows, row)
	}
	return t
}

// prefixBits is how many of a number's leading bits its prefix has. With 6, what remains to be searched is a share of about 1/32i of the
// positions, and the indexes of the common rows stay in the first-level cache.
const prefixBits = 6

// prefix maps numbers to small integers, never falling as they rise: those below 2^prefixBits to themselves, others by their length and their
// leading bits.
func prefix(r *number, words int) int {
	top := words - 1
	for top > 0 && r[top] == 0 {
		top--
	}
	length := 64*top + bits.Len64(r[top])
	drop := max(0, length-prefixBits)
	lead := r[drop/64] >> uint(drop%64)
	if drop/64 < top {
		lead |= r[drop/64+1] << uint(64-drop%64)
	}
	return drop<<(prefixBits-1) + int(lead)
}

// least returns the least number of a prefix.
func least(prefix int) number {
	const leads = 1 << (prefixBits - 1)
	if prefix < 2*leads {
		return number{uint64(prefix)}
	}
	drop := prefix/leads - 1
	r := number{uint64(prefix - drop*leads)}
	for ; drop > 0; drop -= 64 {
		r.shl(uint(min(drop, 64)), numberWords)
	}
	return r
}

// makeIndex makes the index for all numbers up to the last cell.
func (r *binomialRow) makeIndex(cells []number) {
	last := len(cells) - 1
	c := 0
	for p := range prefix(&cells[last], numberWords) + 1 {
		from := least(p)
		for c < last && !from.less(&cells[c+1], numberWords) {
			c++
		}
		r.index = append(r.index, uint16(c))
	}
	r.index = append(r.index, uint16(last))
}

// choose returns C(n, i), for i >= 0 within the table.
func (t binomials) choose(n, i int) number {
	if i == 0 {
		return number{1}
	}
	var v number
	copy(v[:], t.rows[i-1].at(n))
	return v
}

// rank numbers the sets of j positions: the set p[0] < p[1] < ... has the number C(p[0], 1) + C(p[1], 2) + ... (the combinatorial number
// system: Knuth, The Art of Computer Programming 4A, 7.2.1.3). The sets of positions below n have the numbers below C(n, j).
func (t binomials) rank(positions []uint16) number {
	var r number
	for i, p := range positions {
		r.add(t.rows[i].at(int(p)))
	}
	return r
}

// unrank is the inverse of rank for positions below n: it finds the positions, of which there are len(positions), of the set with number r.
// Greedily from the last: p[j-1] is the largest c with C(c, j) <= r, and so on with what is left of r.
func (t binomials) unrank(r *number, n int, positions []uint16) {
	for i := len(positions) - 1; i >= 0; i-- {
		row := &t.rows[i]
		at := prefix(r, row.words)
		low, high := int(row.index[at]), min(n, int(row.index[at+1])+1)
		switch row.words {
		case 1:
			low = search1(row.cells, low, high, r[0])
			r[0] -= row.cells[low]
		case 2:
			low = search2(row.cells, low, high, r[0], r[1])
			r.sub(row.at(low))
		default:
			low = search(row, low, high, r)
			r.sub(row.at(low))
		}
		positions[i], n = uint16(low), low
	}
}

// search returns the largest c in [low, high) with C(c, i) <= r, where row holds C(., i), and C(low, i) <= r. search1 and search2 are the
// same for cells of one and two words, which most blocks have; they do not branch on what they find, which no processor could predict.
func search(row *binomialRow, low, high int, r *number) int {
	for high-low > 1 {
		middle := int(uint(low+high) / 2)
		if atMost(row.at(middle), r) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// atMost tells whether cell <= r, where r has no more words than cell.
func atMost(cell []uint64, r *number) bool {
	for i := len(cell) - 1; i >= 0; i-- {
		if cell[i] != r[i] {
			return cell[i] < r[i]
		}
	}
	return true
}

func search1(cells []uint64, low, high int, r uint64) int {
	for n := high - low; n > 1; {
		half := n / 2
		_, above := bits.Sub64(r, cells[low+half], 0)
		low += half & (int(above) - 1)
		n -= half
	}
	return low
}

func search2(cells []uint64, low, high int, r0, r1 uint64) int {
	for n := high - low; n > 1; {
		half := n / 2
		c := cells[2*(low+half) : 2*(low+half)+2]
		_, above := bits.Sub64(r0, c[0], 0)
		_, above = bits.Sub64(r1, c[1], above)
		low += half & (int(above) - 1)
		n -= half
	}
	return low
}
