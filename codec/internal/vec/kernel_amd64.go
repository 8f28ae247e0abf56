package vec

// named returns the assembly for a kernel of package exact, which has seen to it that the processor can run it.
func named(kernel string) Kernel {
	switch kernel {
	case "avx512":
		return Kernel{sumSquares: sumSquaresAVX512, momentum: momentumAVX512, most: mostAVX512, reach: reachAVX512, signStep: signStepAVX512,
			columns: columnsAVX512, fetch: fetchAVX512}
	case "avx2":
		return Kernel{sumSquares: sumSquaresAVX2, momentum: momentumAVX2, most: mostAVX2, reach: reachAVX2, signStep: signStepAVX2,
			columns: columnsAVX2, fetch: fetchAVX2}
	}
	return Kernel{}
}
