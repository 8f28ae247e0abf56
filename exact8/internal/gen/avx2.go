package main

import "github.com/entrain-network/entrain/internal/asm"

// writeAVX2 writes the kernels for AVX2 with FMA. VPMADDUBSW multiplies unsigned by signed bytes
// and adds the products in pairs, to 16 bits. Of A it takes the magnitudes, and of B the bytes with
// the signs of A's, (b^m)-m for a mask m, which takes less time than VPSIGNB. The sum of a pair is
// at most 2·127², so nothing saturates. A's bytes are q here.
func writeAVX2(f *asm.File) {
	tileAVX2(f, "tileAVX2", "is the tile kernel for AVX2, of an A whose bytes are q; see tilePlain.", rows, 2)
	tileAVX2(f, "rowAVX2", "is tileAVX2 for a tile of one row.", 1, 1)
	quantizeRowAVX2(f)
	quantizeLeftAVX2(f, "quantizeLeftAVX2", false)
	quantizeRightAVX2(f)
	sumsAVX2(f)
}

// tileAVX2 computes a tile of rows, one or two at a time. The tile of C stays in memory.
func tileAVX2(f *asm.File, name, doc string, rows, each int) {
	f.Function(name, "(t *tileArgs)", 8, doc)
	f.Op("MOVQ t+0(FP), AX")
	f.Op("MOVQ %d(AX), R8", argRowStep)
	f.Op("MOVQ %d(AX), R11", argLDC)
	f.Op("MOVQ %d(AX), R12", argFourStep)
	f.Op("VPCMPEQW Y15, Y15, Y15")
	f.Op("VPABSW Y15, Y15") // words of 1
	f.Label("tile")
	f.Op("MOVQ %d(AX), DX", argC)
	f.Op("MOVQ %d(AX), R9", argA)
	f.Op("MOVQ %d(AX), R14", argScaleA)
	f.Op("MOVQ $%d, R10", rows/each)
	f.Label("rows")
	f.Op("CMPQ %d(AX), $0", argAcc)
	f.Op("JNE ready")
	f.Op("VPXOR Y0, Y0, Y0")
	for _, row := range []string{"(DX)", "(DX)(R11*1)"}[:each] {
		for v := range 4 {
			f.Op("VMOVUPS Y0, %d%s", 32*v, row)
		}
	}
	f.Label("ready")
	f.Op("MOVQ R9, SI")
	f.Op("MOVQ R14, BX")
	f.Op("MOVQ %d(AX), DI", argB)
	f.Op("MOVQ %d(AX), R13", argScaleB)
	f.Op("MOVQ %d(AX), CX", argBlocks)
	f.Label("block")
	blockAVX2(f, each)
	f.Op("ADDQ $%d, DI", 128*fours)
	f.Op("ADDQ $%d, BX", 4*panelA)
	f.Op("ADDQ $128, R13")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("LEAQ (R9)(R8*%d), R9", each)
	f.Op("ADDQ $%d, R14", 4*each)
	f.Op("LEAQ (DX)(R11*%d), DX", each)
	f.Op("DECQ R10")
	f.Op("JNE rows")
	f.Op("MOVQ DX, %d(AX)", argC)
	f.Op("MOVQ R14, %d(AX)", argScaleA)
	f.Op("MOVQ %d(AX), DX", argTileStep)
	f.Op("ADDQ DX, %d(AX)", argA)
	f.Op("DECQ %d(AX)", argCount)
	f.Op("JNE tile")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// blockAVX2 multiplies one block of k and adds it to one or two rows of the tile of C.
func blockAVX2(f *asm.File, each int) {
	for i := range 4 * each {
		f.Op("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	for s := range fours {
		f.Op("VPXOR Y13, Y13, Y13")
		for i, at := range []string{"(SI)", "(SI)(R8*1)"}[:each] {
			f.Op("VPBROADCASTD %s, Y%d", at, 8+i)
			f.Op("VPABSB Y%d, Y%d", 8+i, 10+i)
			f.Op("VPCMPGTB Y%[1]d, Y13, Y%[1]d", 8+i)
		}
		for v := range 4 {
			f.Op("VMOVDQU %d(DI), Y12", 128*s+32*v)
			for i := range each {
				f.Op("VPXOR Y%d, Y12, Y%d", 8+i, 13+i)
				f.Op("VPSUBB Y%d, Y%d, Y%d", 8+i, 13+i, 13+i)
				f.Op("VPMADDUBSW Y%d, Y%d, Y%d", 13+i, 10+i, 13+i)
				f.Op("VPMADDWD Y15, Y%d, Y%d", 13+i, 13+i)
				f.Op("VPADDD Y%d, Y%d, Y%d", 13+i, 4*i+v, 4*i+v)
			}
		}
		f.Op("ADDQ R12, SI")
	}
	for i, row := range []string{"(DX)", "(DX)(R11*1)"}[:each] {
		f.Op("VPBROADCASTD %d(BX), Y12", 4*i)
		for v := range 4 {
			f.Op("VPADDD %d(R13), Y12, Y13", 32*v)
			f.Op("VCVTDQ2PS Y%d, Y%d", 4*i+v, 4*i+v)
			f.Op("VMOVUPS %d%s, Y14", 32*v, row)
			f.Op("VFMADD231PS Y%d, Y13, Y14", 4*i+v)
			f.Op("VMOVUPS Y14, %d%s", 32*v, row)
		}
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
// to four k, to q+128 if flip is set. base is the constant that exponents are stored less. With
// sums it leaves those of q in Y8.
func columnsAVX2(f *asm.File, v, wide int, base string, sums, flip bool) {
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
			if sums {
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
		if !flip {
			f.Op("VPXOR Y13, Y0, Y0")
		}
		f.Op("VMOVDQU Y0, %d(DI)", wide*s+32*v)
		if s+1 < fours {
			f.Op("LEAQ (AX)(R9*4), AX")
		}
	}
}

// quantizeLeftAVX2 quantizes a block of 16 columns.
func quantizeLeftAVX2(f *asm.File, name string, flip bool) {
	f.Function(name, "(src *float32, stride uintptr, dst *byte, scale *uint32, scratch *float32)", 40, "is quantizeLeftPlain.")
	load(f, "src stride dst scale", "SI", "R9", "DI", "DX")
	f.Op("LEAQ (R9)(R9*2), R11")
	f.Op("VPBROADCASTD magnitude<>(SB), Y14")
	f.Op("VPBROADCASTD flip<>(SB), Y13")
	for v := range 2 {
		columnsAVX2(f, v, 4*panelA, "c133", false, flip)
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
		columnsAVX2(f, v, 128, "c6", true, false)
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
