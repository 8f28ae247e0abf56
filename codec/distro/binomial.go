package distro

// binomials holds the numbers C(c, i), the ways to choose i of c positions, for i from 1 to rows and c from 0 to the largest block.
type binomials struct {
	rows []binomialRow // rows[i-1] holds C(., i)
}

// A binomialRow holds C(c, i) for one i and all c, each in so many words, least significant first.
type binomialRow struct {
	words int
	cells []uint64
}

func (r binomialRow) at(c int) []uint64 { return r.cells[c*r.words : (c+1)*r.words] }

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

// unrank is the inverse of rank for positions below n: it finds the positions, of which there are len(positions), of the set with number r.
func (t binomials) unrank(r *number, n int, positions []uint16) {
	for i := len(positions) - 1; i >= 0; i-- {
		row := t.rows[i]
		var p int
		switch row.words {
		case 1:
			p = search1(row.cells, i, n, r[0])
			r[0] -= row.cells[p]
		case 2:
			p = search2(row.cells, i, n, r[0], r[1])
			r.sub(row.at(p))
		default:
			p = search(row, i, n, r)
			r.sub(row.at(p))
		}
		positions[i], n = uint16(p), p
	}
}

// search returns the largest c in [low, high) with C(c, i) <= r, where row holds C(., i), and C(low, i) <= r. search1 and search2 are the
// same for cells of one and two words, which most blocks have.
func search(row binomialRow, low, high int, r *number) int {
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
	for high-low > 1 {
		middle := int(uint(low+high) / 2)
		if cells[middle] <= r {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

func search2(cells []uint64, low, high int, r0, r1 uint64) int {
	for high-low > 1 {
		middle := int(uint(low+high) / 2)
		if c := cells[2*middle : 2*middle+2]; c[1] < r1 || c[1] == r1 && c[0] <= r0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
