package exact8

import (
	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// kernelOf returns the kernel for pools with a kernel of package exact.
func kernelOf(k exact.Kernel) kernel {
	if k.Name() == "neon" && cpu.ARM64.HasASIMDDP {
		return kernel{
			name: "neon", tile: tileNEON, row: rowNEON, quantizeRow: quantizeRowNEON, quantizeLeft: quantizeLeftNEON, quantizeRight: quantizeRightNEON,
			transpose: transposePlain, sums: func(int, *byte, *uint32) {},
		}
	}
	return plain
}
