package exact

import "golang.org/x/sys/cpu"

// processorKernels returns the assembly kernels that the processor and its operating system
// support.
func processorKernels() []Kernel {
	var kernels []Kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW && cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		kernels = append(kernels, Kernel{
			name: "avx512", mr: 8, nr: 32, tile: tileAVX512, row: rowAVX512, sideCopies: true, packB: packRows32, packA: packRows8, packColumns: packColumnsAVX2, fold: foldAVX2, foldMax: foldMaxAVX2,
			add: addAVX512, scale: scaleAVX512, dot: dotAVX512, dot3: dot3AVX512, max: maxAVX512, normalize: normalizeAVX512,
			normBackward: normBackwardAVX512, rotate: rotateAVX512, rotateBack: rotateBackAVX512, expSum: expSumAVX512, expScale: expScaleAVX512,
			softmaxBackward: softmaxBackwardAVX512, swiglu: swigluAVX512, swigluBackward: swigluBackwardAVX512,
		})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		kernels = append(kernels, Kernel{
			name: "avx2", mr: 6, nr: 16, tile: tileAVX2, row: rowAVX2, sideCopies: true, packB: packRows16, packA: packRows6, packColumns: packColumnsAVX2, fold: foldAVX2, foldMax: foldMaxAVX2,
			add: addAVX2, scale: scaleAVX2, dot: dotAVX2, dot3: dot3AVX2, max: maxAVX2, normalize: normalizeAVX2,
			normBackward: normBackwardAVX2, rotate: rotateAVX2, rotateBack: rotateBackAVX2, expSum: expSumAVX2, expScale: expScaleAVX2,
			softmaxBackward: softmaxBackwardAVX2, swiglu: swigluAVX2, swigluBackward: swigluBackwardAVX2,
		})
	}
	return kernels
}
