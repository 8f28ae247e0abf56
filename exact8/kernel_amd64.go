package exact8

import (
	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// avxVNNI is for processors with dot products of bytes and without AVX-512.
var avxVNNI = kernel{
	name: "avxvnni", flip: 0x80808080, tile: tileAVXVNNI, row: rowAVXVNNI, quantizeRow: quantizeRowAVX2, quantizeLeft: quantizeLeftAVXVNNI,
	quantizeRight: quantizeRightAVX2, transpose: transposeAVX2, sums: sumsAVX2,
}

// addsBeside reports whether additions take no time from the units that multiply bytes: on Zen 4
// and later, which these features tell from processors whose two units do both.
var addsBeside = cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512VBMI2 && !cpu.X86.HasAMXTile

// kernelOf returns the kernel for pools with a kernel of package exact.
func kernelOf(k exact.Kernel) kernel {
	switch name := k.Name(); {
	case name == "avx512" && cpu.X86.HasAVX512VNNI:
		k := kernel{
			name: "avx512vnni", flip: 0x80808080, tile: tileVNNI, row: rowVNNI, quantizeRow: quantizeRowVNNI, quantizeLeft: quantizeLeftVNNI, quantizeRight: quantizeRightVNNI,
			transpose: transposeAVX2, sums: sumsVNNI,
		}
		if addsBeside {
			k.near = nearVNNI
		}
		return k
	case (name == "avx512" || name == "avx2") && cpu.X86.HasAVXVNNI:
		return avxVNNI
	case name == "avx512" || name == "avx2":
		return kernel{
			name: "avx2", tile: tileAVX2, row: rowAVX2, quantizeRow: quantizeRowAVX2, quantizeLeft: quantizeLeftAVX2, quantizeRight: quantizeRightAVX2,
			transpose: transposeAVX2, sums: sumsAVX2,
		}
	}
	return plain
}
