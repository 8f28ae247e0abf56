package exact8

import (
	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// kernelsOf returns the kernels for pools with a kernel of package exact, the fastest first.
func kernelsOf(k exact.Kernel) []kernel {
	if k.Name() == "neon" && cpu.ARM64.HasASIMDDP {
		return []kernel{{
			name: "neon", tileRows: 6, rowBytes: four, tile: tileNEON, row: rowNEON, quantizeRow: quantizeRowNEON, quantizeLeft: quantizeLeftNEON, quantizeRight: quantizeRightNEON,
			transpose: transposePlain, sums: func(int, *byte, *uint32) {}, peak: peakNEON, peakProducts: 24 * 16,
		}}
	}
	return []kernel{plain}
}
