package exact

import "golang.org/x/sys/cpu"

// processorKernels returns the kernels in assembly that this processor and its operating system support.
func processorKernels() []Kernel {
	var kernels []Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		kernels = append(kernels, Kernel{name: "avx512", mr: 8, nr: 32, tile: tileAVX512, transpose: transposeAVX2, square: 8})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		kernels = append(kernels, Kernel{name: "avx2", mr: 6, nr: 16, tile: tileAVX2, transpose: transposeAVX2, square: 8})
	}
	return kernels
}
