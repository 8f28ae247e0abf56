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

// verdict is what validators make of a member together: its score, and the scores that agree with
// it.
type verdict struct{ score, low, high uint32 }

// off returns how far a score is from agreeing.
func (v verdict) off(score uint32) uint32 { return distance(score, max(min(score, v.high), v.low)) }

// combine returns the combined score of a member whose score was standing before. It is the mean by
// weight of the scores, after each was clipped to the median by weight, plus and minus the median
// by weight of the distances from it. Validators with less than half of the weight therefore move
// it by no more than the others differ among themselves, and not at all if those agree.
//
// If each of two scores has exactly half of the weight behind it, nobody can tell which is right.
// The median is then the score between them that is nearest to standing, and all between them
// agree: neither half decides against what the member has shown before, or harms the other's trust.
//
// It is false unless the opinions have more than half of all weight. The opinions are sorted in
// place.
func combine(list []opinion, all uint64, standing uint32) (verdict, bool) {
	total := uint64(0)
	for _, o := range list {
		total += o.weight
	}
	if total <= all/2 {
		return verdict{}, false
	}
	low, high := weightedMedian(list, total)
	median := max(min(standing, high), low)
	far := make([]opinion, len(list))
	for k, o := range list {
		far[k] = opinion{distance(o.score, median), o.weight}
	}
	bound, _ := weightedMedian(far, total)
	sum := uint64(0)
	for _, o := range list {
		sum += o.weight * uint64(max(min(o.score, median+bound), median-min(median, bound)))
	}
	v := verdict{score: uint32((sum + total/2) / total)}
	v.low, v.high = v.score, v.score
	if low < high {
		v.low, v.high = min(low, v.score), max(high, v.score)
	}
	return v, true
}

func distance(a, b uint32) uint32 { return max(a, b) - min(a, b) }

// weightedMedian returns the least score that has half of the weight together with those below it,
// and the greatest that has half together with those above it. They differ only if exactly half of
// the weight is below the second. It sorts the list.
func weightedMedian(list []opinion, total uint64) (low, high uint32) {
	slices.SortFunc(list, func(a, b opinion) int { return cmp.Compare(a.score, b.score) })
	sum := uint64(0)
	for k, o := range list {
		sum += o.weight
		if sum >= total-total/2 {
			high = o.score
			if 2*sum == total && k+1 < len(list) {
				high = list[k+1].score
			}
			return o.score, high
		}
	}
	return 0, 0
}
