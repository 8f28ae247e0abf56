package main

import "github.com/entrain-network/entrain/internal/asm"

// writeAVX2 writes the kernels for AVX2 with FMA. It has no dot products of bytes: they are widened
// to 16 bits, whose products VPMADDWD adds in pairs.
func writeAVX2(f *asm.File) {
	tileAVX2(f)
	quantizeRowAVX2(f)
	quantizeLeftAVX2(f)
	quantizeRightAVX2(f)
	sumsAVX2(f)
}

// tileAVX2 computes a tile in four groups of 8 columns, one after another. Two sums belong to each
// column until a block ends, those of the first and of the second pair of each four k. The tile of
// C stays in memory.
func tileAVX2(f *asm.File) {
	f.Function("tileAVX2", "(t *tileArgs)", 8, "is the tile kernel for AVX2; see tilePlain.")
	f.Op("MOVQ t+0(FP), AX")
	f.Op("MOVQ %d(AX), R8", argRowStep)
	f.Op("LEAQ (R8)(R8*2), R9")
	f.Op("LEAQ (R8)(R8*4), R10")
	f.Op("MOVQ %d(AX), R11", argLDC)
	f.Op("MOVQ %d(AX), R12", argFourStep)
	f.Label("tile")
	f.Op("CMPQ %d(AX), $0", argAcc)
	f.Op("JNE ready")
	f.Op("MOVQ %d(AX), DX", argC)
	f.Op("VPXOR Y0, Y0, Y0")
	for range rows {
		for v := range 4 {
			f.Op("VMOVUPS Y0, %d(DX)", 32*v)
		}
		f.Op("ADDQ R11, DX")
	}
	f.Label("ready")
	f.Op("XORQ R14, R14") // bytes of the group among the columns
	f.Label("group")
	f.Op("MOVQ %d(AX), SI", argA)
	f.Op("MOVQ %d(AX), DI", argB)
	f.Op("ADDQ R14, DI")
	f.Op("MOVQ %d(AX), BX", argScaleA)
	f.Op("MOVQ %d(AX), R13", argScaleB)
	f.Op("ADDQ R14, R13")
	f.Op("MOVQ %d(AX), R15", argSums)
	f.Op("ADDQ R14, R15")
	f.Op("MOVQ %d(AX), CX", argBlocks)
	f.Label("block")
	blockAVX2(f)
	f.Op("ADDQ $%d, DI", 128*fours)
	f.Op("ADDQ $%d, BX", 4*panelA)
	f.Op("ADDQ $128, R13")
	f.Op("ADDQ $128, R15")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("ADDQ $32, R14")
	f.Op("CMPQ R14, $128")
	f.Op("JNE group")
	f.Op("MOVQ %d(AX), DX", argC)
	f.Op("LEAQ (R11)(R11*2), BX")
	f.Op("LEAQ (DX)(BX*2), DX")
	f.Op("MOVQ DX, %d(AX)", argC)
	f.Op("MOVQ %d(AX), DX", argTileStep)
	f.Op("ADDQ DX, %d(AX)", argA)
	f.Op("ADDQ $%d, %d(AX)", 4*rows, argScaleA)
	f.Op("DECQ %d(AX)", argCount)
	f.Op("JNE tile")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// blockAVX2 multiplies one block of k and adds it to 8 columns of the tile of C.
func blockAVX2(f *asm.File) {
	for i := range 2 * rows {
		f.Op("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	for s := range fours {
		f.Op("VPMOVSXBW %d(DI), Y12", 128*s)
		f.Op("VPMOVSXBW %d(DI), Y13", 128*s+16)
		for i, at := range []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R9*1)", "(SI)(R8*4)", "(SI)(R10*1)"} {
			f.Op("VPBROADCASTD %s, X14", at)
			f.Op("VPMOVZXBW X14, Y14")
			f.Op("VPMADDWD Y12, Y14, Y15")
			f.Op("VPADDD Y15, Y%d, Y%d", 2*i, 2*i)
			f.Op("VPMADDWD Y13, Y14, Y15")
			f.Op("VPADDD Y15, Y%d, Y%d", 2*i+1, 2*i+1)
		}
		f.Op("ADDQ R12, SI")
	}
	f.Op("MOVQ %d(AX), DX", argC)
	f.Op("ADDQ R14, DX")
	for i := range rows {
		f.Op("VPHADDD Y%d, Y%d, Y%d", 2*i+1, 2*i, 2*i)
		f.Op("VPERMQ $0xd8, Y%d, Y%d", 2*i, 2*i)
		f.Op("VPADDD (R15), Y%d, Y%d", 2*i, 2*i)
		f.Op("VCVTDQ2PS Y%d, Y%d", 2*i, 2*i)
		f.Op("VPBROADCASTD %d(BX), Y14", 4*i)
		f.Op("VPADDD (R13), Y14, Y14")
		f.Op("VMOVUPS (DX), Y15")
		f.Op("VFMADD231PS Y%d, Y14, Y15", 2*i)
		f.Op("VMOVUPS Y15, (DX)")
		f.Op("ADDQ R11, DX")
	}
}

// quantizeRowAVX2 quantizes a row block by block.
func quantizeRowAVX2(f *asm.File) {
	f.Function("quantizeRowAVX2", "(n int, src *float32, dst *byte, flip, base uint32, scale *uint32, step uintptr, scratch *float32)", 56,
		"is quantizeRowPlain.")
	f.Op("MOVQ n+0(FP), CX")
	f.Op("SHLQ $3, CX")
	f.Op("MOVQ src+8(FP), SI")
	f.Op("MOVQ dst+16(FP), DI")
	f.Op("MOVL flip+24(FP), AX")
	f.Op("VMOVD AX, X15")
	f.Op("VPBROADCASTD X15, Y15")
	f.Op("MOVL base+28(FP), R8")
	f.Op("MOVQ scale+32(FP), DX")
	f.Op("MOVQ step+40(FP), R9")
	f.Op("VPBROADCASTD magnitude<>(SB), Y14")
	f.Op("VMOVDQU orderAVX2<>(SB), Y13")
	f.Op("MOVL $71, R10")
	f.Label("block")
	for v := range 4 {
		f.Op("VMOVUPS %d(SI), Y%d", 32*v, v)
		f.Op("VPAND Y%d, Y14, Y%d", v, 4+v)
	}
	f.Op("VPMAXSD Y5, Y4, Y4")
	f.Op("VPMAXSD Y7, Y6, Y6")
	f.Op("VPMAXSD Y6, Y4, Y4")
	f.Op("VEXTRACTI128 $1, Y4, X5")
	f.Op("VPMAXSD X5, X4, X4")
	f.Op("VPSHUFD $0x4e, X4, X5")
	f.Op("VPMAXSD X5, X4, X4")
	f.Op("VPSHUFD $0xb1, X4, X5")
	f.Op("VPMAXSD X5, X4, X4")
	f.Op("VMOVD X4, AX")
	f.Op("ADDL $0x10000, AX")
	f.Op("SHRL $23, AX")
	f.Op("CMPL AX, R10")
	f.Op("CMOVLCS R10, AX")
	f.Op("MOVL AX, BX")
	f.Op("SUBL R8, BX")
	f.Op("SHLL $23, BX")
	f.Op("MOVL BX, (DX)")
	f.Op("ADDQ R9, DX")
	f.Op("NEGL AX")
	f.Op("ADDL $260, AX")
	f.Op("SHLL $23, AX")
	f.Op("VMOVD AX, X4")
	f.Op("VPBROADCASTD X4, Y4")
	for v := range 4 {
		f.Op("VMULPS Y4, Y%d, Y%d", v, v)
		f.Op("VCVTPS2DQ Y%d, Y%d", v, v)
	}
	f.Op("VPACKSSDW Y1, Y0, Y0")
	f.Op("VPACKSSDW Y3, Y2, Y2")
	f.Op("VPACKSSWB Y2, Y0, Y0")
	f.Op("VPERMD Y0, Y13, Y0")
	f.Op("VPXOR Y15, Y0, Y0")
	f.Op("VMOVDQU Y0, (DI)")
	f.Op("ADDQ $128, SI")
	f.Op("ADDQ $32, DI")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// columnsAVX2 quantizes a block of 8 columns, vector v of a row of memory, wide bytes from four k
// to four k. base is the constant that exponents are stored less. With signed it makes bytes q and
// leaves their sums in Y8; else bytes q+128.
func columnsAVX2(f *asm.File, v, wide int, base string, signed bool) {
	f.Op("MOVQ SI, AX")
	f.Op("VPXOR Y0, Y0, Y0")
	for s := range fours {
		for _, at := range []string{"(AX)", "(AX)(R9*1)", "(AX)(R9*2)", "(AX)(R11*1)"} {
			f.Op("VPAND %d%s, Y14, Y1", 32*v, at)
			f.Op("VPMAXSD Y1, Y0, Y0")
		}
		if s+1 < fours {
			f.Op("LEAQ (AX)(R9*4), AX")
		}
	}
	broadcast := func(name string, y int) { f.Op("VPBROADCASTD %s<>(SB), Y%d", name, y) }
	broadcast("carry", 1)
	f.Op("VPADDD Y1, Y0, Y0")
	f.Op("VPSRLD $23, Y0, Y0")
	broadcast("least", 1)
	f.Op("VPMAXSD Y1, Y0, Y0")
	broadcast("c260", 6)
	f.Op("VPSUBD Y0, Y6, Y6")
	f.Op("VPSLLD $23, Y6, Y6")
	broadcast(base, 1)
	f.Op("VPSUBD Y1, Y0, Y0")
	f.Op("VPSLLD $23, Y0, Y0")
	f.Op("VMOVDQU Y0, %d(DX)", 32*v)
	f.Op("VPXOR Y8, Y8, Y8")
	f.Op("MOVQ SI, AX")
	for s := range fours {
		for i, at := range []string{"(AX)", "(AX)(R9*1)", "(AX)(R9*2)", "(AX)(R11*1)"} {
			f.Op("VMULPS %d%s, Y6, Y%d", 32*v, at, i)
			f.Op("VCVTPS2DQ Y%d, Y%d", i, i)
			if signed {
				f.Op("VPADDD Y%d, Y8, Y8", i)
			}
		}
		for i := 1; i < 4; i++ {
			f.Op("VPSLLD $%d, Y%d, Y%d", 8*i, i, i)
		}
		f.Op("VPADDD Y1, Y0, Y0")
		f.Op("VPADDD Y3, Y2, Y2")
		f.Op("VPADDD Y13, Y0, Y0")
		f.Op("VPADDD Y2, Y0, Y0")
		if signed {
			f.Op("VPXOR Y13, Y0, Y0")
		}
		f.Op("VMOVDQU Y0, %d(DI)", wide*s+32*v)
		if s+1 < fours {
			f.Op("LEAQ (AX)(R9*4), AX")
		}
	}
}

// quantizeLeftAVX2 quantizes a block of 16 columns.
func quantizeLeftAVX2(f *asm.File) {
	f.Function("quantizeLeftAVX2", "(src *float32, stride uintptr, dst *byte, scale *uint32, scratch *float32)", 40, "is quantizeLeftPlain.")
	load(f, "src stride dst scale", "SI", "R9", "DI", "DX")
	f.Op("LEAQ (R9)(R9*2), R11")
	f.Op("VPBROADCASTD magnitude<>(SB), Y14")
	f.Op("VPBROADCASTD flip<>(SB), Y13")
	for v := range 2 {
		columnsAVX2(f, v, 4*panelA, "c133", false)
	}
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// quantizeRightAVX2 quantizes a block of 32 columns.
func quantizeRightAVX2(f *asm.File) {
	f.Function("quantizeRightAVX2", "(src *float32, stride uintptr, dst *byte, scale, sums *uint32, scratch *float32)", 48, "is quantizeRightPlain.")
	load(f, "src stride dst scale sums", "SI", "R9", "DI", "DX", "BX")
	f.Op("LEAQ (R9)(R9*2), R11")
	f.Op("VPBROADCASTD magnitude<>(SB), Y14")
	f.Op("VPBROADCASTD flip<>(SB), Y13")
	f.Op("VPXOR Y12, Y12, Y12")
	for v := range 4 {
		columnsAVX2(f, v, 128, "c6", true)
		f.Op("VPSLLD $7, Y8, Y8")
		f.Op("VPSUBD Y8, Y12, Y8")
		f.Op("VMOVDQU Y8, %d(BX)", 32*v)
	}
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// sumsAVX2 stores -128·Σq of the blocks of a panel of B.
func sumsAVX2(f *asm.File) {
	f.Function("sumsAVX2", "(n int, src *byte, sums *uint32)", 24, "is sumsPlain.")
	load(f, "n src sums", "CX", "SI", "BX")
	f.Op("VPBROADCASTD ones<>(SB), Y15")
	f.Op("VPCMPEQW Y14, Y14, Y14")
	f.Op("VPABSW Y14, Y14") // words of 1
	f.Op("VPXOR Y13, Y13, Y13")
	f.Label("block")
	for v := range 4 {
		f.Op("VPXOR Y%d, Y%d, Y%d", v, v, v)
	}
	for s := range fours {
		for v := range 4 {
			f.Op("VPMADDUBSW %d(SI), Y15, Y4", 128*s+32*v)
			f.Op("VPMADDWD Y14, Y4, Y4")
			f.Op("VPADDD Y4, Y%d, Y%d", v, v)
		}
	}
	for v := range 4 {
		f.Op("VPSLLD $7, Y%d, Y%d", v, v)
		f.Op("VPSUBD Y%d, Y13, Y%d", v, v)
		f.Op("VMOVDQU Y%d, %d(BX)", v, 32*v)
	}
	f.Op("ADDQ $%d, SI", 128*fours)
	f.Op("ADDQ $128, BX")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("VZEROUPPER")
	f.Op("RET")
}
