package exact8

import (
	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// i8mm is for processors with products of matrices of bytes.
var i8mm = kernel{
	name: "i8mm", tileRows: 6, rowBytes: Block, tile: tileI8MM, row: rowNEON, quantizeRow: quantizeRowNEON, quantizeLeft: quantizeLeftI8MM,
	quantizeRight: quantizeRightNEON, transpose: transposePlain, sums: func(int, *byte, *uint32) {}, peak: peakI8MM, peakProducts: 24 * 32,
}

// neon is for processors with dot products of bytes.
var neon = kernel{
	name: "neon", tileRows: 6, rowBytes: four, tile: tileNEON, row: rowNEON, quantizeRow: quantizeRowNEON, quantizeLeft: quantizeLeftNEON,
	quantizeRight: quantizeRightNEON, transpose: transposePlain, sums: func(int, *byte, *uint32) {}, peak: peakNEON, peakProducts: 24 * 16,
}

// kernelsOf returns the kernels for pools with a kernel of package exact, the fastest first.
func kernelsOf(k exact.Kernel) []kernel {
	switch {
	case k.Name() != "neon" || !cpu.ARM64.HasASIMDDP:
		return []kernel{plain}
	case cpu.ARM64.HasI8MM:
		return []kernel{i8mm, neon}
	}
	return []kernel{neon}
}
