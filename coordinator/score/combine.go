package score

import (
	"cmp"
	"slices"
)

// How the scores of several validators become one.

// opinion is one validator's stored score of a member, and the validator's weight.
type opinion struct {
	score  uint32
	weight uint64
}

// combine returns the combined score of a member. It is the mean by weight of the scores, after
// each was clipped to the median by weight, plus and minus the median by weight of the distances
// from it. Validators with less than half of the weight therefore move it by no more than the
// others differ among themselves, and not at all if those agree. It is false unless the opinions
// have more than half of all weight. The opinions are sorted in place.
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

// weightedMedian returns the least score that has half of the weight together with those below it.
// It sorts the list.
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
