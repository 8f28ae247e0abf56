package distro

import (
	"math"
	"math/bits"

	"github.com/entrain-network/entrain/codec/internal/vec"
)

// top sets s.votes.Positions to those of the k largest magnitudes in momentum, of equal ones the lower, none of zeros, and its signs to 0.
//
// Before, s.most holds the greatest magnitude of each group of coefficients, for groups that share none and cover all: magnitudes that the k
// largest of them reach are reached by k coefficients at least. With many small groups they are reached by few more, so that only few
// coefficients must be compared with each other.
func (s *scratch) top(loop *vec.Kernel, momentum []float32, k int) {
	loop.Reach(momentum, s.bound(loop, k), s.set)
	candidates := s.candidates[:0]
	for i, word := range s.set[:(len(momentum)+63)/64] {
		for ; word != 0; word &= word - 1 {
			candidates = append(candidates, uint16(64*i+bits.TrailingZeros64(word)))
		}
	}
	switch excess := len(candidates) - k; {
	case excess <= 0:
	case excess <= dropMax:
		candidates = drop(candidates, momentum, excess)
	default:
		candidates = s.choose(candidates, momentum, k)
	}
	s.votes.N, s.votes.Negative = copy(s.votes.Positions[:], candidates), 0
}

// boundBits is how many bits of a magnitude bound looks at, from the highest: those of the exponent and 8 of the fraction. The coefficients in
// between are too few to matter.
const boundBits = 16

// bound returns the bits of a magnitude above zero that k groups reach, close to the greatest of those; or, if fewer than k groups are not zero,
// the smallest that is not zero.
func (s *scratch) bound(loop *vec.Kernel, k int) uint32 {
	var bound uint32
	for bit := 30; bit > 30-boundBits; bit-- {
		higher := bound | 1<<uint(bit)
		loop.Reach(s.most, higher, s.set)
		count := 0
		for _, word := range s.set[:(len(s.most)+63)/64] {
			count += bits.OnesCount64(word)
		}
		if count >= k {
			bound = higher
		}
	}
	return max(bound, 1)
}

// dropMax is the number of candidates too many up to which it is faster to look for the least of all again and again.
const dropMax = 8

// drop takes the least candidates away, of equal ones the higher position.
func drop(candidates []uint16, momentum []float32, excess int) []uint16 {
	for ; excess > 0; excess-- {
		least, at := uint32(vec.Abs), 0
		for i, p := range candidates {
			if m := math.Float32bits(momentum[p]) & vec.Abs; m <= least {
				least, at = m, i
			}
		}
		candidates = append(candidates[:at], candidates[at+1:]...)
	}
	return candidates
}

// choose returns the k best of candidates, in ascending order, by keeping the best so far in order.
func (s *scratch) choose(candidates []uint16, momentum []float32, k int) []uint16 {
	best := s.best[:0]
	for _, p := range candidates {
		// Magnitudes are ordered as their bits are. Below them, the complement of the position lets the lower position win a tie.
		candidate := uint64(math.Float32bits(momentum[p])&vec.Abs)<<32 | uint64(^uint32(p))
		if len(best) == k {
			if candidate < best[k-1] {
				continue
			}
			best = best[:k-1]
		}
		best = append(best, 0)
		i := len(best) - 1
		for ; i > 0 && best[i-1] < candidate; i-- {
			best[i] = best[i-1]
		}
		best[i] = candidate
	}
	candidates = candidates[:len(best)]
	for n, b := range best { // in falling order of magnitude; now in that of position
		p := uint16(^uint32(b))
		i := n
		for ; i > 0 && candidates[i-1] > p; i-- {
			candidates[i] = candidates[i-1]
		}
		candidates[i] = p
	}
	return candidates
}
