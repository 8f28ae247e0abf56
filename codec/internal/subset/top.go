package subset

import (
	"math"
	"math/bits"

	"github.com/entrain-network/entrain/codec/internal/vec"
)

// A Picker finds the positions of the largest magnitudes of a block. One worker at a time may use
// it.
type Picker struct {
	// Most is set before Top to the greatest magnitude of each group of values. The groups are
	// disjoint and cover all values.
	Most []float32

	set        []uint64 // one bit per value
	candidates []uint16 // positions
	best       []uint64
}

// NewPicker returns a picker of up to k of up to n values.
func NewPicker(n, k int) Picker {
	return Picker{set: make([]uint64, (n+63)/64), candidates: make([]uint16, 0, n), best: make([]uint64, 0, k)}
}

// Top sets the positions of v to those of the k largest magnitudes in values, with signs of plus.
// Of equal magnitudes it takes the lower position, and zeros never.
//
// At least k values reach a bound that k of p.Most reach. With many small groups only a few more
// do, and only these must be compared with each other.
func (p *Picker) Top(loop *vec.Kernel, values []float32, k int, v *Signed) {
	loop.Reach(values, p.bound(loop, k), p.set)
	candidates := p.candidates[:0]
	for i, word := range p.set[:(len(values)+63)/64] {
		for ; word != 0; word &= word - 1 {
			candidates = append(candidates, uint16(64*i+bits.TrailingZeros64(word)))
		}
	}
	switch excess := len(candidates) - k; {
	case excess <= 0:
	case excess <= dropMax:
		candidates = drop(candidates, values, excess)
	default:
		candidates = p.choose(candidates, values, k)
	}
	v.N, v.Negative = copy(v.Positions[:], candidates), 0
}

// Pick is like Top but needs no groups. It is slower and simpler.
func (p *Picker) Pick(values []float32, k int, v *Signed) {
	candidates := p.candidates[:0]
	for i, x := range values {
		if x != 0 {
			candidates = append(candidates, uint16(i))
		}
	}
	v.N, v.Negative = copy(v.Positions[:], p.choose(candidates, values, k)), 0
}

// boundBits is the number of bits of a magnitude that bound considers: those of the exponent and 8
// of the fraction. Few coefficients lie in between.
const boundBits = 16

// bound returns the bits of a magnitude above zero that k groups reach, close to the greatest such;
// or the smallest nonzero one if fewer than k groups are nonzero.
func (p *Picker) bound(loop *vec.Kernel, k int) uint32 {
	var bound uint32
	for bit := 30; bit > 30-boundBits; bit-- {
		higher := bound | 1<<uint(bit)
		loop.Reach(p.Most, higher, p.set)
		count := 0
		for _, word := range p.set[:(len(p.Most)+63)/64] {
			count += bits.OnesCount64(word)
		}
		if count >= k {
			bound = higher
		}
	}
	return max(bound, 1)
}

// dropMax is the number of surplus candidates up to which dropping the least repeatedly is faster
// than sorting.
const dropMax = 8

// drop removes the least candidates, of equal ones the higher position.
func drop(candidates []uint16, values []float32, excess int) []uint16 {
	for ; excess > 0; excess-- {
		least, at := uint32(vec.Abs), 0
		for i, p := range candidates {
			if m := math.Float32bits(values[p]) & vec.Abs; m <= least {
				least, at = m, i
			}
		}
		candidates = append(candidates[:at], candidates[at+1:]...)
	}
	return candidates
}

// choose returns the k best candidates, ascending, by keeping the best so far in order.
func (p *Picker) choose(candidates []uint16, values []float32, k int) []uint16 {
	best := p.best[:0]
	for _, at := range candidates {
		// Magnitudes are ordered as their bits are. The complement of the position below them lets
		// the lower position win a tie.
		candidate := uint64(math.Float32bits(values[at])&vec.Abs)<<32 | uint64(^uint32(at))
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
	for n, b := range best { // from the order of magnitude to that of position
		at := uint16(^uint32(b))
		i := n
		for ; i > 0 && candidates[i-1] > at; i-- {
			candidates[i] = candidates[i-1]
		}
		candidates[i] = at
	}
	return candidates
}
