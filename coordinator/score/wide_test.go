package score

import "math/bits"

// twoWords is a number of 128 bits.
type twoWords struct{ hi, lo uint64 }

func wide(a, b uint64) twoWords {
	hi, lo := bits.Mul64(a, b)
	return twoWords{hi, lo}
}

// minus returns how far a and b are apart.
func (a twoWords) minus(b twoWords) twoWords {
	if a.hi < b.hi || a.hi == b.hi && a.lo < b.lo {
		a, b = b, a
	}
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return twoWords{hi, lo}
}

func (a twoWords) below(n uint64) bool { return a.hi == 0 && a.lo < n }
