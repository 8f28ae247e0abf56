//go:build sbf

package exact8

import "math"

// quanta sets q to the elements of a block, rounded to integers, ties to even.
func quanta(q []int8, x []float32, e uint32) {
	for i, v := range x {
		q[i] = int8(integer(v, e))
	}
}

// integer returns x·2^(133-e) rounded to an integer, ties to even, in integers.
func integer(x float32, e uint32) int32 {
	b := math.Float32bits(x)
	exponent, m := b>>23&0xff, b&(1<<23-1)
	if exponent == 0 {
		exponent = 1
	} else {
		m |= 1 << 23
	}
	down := 17 + e - exponent // at least 17, since no element exceeds the block's greatest
	if down > 25 {
		return 0
	}
	q := int32((m + (1<<(down-1) - 1) + m>>down&1) >> down)
	if b>>31 == 1 {
		return -q
	}
	return q
}
