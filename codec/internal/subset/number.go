package subset

import (
	"math"
	"math/bits"
)

// NumberWords is how many words the longest code has: that of KMax of 1<<14 positions has 664 bits.
const NumberWords = 11

// A Number is an unsigned integer, least significant word first. Functions on numbers take the
// count of words in use; those above are zero.
type Number [NumberWords]uint64

// bitLen returns the number of bits up to the highest that is set.
func (a *Number) bitLen() int {
	for i := NumberWords - 1; i >= 0; i-- {
		if a[i] != 0 {
			return 64*i + bits.Len64(a[i])
		}
	}
	return 0
}

// float returns a, about.
func (a *Number) float() float64 {
	var v float64
	for i := NumberWords - 1; i >= 0; i-- {
		v = float64(v*(1<<64)) + float64(a[i])
	}
	return v
}

// log2 returns the logarithm of a to base 2, about. It is for reports.
func (a *Number) log2() float64 { return math.Log2(a.float()) }

// add adds b to a, both of so many words. It panics if the sum has more.
func (a *Number) add(b []uint64) {
	var carry uint64
	for i := range a {
		var w uint64
		if i < len(b) {
			w = b[i]
		} else if carry == 0 {
			return
		}
		a[i], carry = bits.Add64(a[i], w, carry)
	}
	if carry != 0 {
		panic("subset: number too long")
	}
}

// sub takes b, which is not greater, from a.
func (a *Number) sub(b []uint64) {
	var borrow uint64
	for i := range a {
		var w uint64
		if i < len(b) {
			w = b[i]
		} else if borrow == 0 {
			return
		}
		a[i], borrow = bits.Sub64(a[i], w, borrow)
	}
}

// take takes b, which is not greater, from a of so many words; b may have more, which are zero.
func (a *Number) take(b []uint64, words int) {
	b = b[:words]
	var borrow uint64
	for i, w := range b {
		a[i], borrow = bits.Sub64(a[i], w, borrow)
	}
}

// less tells whether a < b, where neither has more than words words.
func (a *Number) less(b *Number, words int) bool {
	for i := words - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// shl multiplies a of so many words by 2^n, for n up to 64.
func (a *Number) shl(n uint, words int) {
	for i := words - 1; i > 0; i-- {
		a[i] = a[i]<<n | a[i-1]>>(64-n) // Go's shifts by 64 give 0
	}
	a[0] <<= n
}

// shr divides a of so many words by 2^n, for n up to 64, rounding down.
func (a *Number) shr(n uint, words int) {
	for i := range words - 1 {
		a[i] = a[i]>>n | a[i+1]<<(64-n)
	}
	a[words-1] >>= n
}
