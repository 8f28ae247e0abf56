// Package vec holds the inner loops of the codecs over gradients, momenta and parameters. Plain Go
// defines each loop. Assembly for AVX-512 and AVX2, made by codec/internal/gen, gives the same
// bits, and a NaN where plain Go does. (Below, for decoding, exists only for AVX-512;
// codec/internal/subset defines it.) Assembly handles a multiple of 16 or 64 elements, and plain Go
// the rest.
//
// Magnitudes are compared as the bits of a binary32 without its sign: in numerical order, then
// infinity, then NaNs.
package vec

import (
	"math"

	"github.com/entrain-network/entrain/exact"
)

//go:generate sh -c "go run ../gen amd64 > kernels_amd64.s"
//go:generate sh -c "go run ../gen amd64.go > kernels_amd64.go"

// Lanes is the number of elements that the loops take at a time.
const Lanes = 16

// Abs is the mask that clears the sign bit of a binary32.
const Abs = 1<<31 - 1

// A Kernel is a set of loops for one kind of processor. The zero Kernel is plain Go.
type Kernel struct {
	// Assembly for n elements, a multiple of 16, or of 64 for reach. Each may be nil.
	sumSquares func(n int, x *float32, sums *[Lanes]float64)
	momentum   func(n int, m, x *float32, decay, step float32, most *[Lanes]float32)
	most       func(n int, x *float32, most *[Lanes]float32)
	reach      func(n int, x *float32, bound uint32, set *uint64)
	signStep   func(n int, x, direction *float32, keep, lr float32)
	columns    func(cols, ld int, out, basis, coefficients *float32)
	fetch      func(rows, bytes int, x *float32, stride uintptr)
	below      bool // the function below may be called
}

// For returns the loops for the processor that k runs on.
func For(k exact.Kernel) Kernel { return named(k.Name()) }

// SumSquares adds the square of element i of x to sums[i%16], in binary64, where the square is
// exact.
func (k *Kernel) SumSquares(x []float32, sums *[Lanes]float64) {
	n := 0
	if k.sumSquares != nil {
		if n = len(x) &^ (Lanes - 1); n > 0 {
			k.sumSquares(n, &x[0], sums)
		}
	}
	sumSquaresPlain(x[n:], sums)
}

func sumSquaresPlain(x []float32, sums *[Lanes]float64) {
	for ; len(x) >= Lanes; x = x[Lanes:] {
		for i, v := range x[:Lanes] {
			sums[i] += float64(v) * float64(v)
		}
	}
	for i, v := range x {
		sums[i] += float64(v) * float64(v)
	}
}

// Momentum computes m = decay*m + step*x, rounding each operation, and raises most[i%16] to the
// magnitude of the new m[i]. Elements of most are not negative. x is as long as m.
func (k *Kernel) Momentum(m, x []float32, decay, step float32, most *[Lanes]float32) {
	x = x[:len(m)]
	n := 0
	if k.momentum != nil {
		if n = len(m) &^ (Lanes - 1); n > 0 {
			k.momentum(n, &m[0], &x[0], decay, step, most)
		}
	}
	momentumPlain(m[n:], x[n:], decay, step, most)
}

func momentumPlain(m, x []float32, decay, step float32, most *[Lanes]float32) {
	x = x[:len(m)]
	for i, v := range m {
		v = float32(decay*v) + float32(step*x[i])
		m[i] = v
		raise(&most[i%Lanes], v)
	}
}

// raise sets most to the magnitude of v if that is greater.
func raise(most *float32, v float32) {
	*most = math.Float32frombits(max(math.Float32bits(*most), math.Float32bits(v)&Abs))
}

// Most returns the greatest magnitude in x, or +0 if x is empty. most is work space.
func (k *Kernel) Most(x []float32, most *[Lanes]float32) float32 {
	*most = [Lanes]float32{}
	n := 0
	if k.most != nil {
		if n = len(x) &^ (Lanes - 1); n > 0 {
			k.most(n, &x[0], most)
		}
	}
	for i, v := range x[n:] {
		raise(&most[i%Lanes], v)
	}
	for _, v := range most[1:] {
		raise(&most[0], v)
	}
	return most[0]
}

// Reach sets bit i%64 of set[i/64] if the magnitude of x[i] is at least bound, which is in
// 1..2^31-1, and clears it otherwise. Bits beyond x are 0. set has at least one element for each 64
// of x; further elements are unchanged.
func (k *Kernel) Reach(x []float32, bound uint32, set []uint64) {
	n := 0
	if k.reach != nil {
		if n = len(x) &^ 63; n > 0 {
			_ = set[n/64-1]
			k.reach(n, &x[0], bound, &set[0])
		}
	}
	reachPlain(x[n:], bound, set[n/64:])
}

func reachPlain(x []float32, bound uint32, set []uint64) {
	for i := 0; i < len(x); i += 64 {
		var word uint64
		for j, v := range x[i:min(i+64, len(x))] {
			_, below := sub32(math.Float32bits(v)&Abs, bound)
			word |= uint64(below^1) << uint(j)
		}
		set[i/64] = word
	}
}

// sub32 returns a-b, and 1 if a < b. It does not branch, because the order of magnitudes is
// unpredictable. a and b are below 2^31.
func sub32(a, b uint32) (d, below uint32) {
	d = a - b
	return d, d >> 31
}

// SignStep computes x = x*keep - lr*sign(direction), with sign(0) = 0 and lr >= +0. direction is as
// long as x and holds no NaN.
func (k *Kernel) SignStep(x, direction []float32, keep, lr float32) {
	direction = direction[:len(x)]
	n := 0
	if k.signStep != nil {
		if n = len(x) &^ (Lanes - 1); n > 0 {
			k.signStep(n, &x[0], &direction[0], keep, lr)
		}
	}
	signStepPlain(x[n:], direction[n:], keep, lr)
}

// signStepPlain does not branch on directions, which are unpredictable. The step has the bits of lr
// with the sign of the direction, masked by whether the direction is nonzero.
func signStepPlain(x, direction []float32, keep, lr float32) {
	const sign = 1 << 31
	direction = direction[:len(x)]
	rate := math.Float32bits(lr)
	for i, v := range x {
		d := math.Float32bits(direction[i])
		moves := uint32(int32(-(d &^ sign)) >> 31) // all ones if the direction is not 0
		x[i] = float32(v*keep) - math.Float32frombits((rate|d&sign)&moves)
	}
}

// ColumnSums divides the argument ld of Columns.
const ColumnSums = 64

// Sparse reports whether Columns is in assembly, and so worth using.
func (k *Kernel) Sparse() bool { return k.columns != nil }

// Columns computes out = transposed(basis) * column for each of cols columns that are mostly +0.
// Column c and its result begin at c*ld and have ld floats each. basis has rows of ld floats, at
// least as many as the last coefficient that is not +0. Each element of a result is one chain sum =
// fma(basis[u][x], column[u], sum) for ascending u over the coefficients that are not +0, starting
// with +0.
//
// If no nonzero product is subnormal, this equals the chain over all coefficients: the others add
// zeros, of either sign, to a sum that is never -0.
func (k *Kernel) Columns(cols, ld int, out, basis, coefficients []float32) {
	if ld < ColumnSums || ld%ColumnSums != 0 {
		panic("vec: the length of columns is not a multiple of 64")
	}
	out, coefficients = out[:cols*ld], coefficients[:cols*ld]
	if cols == 0 {
		return
	}
	if k.columns == nil {
		for c := range cols {
			columnPlain(out[c*ld:][:ld], basis, coefficients[c*ld:][:ld])
		}
		return
	}
	k.columns(cols, ld, &out[0], &basis[0], &coefficients[0])
}

func columnPlain(out, basis, column []float32) {
	clear(out)
	for u, v := range column {
		if math.Float32bits(v) == 0 {
			continue
		}
		for x, b := range basis[u*len(out) : (u+1)*len(out)] {
			out[x] = exact.FMA32(b, v, out[x])
		}
	}
}

// Fetch prefetches rows of x, stride elements apart, while the processor computes something else.
// Processors do not predict short rows that are far apart.
func (k *Kernel) Fetch(x []float32, rows, cols, stride int) {
	if k.fetch == nil || rows == 0 || cols == 0 {
		return
	}
	_ = x[(rows-1)*stride+cols-1]
	k.fetch(rows, 4*cols, &x[0], uintptr(4*stride))
}

// Numbers is the number of numbers in a Group.
const Numbers = 8

// A Group is eight numbers: word i of each, least significant first. The sixth word is work space
// of Below.
type Group [6][Numbers]uint64

// BeyondCells is the number of words that Below may read beyond the last cell.
const BeyondCells = 8

// HasBelow reports whether Below supports cells of the given number of words.
func (k *Kernel) HasBelow(words int) bool { return k.below && words != 3 && words <= 5 }

// Below finds, for each number in rest, the largest cell of a row of binomials that does not exceed
// it, subtracts the cell from the number, and sets the number's position to the cell's. positions
// has an element for each group. cells has words words a cell; lead and values are those of the
// row's guide. Each number must be below the last cell of the row, which BeyondCells further words
// follow.
func (k *Kernel) Below(words int, rest []Group, cells []uint64, lead uint, values []uint32, positions [][Numbers]uint16) {
	if len(rest) == 0 {
		return
	}
	_ = positions[len(rest)-1]
	below(words, len(rest), &rest[0][0][0], &cells[0], &values[0], lead, &positions[0][0])
}
