package batch

import "math/bits"

// Table is what a Division knows of the trainers, by their positions.
type Table interface {
	Weight(p uint32) uint32
	Order(k uint32) uint32 // the position of the trainer with the k-th greatest weight
	SetOrder(k, p uint32)
	Rough(p uint32) (count uint32, between bool) // the part before sequences left over are given
	SetRough(p, count uint32, between bool)
	Give(p, from, count uint32) // the part
}

// Division divides the virtual batch [0, Total) among the trainers in proportion to weights such as
// speeds, in Steps steps of O(trainers). Between them all that it knows is in its Table and its
// Progress. There is one part a trainer, and parts follow each other in the order of positions. A
// weight of 0 counts as 1.
//
// Each part has at least one sequence, if there are enough, and no part has more than Most. A part
// is its weight times a common factor, raised to 1 or lowered to Most, then rounded down. The
// remaining sequences go, one each, to the parts that lost most by rounding, the first of equal
// ones. Equal weights give the parts of Split. If Total is not above the number of trainers, the
// first Total of them have one sequence each. It panics if Most is too small for the parts to cover
// the batch.
type Division[T Table] struct {
	Table                 T
	Trainers, Total, Most uint32
	Progress
}

// Progress is what a Division has found so far. The trainers at the front of the order, the
// heaviest, have the most, those at the end have one sequence each, and those between share the
// rest.
type Progress struct {
	Above, Below uint32
	Left, Weight uint64 // the sequences, and the sum of the weights, of the trainers between
	Bar          Bar
}

// The steps of a Division. Those that sort, and those that choose, are one for each byte of what
// they look at.
const (
	sorting  = 0
	bounding = sorting + 4
	Rounding = bounding + 1
	choosing = Rounding + 1
	Giving   = choosing + 8
	Steps    = Giving + 1
)

// Step does a step and returns the next one, or Steps after the last. The first is 0.
func (d *Division[T]) Step(step uint32) (next uint32) {
	switch {
	case d.Total <= d.Trainers:
		for p := range d.Trainers {
			one := min(d.Total-min(p, d.Total), 1)
			d.Table.Give(p, p*one, one)
		}
		return Steps
	case step < bounding:
		d.sort(8 * (step - sorting))
	case step == bounding:
		d.bound()
	case step == Rounding:
		d.round()
		step += 8 - uint32(bits.Len64(d.Weight)+7)/8 // nobody lost more than Weight
	case step < Giving:
		d.choose(8 * (Giving - 1 - step))
	default:
		d.give()
	}
	if step+1 > Rounding && step+1 < Giving && d.Bar.Found() {
		return Giving
	}
	return step + 1
}

func (d *Division[T]) weight(p uint32) uint64 { return uint64(max(d.Table.Weight(p), 1)) }

// sort sorts the order by a byte of the weights, the greatest first. Equal ones stay as they are.
func (d *Division[T]) sort(shift uint32) {
	var ends [257]uint32
	list, keys := make([]uint32, d.Trainers), make([]uint8, d.Trainers)
	if shift == 0 {
		d.Progress = Progress{Left: uint64(d.Total)}
	}
	for k := range list {
		p := uint32(k)
		if shift > 0 {
			p = d.Table.Order(p)
		}
		w := d.weight(p)
		if shift == 0 {
			d.Weight += w
		}
		key := ^uint8(w >> shift)
		list[k], keys[k] = p, key
		ends[uint32(key)+1]++
	}
	if shift > 0 && ends[uint32(keys[0])+1] == d.Trainers {
		return
	}
	for key := range 256 {
		ends[key+1] += ends[key]
	}
	for k, p := range list {
		at := &ends[keys[k]]
		d.Table.SetOrder(*at, p)
		*at++
	}
}

// exceeds reports whether left*w/weight is above bound.
func exceeds(left, w, weight, bound uint64) bool {
	return left > 0 && (left*w-1)/weight >= bound
}

// bound finds the trainers with the most and those with one sequence. Raising a trainer above its
// proportion to one sequence lowers the others, so a trainer that had the most may end up with
// less.
func (d *Division[T]) bound() {
	n, most := d.Trainers, uint64(d.Most)
	if most*uint64(n) < uint64(d.Total) {
		panic("batch: parts too short for the batch")
	}
	at := func(k uint32) uint64 { return d.weight(d.Table.Order(k)) }
	for w := at(0); exceeds(d.Left, w, d.Weight, most); w = at(d.Above) {
		d.Above++
		d.Left, d.Weight = d.Left-most, d.Weight-w
	}
	for d.Above+d.Below < n {
		w := at(n - 1 - d.Below)
		if d.Left*w >= d.Weight {
			return
		}
		d.Below++
		d.Left, d.Weight = d.Left-1, d.Weight-w
		for d.Above > 0 {
			w := at(d.Above - 1)
			if exceeds(d.Left+most, w, d.Weight+w, most) {
				break
			}
			d.Above--
			d.Left, d.Weight = d.Left+most, d.Weight+w
		}
	}
}

// round rounds the parts down.
func (d *Division[T]) round() {
	over := d.Left
	for k := range d.Trainers {
		p := d.Table.Order(k)
		switch {
		case k < d.Above:
			d.Table.SetRough(p, d.Most, false)
		case k >= d.Trainers-d.Below:
			d.Table.SetRough(p, 1, false)
		default:
			part := d.Left * d.weight(p) / d.Weight // the product is below 2^64
			over -= part
			d.Table.SetRough(p, uint32(part), true)
		}
	}
	d.Bar = NewBar(uint32(over))
}

// lost returns how much a trainer lost by rounding, and false if it is not between.
func (d *Division[T]) lost(p uint32) (uint64, bool) {
	part, between := d.Table.Rough(p)
	if !between {
		return 0, false
	}
	return d.Left*d.weight(p) - uint64(part)*d.Weight, true
}

// choose finds a byte of the Bar.
func (d *Division[T]) choose(shift uint32) {
	var counts [256]uint32
	for p := range d.Trainers {
		if lost, between := d.lost(p); between {
			d.Bar.Count(&counts, lost, shift)
		}
	}
	d.Bar.Pass(&counts, shift)
}

// give gives the parts, and the sequences left over.
func (d *Division[T]) give() {
	from := uint32(0)
	for p := range d.Trainers {
		count, _ := d.Table.Rough(p)
		if lost, between := d.lost(p); between && d.Bar.Takes(lost) {
			count++
		}
		d.Table.Give(p, from, count)
		from += count
	}
}
