// Package exact8 computes matrix products in block-scaled 8-bit integers, with the same bits on
// every machine. It is the arithmetic of linear layers under numerics = "exact8"; everything else
// of a step is computed by package exact.
//
// A block is Block consecutive elements along k of one row of A or one column of B; the last block
// of a row is shorter if Block does not divide k. Its scale is a power of two, which follows from
// the greatest magnitude g in the block:
//
//	e = (bits(g) + 2^16) >> 23, at least 71     the 2^16 carries where q would round to 128
//	q = x·2^(133-e), rounded to an integer, ties to even: -127 to 127
//
// An element stands for q·2^(e-133). This is the MXINT8 format of the OCP Microscaling
// specification 1.0 with |q| at most 127 and a scale that is rounded up where needed. An element of
// C is one chain over the blocks of k in ascending order, from +0, or from C:
//
//	c = fma(Σ q_a·q_b, 2^(e_a+e_b-266), c)
//
// The sum of a block is at most 32·127² = 516,128, so it is exact as an int32 and as a binary32, in
// any order: VNNI, dot-product and tensor units of any maker give it. The scale is exact too. So
// the only roundings are those of x to q, and one for each block in the chain.
//
// A block with e above 196 holds a NaN, an infinity or a magnitude of 2^70 or more. Integers do not
// carry a NaN along, so the block's scale does: every element of C that the block takes part in is
// NaN, and the step fails (exact.Finite).
//
// Gemm is the definition. A Multiplier computes the same bits faster.
package exact8

import (
	"math"

	"github.com/entrain-network/entrain/exact"
)

// Block is the number of elements that share a scale.
const Block = 32

const (
	leastExponent = 71      // biased; little is left of blocks below 2^-56
	mostExponent  = 196     // of a block of numbers below 2^70
	nearExponent  = 185     // up to which 1.5·2^23 units of a product are a finite number
	carry         = 1 << 16 // what makes an element that rounds to 128 take the next exponent
)

// Gemm computes C = A·B, or C = C + A·B if acc is set, on one goroutine: the definition in plain
// Go. Arguments are those of exact.Gemm: A is (m, k), its element [i,p] at a[i*ars+p*acs]; B is (k,
// n), its element [p,j] at b[p*brs+j*bcs]; C is (m, n), row-major with ldc floats from row to row.
// C must not overlap A or B.
func Gemm(m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	qa, ea := quantize(m, k, a, ars, acs)
	qb, eb := quantize(n, k, b, bcs, brs)
	blocks := (k + Block - 1) / Block
	for i := range m {
		for j := range n {
			var sum float32
			if acc {
				sum = c[i*ldc+j]
			}
			for t := range blocks {
				x, y := ea[i*blocks+t], eb[j*blocks+t]
				if max(x, y) > mostExponent {
					sum = float32(math.NaN())
					continue
				}
				var dot int32
				from, to := t*Block, min(k, (t+1)*Block)
				left, right := qa[i*k+from:i*k+to], qb[j*k+from:j*k+to]
				for p, q := range left {
					dot += int32(q) * int32(right[p])
				}
				sum = exact.FMA32(float32(dot), scale(x, y), sum)
			}
			c[i*ldc+j] = sum
		}
	}
}

// scale returns 2^(x+y-266), the worth of a unit in the product of blocks with exponents x and y.
func scale(x, y uint32) float32 { return math.Float32frombits((x + y - (266 - 127)) << 23) }

// exponent returns e of a block whose greatest magnitude has the bits g.
func exponent(g uint32) uint32 { return max(leastExponent, (g+carry)>>23) }

// Quantize sets q to the quanta of a block x of at most Block elements, and returns what a quantum
// is worth, 2^(e-133). If e is above mostExponent, it is NaN, and q is 0.
func Quantize(q []int8, x []float32) (worth float32) {
	e := quantizeBlock(q, x)
	if e > mostExponent {
		return float32(math.NaN())
	}
	return 1 / factor(e)
}

// quantizeBlock is Quantize, and returns e.
func quantizeBlock(q []int8, x []float32) (e uint32) {
	var greatest uint32
	for _, v := range x {
		greatest = max(greatest, math.Float32bits(v)&^(1<<31))
	}
	if e = exponent(greatest); e > mostExponent {
		clear(q)
		return e
	}
	quanta(q, x, e)
	return e
}

// quantize returns q of x (rows, k), row by row, and e of the blocks of each row.
func quantize(rows, k int, x []float32, xrs, xcs int) (q []int8, e []uint32) {
	q = make([]int8, rows*k)
	e = make([]uint32, 0, rows*((k+Block-1)/Block))
	var block [Block]float32
	for i := range rows {
		for from := 0; from < k; from += Block {
			to := min(k, from+Block)
			for p := from; p < to; p++ {
				block[p-from] = x[i*xrs+p*xcs]
			}
			e = append(e, quantizeBlock(q[i*k+from:i*k+to], block[:to-from]))
		}
	}
	return q, e
}

// factor returns 2^(133-e), by which the elements of a block are multiplied.
func factor(e uint32) float32 { return math.Float32frombits((133 + 127 - e) << 23) }

// quantum returns x·factor rounded to an integer, ties to even.
func quantum(x, factor float32) int32 {
	// 1.5·2^23 + y has a unit of 1 in its last place for |y| below 2^22, so the sum rounds y to an
	// integer, ties to even.
	const shift = 3 << 22
	return int32(float32(float32(x*factor)+shift) - shift)
}
