package order

import (
	"math/bits"
	"strconv"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// permutationRounds is the number of rounds of the shuffle, as in package committee: enough to put
// the proof's bound far below chance for 2^40 sequences.
const permutationRounds = 90

// A Permutation is an order of the numbers 0..n-1: the order in which one pass over the data takes
// the sequences. It stores no table and finds the place of each number independently, in about a
// microsecond.
//
// It is the swap-or-not shuffle (Hoang, Morris, Rogaway: "An Enciphering Scheme Based on a Card
// Shuffle", CRYPTO 2012). In round r, x is paired with p = (k_r - x) mod n. One bit, which depends
// on the larger of the two, decides whether they trade places:
//
//	(k_r, m_r)  from the stream prng.New(seed, "data/pass/<pass>"): Uint64n(n) then Uint64,
//	            for r = 0..89
//	bit         the top bit of mix(max(x, p) xor m_r)
//	mix(z)      z ^= z>>30; z *= 0xbf58476d1ce4e5b9; z ^= z>>27;
//	            z *= 0x94d049bb133111eb; z ^= z>>31      (SplitMix64)
//
// The order need not be unpredictable: every member of the run must compute it. The bit therefore
// comes from a good mixing function, not a cipher.
type Permutation struct {
	n     uint64
	pivot [permutationRounds]uint64
	mask  [permutationRounds]uint64
}

// NewPermutation returns the order of n sequences in a pass. It panics when n is 0.
func NewPermutation(seed wire.Hash, pass, n uint64) *Permutation {
	p := &Permutation{n: n}
	s := prng.New(seed, "data/pass/"+strconv.FormatUint(pass, 10))
	for r := range permutationRounds {
		p.pivot[r] = s.Uint64n(n)
		p.mask[r] = s.Uint64()
	}
	return p
}

// At returns the number at a place. It panics when place is not below n.
func (p *Permutation) At(place uint64) uint64 {
	p.check(place)
	for r := range permutationRounds {
		place = p.swap(r, place)
	}
	return place
}

// Place is the inverse of At: it returns the place of a number. It panics when number is not below
// n.
func (p *Permutation) Place(number uint64) uint64 {
	p.check(number)
	for r := permutationRounds - 1; r >= 0; r-- {
		number = p.swap(r, number)
	}
	return number
}

func (p *Permutation) check(x uint64) {
	if x >= p.n {
		panic("order: number beyond the permutation")
	}
}

// swap is one round; it is its own inverse.
func (p *Permutation) swap(r int, x uint64) uint64 {
	partner, below := bits.Sub64(p.pivot[r], x, 0)
	if below != 0 {
		partner += p.n
	}
	if mix(max(x, partner)^p.mask[r])>>63 == 1 {
		return partner
	}
	return x
}

// mix is the output function of SplitMix64 (Steele, Lea, Flood 2014, with Stafford's constants
// "Mix13").
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
