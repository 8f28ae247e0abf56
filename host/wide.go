package host

import (
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// wide is a number of 128 bits: a sum of tokens over all time, in which the same tokens may count
// again and again.
type wide struct{ hi, lo uint64 }

func (w wide) plus(n uint64) wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return wide{hi: w.hi + carry, lo: lo}
}

// minus returns w - o, for o at most w.
func (w wide) minus(o wide) wide {
	lo, borrow := bits.Sub64(w.lo, o.lo, 0)
	return wide{hi: w.hi - o.hi - borrow, lo: lo}
}

func (w wide) less(o wide) bool { return w.hi < o.hi || w.hi == o.hi && w.lo < o.lo }

// part returns w·a/b, rounded down, for a at most b, and b less than 2^63.
func (w wide) part(a, b uint64) wide {
	// In digits of 64 bits, (hi·a)/b is the upper digit. Its remainder is carried to the product
	// of the lower one.
	h1, h0 := bits.Mul64(w.hi, a)
	hi, rest := bits.Div64(h1, h0, b)
	l1, l0 := bits.Mul64(w.lo, a)
	carry, rest := bits.Div64(0, l1+rest, b)
	lo, _ := bits.Div64(rest, l0, b)
	return wide{hi: hi + carry, lo: lo}
}

func (w wide) append(dst []byte) []byte { return wire.AppendU64(wire.AppendU64(dst, w.lo), w.hi) }

func readWide(r *wire.Reader) wide {
	lo := r.U64()
	return wide{hi: r.U64(), lo: lo}
}
