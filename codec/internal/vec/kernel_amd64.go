package vec

// named returns the assembly for a kernel of package exact, which has checked the processor.
func named(kernel string) Kernel {
	switch kernel {
	case "avx512":
		return Kernel{sumSquares: sumSquaresAVX512, momentum: momentumAVX512, most: mostAVX512, reach: reachAVX512, signStep: signStepAVX512,
			columns: columnsAVX512, fetch: fetchAVX512,
			below: true}
	case "avx2":
		return Kernel{sumSquares: sumSquaresAVX2, momentum: momentumAVX2, most: mostAVX2, reach: reachAVX2, signStep: signStepAVX2,
			columns: columnsAVX2, fetch: fetchAVX2}
	}
	return Kernel{}
}

// below calls functions by name rather than through a variable, so that their arguments do not
// escape to the heap.
func below(words, groups int, rest, cells *uint64, guide *uint32, lead uint, positions *uint16) {
	switch words {
	case 1:
		below1AVX512(groups, rest, cells, guide, lead, positions)
	case 2:
		below2AVX512(groups, rest, cells, guide, lead, positions)
	case 4:
		below4AVX512(groups, rest, cells, guide, lead, positions)
	case 5:
		below5AVX512(groups, rest, cells, guide, lead, positions)
	}
}
