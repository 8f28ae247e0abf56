package coordinator

import (
	"cmp"
	"slices"
)

// How the scores of several validators become one, and what it pays.

// opinion is one validator's score of a member, with the offset of fixed-point scores, and its weight.
type opinion struct {
	score  uint32
	weight uint64
}

// combine returns what validators agree on about a member: the mean, by weight, of their scores, after each has been clipped to
// the median by weight, plus and minus the median by weight of the distances from it. So those who have less than half of the
// weight move it by no more than the others differ among themselves, and not at all if these agree. It is false unless the
// opinions have more than half of all weight. The opinions are sorted in place.
func combine(list []opinion, all uint64) (uint32, bool) {
	total := uint64(0)
	for _, o := range list {
		total += o.weight
	}
	if total <= all/2 {
		return 0, false
	}
	median := weightedMedian(list, total)
	far := make([]opinion, len(list))
	for k, o := range list {
		far[k] = opinion{distance(o.score, median), o.weight}
	}
	bound := weightedMedian(far, total)
	sum := uint64(0)
	for _, o := range list {
		sum += o.weight * uint64(max(min(o.score, median+bound), median-min(median, bound)))
	}
	return uint32((sum + total/2) / total), true
}

func distance(a, b uint32) uint32 { return max(a, b) - min(a, b) }

// weightedMedian returns the least score of the list which, with those below it, has half of the weight. It sorts the list.
func weightedMedian(list []opinion, total uint64) uint32 {
	slices.SortFunc(list, func(a, b opinion) int { return cmp.Compare(a.score, b.score) })
	sum := uint64(0)
	for _, o := range list {
		sum += o.weight
		if sum >= total-total/2 {
			return o.score
		}
	}
	return 0
}
