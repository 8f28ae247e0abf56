package exact8

import (
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/entrain-network/entrain/exact"
)

// amx is for processors with matrix units.
var amx = kernel{
	name: "amx", tileRows: 16, rowBytes: Block, tile: tileAMX, row: rowAMX, quantizeRow: quantizeRowVNNI, quantizeLeft: quantizeLeftAMX,
	quantizeRight: quantizeRightVNNI, transpose: transposeAVX2, sums: sumsVNNI, peak: peakAMX, peakProducts: 4 * 16 * 16 * 64,
}

// vnni is for processors with dot products of bytes in AVX-512.
var vnni = kernel{
	name: "avx512vnni", tileRows: 6, rowBytes: four, flip: 0x80808080, tile: tileVNNI, row: rowVNNI, quantizeRow: quantizeRowVNNI,
	quantizeLeft: quantizeLeftVNNI, quantizeRight: quantizeRightVNNI, transpose: transposeAVX2, sums: sumsVNNI, peak: peakVNNI, peakProducts: 24 * 64,
}

// avxVNNI is for processors with dot products of bytes and without AVX-512.
var avxVNNI = kernel{
	name: "avxvnni", tileRows: 6, rowBytes: four, flip: 0x80808080, tile: tileAVXVNNI, row: rowAVXVNNI, quantizeRow: quantizeRowAVX2,
	quantizeLeft: quantizeLeftAVXVNNI, quantizeRight: quantizeRightAVX2, transpose: transposeAVX2, sums: sumsAVX2, peak: peakAVXVNNI, peakProducts: 12 * 32,
}

var avx2 = kernel{
	name: "avx2", tileRows: 6, rowBytes: four, tile: tileAVX2, row: rowAVX2, quantizeRow: quantizeRowAVX2, quantizeLeft: quantizeLeftAVX2,
	quantizeRight: quantizeRightAVX2, transpose: transposeAVX2, sums: sumsAVX2, peak: peakAVX2, peakProducts: 6 * 32,
}

func init() {
	// Additions take no time from the units that multiply bytes on AMD's Zen 4 and later. Intel's two
	// units do both, also where no AMX tells them apart: a hypervisor may hide it.
	const amd = 'A' | 'u'<<8 | 't'<<16 | 'h'<<24
	if cpu.X86.HasAVX512BF16 && maker() == amd {
		vnni.near = nearVNNI
	}
}

// withAVX512 are the kernels for processors with dot products of bytes in AVX-512.
var withAVX512 = sync.OnceValue(func() []kernel {
	if cpu.X86.HasAMXInt8 && amxAllowed() {
		return []kernel{amx, vnni}
	}
	return []kernel{vnni}
})

// kernelsOf returns the kernels for pools with a kernel of package exact, the fastest first.
func kernelsOf(k exact.Kernel) []kernel {
	switch name := k.Name(); {
	case name == "avx512" && cpu.X86.HasAVX512VNNI:
		return withAVX512()
	case (name == "avx512" || name == "avx2") && cpu.X86.HasAVXVNNI:
		return []kernel{avxVNNI, avx2}
	case name == "avx512" || name == "avx2":
		return []kernel{avx2}
	}
	return []kernel{plain}
}
