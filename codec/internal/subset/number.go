package subset

import (
	"math"
	"math/bits"
)

// numberWords is the number of words of the longest code, 664 bits for KMax of 1<<14 positions.
const numberWords = 11

// A Number is an unsigned integer, least significant word first. Functions take the number of words
// in use; the others are zero.
type Number [numberWords]uint64

// bitLen returns the number of bits up to the highest set bit.
func (a *Number) bitLen() int {
	for i := numberWords - 1; i >= 0; i-- {
		if a[i] != 0 {
			return 64*i + bits.Len64(a[i])
		}
	}
	return 0
}

// float returns a, approximately.
func (a *Number) float() float64 {
	var v float64
	for i := numberWords - 1; i >= 0; i-- {
		v = float64(v*(1<<64)) + float64(a[i])
	}
	return v
}

// log2 returns the base-2 logarithm of a, approximately, for reports.
func (a *Number) log2() float64 { return math.Log2(a.float()) }

// add adds b to a, both of the same number of words. It panics on overflow.
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

// sub subtracts b from a, which is not less.
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

// take subtracts b from a, which has words words and is not less.
func (a *Number) take(b []uint64, words int) {
	b = b[:words]
	var borrow uint64
	for i, w := range b {
		a[i], borrow = bits.Sub64(a[i], w, borrow)
	}
}

// less reports whether a < b, both of at most words words.
func (a *Number) less(b *Number, words int) bool {
	for i := words - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// shl multiplies a, of words words, by 2^n, for n up to 64.
func (a *Number) shl(n uint, words int) {
	for i := words - 1; i > 0; i-- {
		a[i] = a[i]<<n | a[i-1]>>(64-n) // 0 for a shift by 64
	}
	a[0] <<= n
}

// shr divides a, of words words, by 2^n, for n up to 64, rounding down.
func (a *Number) shr(n uint, words int) {
	for i := range words - 1 {
		a[i] = a[i]>>n | a[i+1]<<(64-n)
	}
	a[words-1] >>= n
}
