package exact8

import (
	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// kernelOf returns the kernel for pools with a kernel of package exact.
func kernelOf(k exact.Kernel) kernel {
	if k.Name() == "avx512" && cpu.X86.HasAVX512VNNI {
		return kernel{
			name: "avx512vnni", tile: tileVNNI, quantizeRow: quantizeRowVNNI, quantizeLeft: quantizeLeftVNNI, quantizeRight: quantizeRightVNNI,
			transpose: transposeVNNI, sums: sumsVNNI, peak: peakVNNI,
		}
	}
	return plain
}
