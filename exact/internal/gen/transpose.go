package main

// transposeAVX2 transposes 8 by 8 floats in registers: pairs within lanes, quadruples within lanes, then the two lanes.
func transposeAVX2(a *assembly) {
	a.function("transposeAVX2", "(dst *float32, dstStride uintptr, src *float32, srcStride uintptr)", 32,
		"writes the transpose of 8 by 8 floats; rows are the given numbers of bytes apart.")
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ dstStride+8(FP), R8")
	a.op("MOVQ src+16(FP), SI")
	a.op("MOVQ srcStride+24(FP), R9")
	for r := range 8 {
		a.op("VMOVUPS (SI), Y%d", r)
		a.op("ADDQ R9, SI")
	}
	for r := 0; r < 8; r += 2 {
		a.op("VUNPCKLPS Y%d, Y%d, Y%d", r+1, r, 8+r)
		a.op("VUNPCKHPS Y%d, Y%d, Y%d", r+1, r, 9+r)
	}
	for half := 0; half < 8; half += 4 {
		for pair := range 2 {
			a.op("VSHUFPS $0x44, Y%d, Y%d, Y%d", 8+half+pair+2, 8+half+pair, half+2*pair)
			a.op("VSHUFPS $0xee, Y%d, Y%d, Y%d", 8+half+pair+2, 8+half+pair, half+2*pair+1)
		}
	}
	for lane, mask := range []string{"$0x20", "$0x31"} {
		for r := range 4 {
			a.op("VPERM2F128 %s, Y%d, Y%d, Y%d", mask, 4+r, r, 8+4*lane+r)
		}
	}
	for r := range 8 {
		a.op("VMOVUPS Y%d, (DI)", 8+r)
		a.op("ADDQ R8, DI")
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// copyRowsAVX2 copies rows of whole vectors. It beats a call of memmove for each row, of which packing makes millions.
func copyRowsAVX2(a *assembly) {
	a.function("copyRowsAVX2", "(rows, cols int, dst *float32, dstStride uintptr, src *float32, srcStride uintptr)", 48,
		"copies rows of cols floats, a multiple of 8; rows are the given numbers of bytes apart.")
	for i, name := range []string{"rows", "cols", "dst", "dstStride", "src", "srcStride"} {
		a.op("MOVQ %s+%d(FP), %s", name, 8*i, []string{"CX", "R11", "DI", "R8", "SI", "R9"}[i])
	}
	a.op("SHLQ $2, R11")
	a.label("copyRow")
	a.op("XORQ R10, R10")
	a.label("copyVector")
	a.op("VMOVUPS (SI)(R10*1), Y0")
	a.op("VMOVUPS Y0, (DI)(R10*1)")
	a.op("ADDQ $32, R10")
	a.op("CMPQ R10, R11")
	a.op("JLT copyVector")
	a.op("ADDQ R9, SI")
	a.op("ADDQ R8, DI")
	a.op("DECQ CX")
	a.op("JNZ copyRow")
	a.op("VZEROUPPER")
	a.op("RET")
}
