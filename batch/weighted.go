package batch

import (
	"cmp"
	"slices"
)

// Weighted returns the lengths of the parts of the virtual batch [0, total), in proportion to
// weights such as speeds. There is one part a trainer, and parts follow each other in the order of
// positions. A weight of 0 counts as 1.
//
// Each part has at least one sequence, if there are enough, and no part has more than most. A part
// is its weight times a common factor, raised to 1 or lowered to most, then rounded down. The
// remaining sequences go, one each, to the parts that lost most by rounding, the first of equal
// ones. Equal weights give the parts of Split. If total is not above the number of trainers, the
// first total of them have one sequence each. It panics if most is too small for the parts to cover
// the batch.
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

// division is a batch being divided. The trainers at the front of the line, the heaviest, have the
// most, those at the end have one sequence each, and those between share the rest.
type division struct {
	line         []trainer
	most         uint64
	above, below uint32
	left, weight uint64 // the sequences, and the sum of the weights, of the trainers between
	lost         []trainer
}

// exceeds reports whether left*w/weight is above bound.
func exceeds(left, w, weight, bound uint64) bool {
	return left > 0 && (left*w-1)/weight >= bound
}

// bound finds the trainers with the most and those with one sequence. Raising a trainer above its
// proportion to one sequence lowers the others, so a trainer that had the most may end up with
// less.
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

// rest returns the trainers that each get one of the sequences left over by rounding.
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
