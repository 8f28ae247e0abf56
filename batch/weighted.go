package batch

import (
	"cmp"
	"slices"
)

// Weighted returns the lengths of the parts of the virtual batch [0, total) in proportion to
// weights, one a trainer in the order of positions, such as speeds; the parts follow each other in
// that order. A weight of 0 counts as 1.
//
// Each part has at least one sequence, if there are enough, and no part more than most. So
// each part is its weight times a common factor, but 1 where that is below, and most where that is
// above, before it is rounded: down, and what is left over goes, a sequence each, to those who lost
// most by that, the first of equal ones. With equal weights it is Split. Where total is not above
// the number of trainers the first ones have one sequence each. It panics when most is too little
// for all together.
func Weighted(total, most uint32, weights []uint32) []uint32 {
	n := uint32(len(weights))
	parts := make([]uint32, n)
	if total <= n {
		for p := range total {
			parts[p] = 1
		}
		return parts
	}
	if uint64(most)*uint64(n) < uint64(total) {
		panic("batch: parts too short for the batch")
	}
	d := division{left: uint64(total), most: uint64(most), line: make([]trainer, n)}
	for p, w := range weights {
		d.line[p] = trainer{uint32(p), uint64(max(w, 1))}
		d.weight += d.line[p].weight
	}
	slices.SortFunc(d.line, func(a, b trainer) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.position, b.position))
	})
	d.bound()
	for k, t := range d.line {
		switch k := uint32(k); {
		case k < d.above:
			parts[t.position] = most
		case k >= n-d.below:
			parts[t.position] = 1
		default:
			product := d.left * t.weight // below 2^64
			parts[t.position] = uint32(product / d.weight)
			d.lost = append(d.lost, trainer{t.position, product % d.weight})
		}
	}
	for _, t := range d.rest(parts) {
		parts[t.position]++
	}
	return parts
}

// trainer is a position with its weight, or with what it lost by rounding.
type trainer struct {
	position uint32
	weight   uint64
}

// division is a batch that is being divided: the first of the line, which are the heaviest, have
// the most, the last ones have a sequence each, and those between share what is left.
type division struct {
	line         []trainer
	most         uint64
	above, below uint32
	left, weight uint64 // of those between: their sequences, and the sum of their weights
	lost         []trainer
}

// exceeds reports whether left*w/weight is above bound.
func exceeds(left, w, weight, bound uint64) bool {
	return left > 0 && (left*w-1)/weight >= bound
}

// bound finds out who has the most and who a single sequence. To give somebody a sequence more than
// its proportion makes the others' smaller, so that who had the most may have less.
func (d *division) bound() {
	for w := d.line[0].weight; exceeds(d.left, w, d.weight, d.most); w = d.line[d.above].weight {
		d.above++
		d.left, d.weight = d.left-d.most, d.weight-w
	}
	n := uint32(len(d.line))
	for d.above+d.below < n {
		w := d.line[n-1-d.below].weight
		if d.left*w >= d.weight {
			return
		}
		d.below++
		d.left, d.weight = d.left-1, d.weight-w
		for d.above > 0 {
			w := d.line[d.above-1].weight
			if exceeds(d.left+d.most, w, d.weight+w, d.most) {
				break
			}
			d.above--
			d.left, d.weight = d.left+d.most, d.weight+w
		}
	}
}

// rest returns who gets one of the sequences that rounding left over.
func (d *division) rest(parts []uint32) []trainer {
	over := d.left
	for _, t := range d.lost {
		over -= uint64(parts[t.position])
	}
	slices.SortFunc(d.lost, func(a, b trainer) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.position, b.position))
	})
	return d.lost[:over]
}
