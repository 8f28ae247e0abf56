// Package wide has numbers of 128 bits.
package wide

import (
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// Uint is a sum of tokens over all time, in which the same tokens may count again and again.
type Uint struct{ Hi, Lo uint64 }

// Plus returns w + n.
func (w Uint) Plus(n uint64) Uint {
	lo, carry := bits.Add64(w.Lo, n, 0)
	return Uint{Hi: w.Hi + carry, Lo: lo}
}

// Minus returns w - o, for o at most w.
func (w Uint) Minus(o Uint) Uint {
	lo, borrow := bits.Sub64(w.Lo, o.Lo, 0)
	return Uint{Hi: w.Hi - o.Hi - borrow, Lo: lo}
}

// Less reports whether w < o.
func (w Uint) Less(o Uint) bool { return w.Hi < o.Hi || w.Hi == o.Hi && w.Lo < o.Lo }

// Part returns w·a/b, rounded down, for a at most b, and b less than 2^63.
func (w Uint) Part(a, b uint64) Uint {
	// In digits of 64 bits, (Hi·a)/b is the upper digit. Its remainder is carried to the product
	// of the lower one.
	h1, h0 := bits.Mul64(w.Hi, a)
	hi, rest := bits.Div64(h1, h0, b)
	l1, l0 := bits.Mul64(w.Lo, a)
	carry, rest := bits.Div64(0, l1+rest, b)
	lo, _ := bits.Div64(rest, l0, b)
	return Uint{Hi: hi + carry, Lo: lo}
}

// Append appends the number: U64 lower half | U64 upper half.
func (w Uint) Append(dst []byte) []byte { return wire.AppendU64(wire.AppendU64(dst, w.Lo), w.Hi) }

// Read reads what Append wrote.
func Read(r *wire.Reader) Uint {
	lo := r.U64()
	return Uint{Hi: r.U64(), Lo: lo}
}
