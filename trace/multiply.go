//go:build !sbf

package trace

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
)

// multiply adds the product of the first rows of a tile and another to c.
func multiply(w *exact.Worker, eight bool, rows int, a block, x []float32, b block, y, c []float32) {
	if eight {
		exact8.GemmOn(w, rows, b.cols, a.cols, x, a.rowStep, a.colStep, y, b.rowStep, b.colStep, c, b.cols, true)
		return
	}
	w.Gemm(rows, b.cols, a.cols, x, a.rowStep, a.colStep, y, b.rowStep, b.colStep, c, b.cols, true)
}

// Words returns the words that bytes hold.
func Words(b []byte) []uint32 {
	words := make([]uint32, len(b)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return words
}
