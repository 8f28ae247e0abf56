//go:build sbf

package trace

import (
	"unsafe"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// multiply adds the product of the first rows of a tile and another to c. The chain runs as the
// packages define it, without the copies that make it fast elsewhere.
func multiply(_ *exact.Worker, eight bool, rows int, a block, x []float32, b block, y, c []float32) {
	if eight {
		exact8.Gemm(rows, b.cols, a.cols, x, a.rowStep, a.colStep, y, b.rowStep, b.colStep, c, b.cols, true)
		return
	}
	for i := range rows {
		left := x[i*a.rowStep:]
		for j := range b.cols {
			sum, right := c[i*b.cols+j], y[j*b.colStep:]
			p, q := 0, 0
			for range a.cols {
				sum = exact.FMA32(left[p], right[q], sum)
				p, q = p+a.colStep, q+b.rowStep
			}
			c[i*b.cols+j] = sum
		}
	}
}

// Words returns the words that bytes hold, in place: the machine has little memory, and reads words
// anywhere.
func Words(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
