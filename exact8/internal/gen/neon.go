package main

import (
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

// writeNEON writes the kernels for NEON with the dot products of bytes that came with Armv8.2. They
// multiply signed bytes: those of A are q, and there are no sums.
func writeNEON(f *asm.File) {
	tileNEON(f, "tileNEON", "is the tile kernel for NEON, of an A whose bytes are q; see tilePlain.", rows, 2)
	tileNEON(f, "rowNEON", "is tileNEON for a tile of one row.", 1, 8)
	quantizeRowNEON(f)
	left := "(src *float32, stride uintptr, dst *byte, scale *uint32, scratch *float32)"
	quantizeColumnsNEON(f, "quantizeLeftNEON", left, 40, 16, 4*panelA, 133)
	quantizeColumnsNEON(f, "quantizeLeftI8MM", left, 40, 16, 4, 133)
	quantizeColumnsNEON(f, "quantizeRightNEON", "(src *float32, stride uintptr, dst *byte, scale, sums *uint32, scratch *float32)", 48, 32, 128, 6)
}

// A wordOf is an instruction that Go's assembler does not know: its bits with all registers 0, and
// its name and operands in Arm's syntax.
type wordOf struct {
	bits uint32
	text string
}

var (
	sdot    = wordOf{0x4e809400, "sdot v%d.4s, v%d.16b, v%d.16b"}
	smmla   = wordOf{0x4e80a400, "smmla v%d.4s, v%d.16b, v%d.16b"}
	umax    = wordOf{0x6ea06400, "umax v%d.4s, v%d.4s, v%d.4s"}
	fmul    = wordOf{0x6e20dc00, "fmul v%d.4s, v%d.4s, v%d.4s"}
	umaxv   = wordOf{0x6eb0a800, "umaxv s%d, v%d.4s"}
	scvtf   = wordOf{0x4e21d800, "scvtf v%d.4s, v%d.4s"}
	fcvtns  = wordOf{0x4e21a800, "fcvtns v%d.4s, v%d.4s"}
	xtnHalf = wordOf{0x0e612800, "xtn v%d.4h, v%d.4s"}
	xtnHigh = wordOf{0x4e612800, "xtn2 v%d.8h, v%d.4s"}
	xtnByte = wordOf{0x0e212800, "xtn v%d.8b, v%d.8h"}
	xtnTop  = wordOf{0x4e212800, "xtn2 v%d.16b, v%d.8h"}
)

// word writes an instruction by its bits, with its text as a comment; a test compares the two.
func word(f *asm.File, w wordOf, registers ...int) {
	bits, args := w.bits, make([]any, len(registers))
	for i, r := range registers {
		bits |= uint32(r) << []uint{0, 5, 16}[i]
		args[i] = r
	}
	f.Op("WORD $0x%08x // %s", bits, fmt.Sprintf(w.text, args...))
}

// tileNEON computes a tile in groups of vectors of 4 columns, one group after another: V0-V11 are
// the sums of a block. The tile of C stays in memory.
func tileNEON(f *asm.File, name, doc string, rows, vectors int) {
	tileARM(f, name, doc, rows, vectors, func() {
		f.Op("MOVD %d(R0), R12", argFourStep)
		f.Op("SUB R12<<3, R21, R21") // from the end of a block to the next
	}, func() { blockNEON(f, rows, vectors) })
}

// tileARM writes a tile kernel around what multiplies a block and adds it to a group of columns of
// the tile of C. R1 to R6 are addresses of the rows of A, R7 of B, R8 and R9 of their exponents,
// R20 of C, whose rows are R11 bytes apart; R21 is the step of A from block to block.
func tileARM(f *asm.File, name, doc string, rows, vectors int, begin, block func()) {
	f.Function(name, "(t *tileArgs)", 8, doc)
	f.Op("MOVD t+0(FP), R0")
	f.Op("MOVD %d(R0), R14", argRowStep)
	f.Op("MOVD %d(R0), R11", argLDC)
	f.Op("MOVD %d(R0), R21", argBlockStep)
	begin()
	f.Label("tile")
	f.Op("MOVD ZR, R15") // bytes of the group among the columns
	f.Label("group")
	f.Op("MOVD %d(R0), R1", argA)
	for i := 1; i < rows; i++ {
		f.Op("ADD R14, R%d, R%d", i, i+1)
	}
	for i, arg := range []int{argB, argScaleB, argC} {
		f.Op("MOVD %d(R0), R%d", arg, []int{7, 9, 20}[i])
		f.Op("ADD R15, R%[1]d, R%[1]d", []int{7, 9, 20}[i])
	}
	f.Op("MOVD %d(R0), R8", argScaleA)
	f.Op("MOVD %d(R0), R13", argBlocks)
	f.Op("MOVD %d(R0), R19", argAcc)
	f.Op("CBNZ R19, block")
	f.Op("VEOR V0.B16, V0.B16, V0.B16")
	f.Op("MOVD R20, R10")
	for range rows {
		for v := range vectors {
			f.Op("FMOVQ F0, %d(R10)", 16*v)
		}
		f.Op("ADD R11, R10, R10")
	}
	f.Label("block")
	block()
	f.Op("ADD $%d, R7", 128*fours)
	f.Op("ADD $%d, R8", 4*panelA)
	f.Op("ADD $128, R9")
	f.Op("SUBS $1, R13")
	f.Op("BNE block")
	f.Op("ADD $%d, R15", 16*vectors)
	f.Op("CMP $128, R15")
	f.Op("BNE group")
	move := func(arg int, by string) {
		f.Op("MOVD %d(R0), R19", arg)
		f.Op("ADD %s, R19", by)
		f.Op("MOVD R19, %d(R0)", arg)
	}
	if rows > 1 {
		f.Op("ADD R11<<1, R11, R10")
		f.Op("LSL $1, R10")
		move(argC, "R10")
	} else {
		move(argC, "R11")
	}
	f.Op("MOVD %d(R0), R10", argTileStep)
	move(argA, "R10")
	move(argScaleA, fmt.Sprintf("$%d", 4*rows))
	f.Op("MOVD %d(R0), R19", argCount)
	f.Op("SUBS $1, R19")
	f.Op("MOVD R19, %d(R0)", argCount)
	f.Op("BNE tile")
	f.Op("RET")
}

// blockNEON multiplies one block of k and adds it to a group of columns of the tile of C.
func blockNEON(f *asm.File, rows, vectors int) {
	for i := range vectors * rows {
		f.Op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	for s := range fours {
		for i := range rows {
			f.Op("VLD1R.P (R%d)(R12), [V%d.S4]", 1+i, 14+i)
		}
		for v := range vectors {
			f.Op("FMOVQ %d(R7), F%d", 128*s+16*v, 12+v%2)
			for i := range rows {
				word(f, sdot, vectors*i+v, 12+v%2, 14+i)
			}
		}
	}
	for i := range rows {
		f.Op("ADD R21, R%[1]d, R%[1]d", 1+i)
	}
	f.Op("MOVD R8, R19")
	f.Op("MOVD R20, R10")
	for i := range rows {
		f.Op("VLD1R.P 4(R19), [V22.S4]")
		for v := range vectors {
			sum := vectors*i + v
			f.Op("FMOVQ %d(R9), F23", 16*v)
			f.Op("VADD V23.S4, V22.S4, V23.S4")
			word(f, scvtf, sum, sum)
			f.Op("FMOVQ %d(R10), F24", 16*v)
			f.Op("VFMLA V%d.S4, V23.S4, V24.S4", sum)
			f.Op("FMOVQ F24, %d(R10)", 16*v)
		}
		f.Op("ADD R11, R10, R10")
	}
}

// broadcast fills a vector with a constant.
func broadcast(f *asm.File, value uint32, v int) {
	f.Op("MOVW $%#x, R19", value)
	f.Op("VDUP R19, V%d.S4", v)
}

// quantizeRowNEON quantizes a row block by block.
func quantizeRowNEON(f *asm.File) {
	f.Function("quantizeRowNEON", "(n int, src *float32, dst *byte, flip, base uint32, scale *uint32, step uintptr, scratch *float32)", 56,
		"is quantizeRowPlain for a flip of 0.")
	for i, arg := range []string{"n+0", "src+8", "dst+16"} {
		f.Op("MOVD %s(FP), R%d", arg, i)
	}
	f.Op("MOVWU base+28(FP), R3")
	f.Op("MOVD scale+32(FP), R4")
	f.Op("MOVD step+40(FP), R5")
	f.Op("LSL $3, R0")
	broadcast(f, 0x7fffffff, 30)
	f.Op("MOVD $260, R8")
	f.Label("row")
	for v := range 8 {
		f.Op("FMOVQ %d(R1), F%d", 16*v, v)
		f.Op("VAND V%d.B16, V30.B16, V%d.B16", v, 8+v)
	}
	for half := 4; half > 0; half /= 2 {
		for v := range half {
			word(f, umax, 8+v, 8+v, 8+v+half)
		}
	}
	word(f, umaxv, 8, 8)
	f.Op("FMOVS F8, R6")
	f.Op("ADDW $0x10000, R6")
	f.Op("LSRW $23, R6")
	f.Op("MOVD $71, R7")
	f.Op("CMPW R7, R6")
	f.Op("CSEL LO, R7, R6, R6")
	f.Op("SUBW R3, R6, R7")
	f.Op("LSLW $23, R7")
	f.Op("MOVW R7, (R4)")
	f.Op("ADD R5, R4")
	f.Op("SUBW R6, R8, R7")
	f.Op("LSLW $23, R7")
	f.Op("VDUP R7, V8.S4")
	for v := range 8 {
		word(f, fmul, v, v, 8)
		word(f, fcvtns, v, v)
	}
	for v := 0; v < 8; v += 2 {
		word(f, xtnHalf, 16+v/2, v)
		word(f, xtnHigh, 16+v/2, v+1)
	}
	for v := range 2 {
		word(f, xtnByte, 20+v, 16+2*v)
		word(f, xtnTop, 20+v, 17+2*v)
		f.Op("FMOVQ F%d, %d(R2)", 20+v, 16*v)
	}
	f.Op("ADD $128, R1")
	f.Op("ADD $32, R2")
	f.Op("SUBS $1, R0")
	f.Op("BNE row")
	f.Op("RET")
}

// quantizeColumnsNEON quantizes a block of these columns, four at a time, wide bytes from four k
// to four k; a wide of 4 stores each column by itself. base is what exponents are stored less.
func quantizeColumnsNEON(f *asm.File, name, signature string, bytes, columns, wide, base int) {
	f.Function(name, signature, bytes, "is the plain function of that name, for bytes q and without sums.")
	for i, arg := range []string{"src+0", "stride+8", "dst+16", "scale+24"} {
		f.Op("MOVD %s(FP), R%d", arg, i)
	}
	broadcast(f, 0x7fffffff, 30)
	broadcast(f, 1<<16, 29)
	broadcast(f, 71, 28)
	broadcast(f, 260, 27)
	broadcast(f, uint32(base), 26)
	f.Op("MOVD $%d, R4", columns/4)
	f.Label("columns")
	f.Op("MOVD R0, R5")
	f.Op("VEOR V0.B16, V0.B16, V0.B16")
	for range 4 * fours {
		f.Op("FMOVQ (R5), F1")
		f.Op("ADD R1, R5")
		f.Op("VAND V1.B16, V30.B16, V1.B16")
		word(f, umax, 0, 0, 1)
	}
	f.Op("VADD V29.S4, V0.S4, V0.S4")
	f.Op("VUSHR $23, V0.S4, V0.S4")
	word(f, umax, 0, 0, 28)
	f.Op("VSUB V26.S4, V0.S4, V1.S4")
	f.Op("VSHL $23, V1.S4, V1.S4")
	f.Op("FMOVQ F1, (R3)")
	f.Op("ADD $16, R3")
	f.Op("VSUB V0.S4, V27.S4, V0.S4")
	f.Op("VSHL $23, V0.S4, V0.S4")
	f.Op("MOVD R0, R5")
	for i := range 4 {
		if wide == 4 {
			f.Op("ADD $%d, R2, R%d", 32*i, 6+i)
		}
	}
	for s := range fours {
		for i := range 4 {
			f.Op("FMOVQ (R5), F%d", 1+i)
			f.Op("ADD R1, R5")
			word(f, fmul, 1+i, 1+i, 0)
			word(f, fcvtns, 1+i, 1+i)
		}
		for i := 1; i < 4; i++ {
			f.Op("VSLI $%d, V%d.S4, V1.S4", 8*i, 1+i)
		}
		if wide > 4 {
			f.Op("FMOVQ F1, %d(R2)", wide*s)
			continue
		}
		for i := range 4 {
			f.Op("VST1.P V1.S[%d], 4(R%d)", i, 6+i)
		}
	}
	f.Op("ADD $16, R0")
	f.Op("ADD $%d, R2", map[bool]int{false: 16, true: 128}[wide == 4])
	f.Op("SUBS $1, R4")
	f.Op("BNE columns")
	f.Op("RET")
}
