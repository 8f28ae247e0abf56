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
	guide guide
}

func (r *binomialRow) at(c int) []uint64 { return r.cells[c*r.words : (c+1)*r.words] }

// newBinomials computes Pascal's triangle up to C(n, k): C(c, i) = C(c-1, i) + C(c-1, i-1).
func newBinomials(n, k int) binomials {
	column := make([]number, n+1) // C(., i-1), then, in place, C(., i)
	for c := range column {
		column[c][0] = 1 // C(c, 0)
	}
	t := binomials{rows: make([]binomialRow, 0, k)}
	for i := 1; i <= k; i++ {
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
		row.guide = newGuide(column, i)
		t.rows = append(t.rows, row)
	}
	return t
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

// unrank is the inverse of rank: it finds the positions, of which there are len(positions), of the set with number r, and destroys r. Greedily
// from the last: p[j-1] is the largest c with C(c, j) <= r, and so on with what is left of r. r has at most so many words.
func (t binomials) unrank(r *number, words int, positions []uint16) {
	i := len(positions) - 1
	for ; i > 0; i-- {
		for words > 2 && r[words-1] == 0 {
			words--
		}
		if words <= 2 {
			break
		}
		row := &t.rows[i]
		n := bits.LeadingZeros64(r[words-1])
		lead := r[words-1]<<uint(n) | r[words-2]>>uint(64-n)
		c := row.guide.below(64*words-n, lead)
		c += atMost(row.at(c+1), r)
		r.take(row.at(c), words)
		positions[i] = uint16(c)
	}
	t.unrank2(r[0], r[1], positions[:i+1])
}

// atMost returns 1 if cell <= r and 0 if not. r has no more words than cell in use. Which it is, no processor could predict, so the word that
// decides is compared without a branch.
func atMost(cell []uint64, r *number) int {
	i := len(cell) - 1
	for i > 0 && cell[i] == r[i] {
		i--
	}
	_, above := bits.Sub64(r[i], cell[i], 0)
	return int(above ^ 1)
}

// unrank2 is unrank for r of two words, which the common blocks have, and the end of all others.
func (t binomials) unrank2(r0, r1 uint64, positions []uint16) {
	for i := len(positions) - 1; i > 0; i-- {
		row := &t.rows[i]
		n := bits.LeadingZeros64(r0)
		length, highest := 64-n, r0<<uint(n)
		if r1 != 0 {
			n = bits.LeadingZeros64(r1)
			length, highest = 128-n, r1<<uint(n)|r0>>uint(64-n)
		}
		c := row.guide.below(length, highest)
		if row.words == 1 {
			_, above := bits.Sub64(r0, row.cells[c+1], 0)
			c += int(above ^ 1)
			r0 -= row.cells[c]
		} else {
			next := row.at(c + 1)
			_, above := bits.Sub64(r0, next[0], 0)
			_, above = bits.Sub64(r1, next[1], above)
			for _, word := range next[2:] {
				if word != 0 {
					above = 1
				}
			}
			c += int(above ^ 1)
			cell := row.at(c)
			r0, above = bits.Sub64(r0, cell[0], 0)
			r1, _ = bits.Sub64(r1, cell[1], above)
		}
		positions[i] = uint16(c)
	}
	if len(positions) > 0 {
		positions[0] = uint16(r0) // C(c, 1) = c
	}
}
