//go:build !sbf

package exact

// processorKernels returns the assembly kernel for NEON, which every arm64 processor that Go
// supports has.
func processorKernels() []Kernel {
	return []Kernel{{
		name: "neon", mr: 4, nr: 16, tile: tileNEON, packB: packRows16, packA: packRows4, packColumns: packColumnsNEON, fold: foldNEON, foldMax: foldMaxNEON,
		add: addNEON, scale: scaleNEON, dot: dotNEON, dot3: dot3NEON, max: maxNEON, normalize: normalizeNEON,
		normBackward: normBackwardNEON, rotate: rotateNEON, rotateBack: rotateBackNEON, expSum: expSumNEON, expScale: expScaleNEON,
		softmaxBackward: softmaxBackwardNEON, swiglu: swigluNEON, swigluBackward: swigluBackwardNEON,
	}}
}
