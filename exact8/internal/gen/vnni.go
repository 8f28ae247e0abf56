package main

import (
	"strings"

	"github.com/entrain-network/entrain/internal/asm"
)

// Offsets of the fields of tileArgs.
const (
	argA, argRowStep, argFourStep, argTileStep, argScaleA = 0, 8, 16, 24, 32
	argB, argScaleB, argSums, argC, argLDC                = 40, 48, 56, 64, 72
	argBlocks, argAcc, argCount, argNext                  = 80, 88, 96, 104
	argBlockStep, argScratch                              = 112, 120
)

// Shapes that package exact8 has too.
const (
	rows   = 6      // of a tile
	panelA = 48     // rows of A in a panel
	fours  = 32 / 4 // of a block
)

// writeVNNI writes the kernels for AVX-512 with VNNI.
func writeVNNI(f *asm.File) {
	tileVNNI(f, "tileVNNI", "is the tile kernel for AVX-512 with VNNI; see tilePlain.", rows, scaleAndAdd)
	tileVNNI(f, "nearVNNI", "is tileVNNI for exponents of at most nearExponent.", rows, addScaled)
	tileVNNI(f, "rowVNNI", "is tileVNNI for a tile of one row.", 1, scaleAndAdd)
	quantizeRow(f)
	quantizeLeft(f, "quantizeLeftVNNI", false)
	quantizeRight(f)
	transpose(f)
	sums(f)
}

func constants(f *asm.File) {
	f.Text("\n")
	for _, c := range []struct {
		name  string
		value uint32
	}{
		{"magnitude", 0x7fffffff}, {"carry", 1 << 16}, {"least", 71}, {"ones", 0x01010101}, {"flip", 0x80808080},
		{"shift", 0x4b400000 - 127<<23}, {"c260", 260}, {"c133", 133}, {"c6", 6},
	} {
		f.Text("DATA %s<>+0(SB)/4, $%#x\nGLOBL %s<>(SB), RODATA|NOPTR, $4\n", c.name, c.value, c.name)
	}
	for i := range 16 { // from packing in lanes to the order of the elements
		f.Text("DATA order<>+%d(SB)/4, $%d\n", 4*i, 4*(i%4)+i/4)
	}
	f.Text("GLOBL order<>(SB), RODATA|NOPTR, $64\n")
	for i, quarter := range []int{0, 2, 1, 3} { // from two halves of two rows to two rows
		f.Text("DATA orderRows<>+%d(SB)/8, $%d\nDATA orderRows<>+%d(SB)/8, $%d\n", 16*i, 2*quarter, 16*i+8, 2*quarter+1)
	}
	f.Text("GLOBL orderRows<>(SB), RODATA|NOPTR, $64\n")
	for i := range 8 {
		f.Text("DATA orderAVX2<>+%d(SB)/4, $%d\n", 4*i, 4*(i%2)+i/2)
	}
	f.Text("GLOBL orderAVX2<>(SB), RODATA|NOPTR, $32\n")
}

// load loads the arguments of a function, 8 bytes each, into registers.
func load(f *asm.File, args string, registers ...string) {
	for i, name := range strings.Fields(args) {
		f.Op("MOVQ %s+%d(FP), %s", name, 8*i, registers[i])
	}
}

// tileVNNI multiplies one tile of at most 6 rows and 32 columns after another. The tile of C stays
// in Z12-Z23 while the blocks of k go by; Z0-Z11 are the sums of a block. VPDPBUSD multiplies
// unsigned by signed bytes, so A's bytes are q+128, and the sums start at B's -128·Σq.
func tileVNNI(f *asm.File, name, doc string, rows int, add func(f *asm.File, rows int)) {
	f.Function(name, "(t *tileArgs)", 8, doc)
	f.Op("MOVQ t+0(FP), AX")
	f.Op("MOVQ %d(AX), R8", argRowStep)
	f.Op("LEAQ (R8)(R8*2), R9")
	f.Op("LEAQ (R8)(R8*4), R10")
	f.Op("MOVQ %d(AX), R11", argLDC)
	f.Op("MOVQ %d(AX), R12", argFourStep)
	f.Label("tile")
	f.Op("MOVQ %d(AX), DX", argC)
	f.Op("CMPQ %d(AX), $0", argAcc)
	f.Op("JEQ zero")
	for i := range rows {
		f.Op("VMOVUPS 0(DX), Z%d", 12+2*i)
		f.Op("VMOVUPS 64(DX), Z%d", 13+2*i)
		f.Op("ADDQ R11, DX")
	}
	f.Op("JMP ready")
	f.Label("zero")
	for i := range 2 * rows {
		f.Op("VPXORD Z%d, Z%d, Z%d", 12+i, 12+i, 12+i)
	}
	if rows > 1 {
		f.Op("LEAQ (R11)(R11*2), BX")
		f.Op("LEAQ (DX)(BX*2), DX")
	}
	f.Label("ready")
	if rows > 1 {
		f.Op("CMPQ %d(AX), $1", argCount)
		f.Op("CMOVQEQ %d(AX), DX", argNext)
		for range rows { // the next tile's lines of C
			f.Op("PREFETCHT0 0(DX)")
			f.Op("PREFETCHT0 64(DX)")
			f.Op("ADDQ R11, DX")
		}
	}
	f.Op("MOVQ %d(AX), SI", argA)
	f.Op("MOVQ %d(AX), DI", argB)
	f.Op("MOVQ %d(AX), BX", argScaleA)
	f.Op("MOVQ %d(AX), R13", argScaleB)
	f.Op("MOVQ %d(AX), R15", argSums)
	f.Op("MOVQ %d(AX), CX", argBlocks)
	f.Label("block")
	blockVNNI(f, rows)
	add(f, rows)
	f.Op("ADDQ $%d, BX", 4*panelA)
	f.Op("ADDQ $128, R13")
	f.Op("ADDQ $128, R15")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("MOVQ %d(AX), DX", argC)
	for i := range rows {
		f.Op("VMOVUPS Z%d, 0(DX)", 12+2*i)
		f.Op("VMOVUPS Z%d, 64(DX)", 13+2*i)
		f.Op("ADDQ R11, DX")
	}
	f.Op("MOVQ DX, %d(AX)", argC)
	f.Op("MOVQ %d(AX), DX", argTileStep)
	f.Op("ADDQ DX, %d(AX)", argA)
	f.Op("ADDQ $%d, %d(AX)", 4*rows, argScaleA)
	f.Op("DECQ %d(AX)", argCount)
	f.Op("JNE tile")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// sixRows are the rows of a tile of A that begins at SI, with R9 = 3·R8 and R10 = 5·R8.
var sixRows = []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R9*1)", "(SI)(R8*4)", "(SI)(R10*1)"}

// blockVNNI multiplies one block of k.
func blockVNNI(f *asm.File, rows int) {
	f.Op("VMOVDQU32 0(R15), Z0")
	f.Op("VMOVDQU32 64(R15), Z1")
	for i := 1; i < rows; i++ {
		f.Op("VMOVDQA32 Z0, Z%d", 2*i)
		f.Op("VMOVDQA32 Z1, Z%d", 2*i+1)
	}
	for s := range fours {
		f.Op("VMOVDQU32 %d(DI), Z24", 128*s)
		f.Op("VMOVDQU32 %d(DI), Z25", 128*s+64)
		for i, at := range sixRows[:rows] {
			f.Op("VPBROADCASTD %s, Z%d", at, 26+i)
			f.Op("VPDPBUSD Z24, Z%d, Z%d", 26+i, 2*i)
			f.Op("VPDPBUSD Z25, Z%d, Z%d", 26+i, 2*i+1)
		}
		f.Op("ADDQ R12, SI")
	}
	f.Op("ADDQ $%d, DI", 128*fours)
}

// scaleAndAdd computes c = fma(sum, scale, c) for the sums of a block; the scale by adding
// exponents.
func scaleAndAdd(f *asm.File, rows int) {
	f.Op("VMOVDQU32 0(R13), Z24")
	f.Op("VMOVDQU32 64(R13), Z25")
	for i := range rows {
		for v := range 2 {
			sum, temp := 2*i+v, 26+(2*i+v)%6
			f.Op("VPADDD.BCST %d(BX), Z%d, Z%d", 4*i, 24+v, temp)
			f.Op("VCVTDQ2PS Z%d, Z%d", sum, sum)
			f.Op("VFMADD231PS Z%d, Z%d, Z%d", sum, temp, 12+sum)
		}
	}
}

// addScaled computes the same without a multiplication, which would take time from the units that
// multiply bytes. With shift = 1.5·2^23, whose unit is 1 in its last place, adding sum to the bits
// of shift·scale gives (shift+sum)·scale. Its difference to shift·scale is sum·scale, and exact.
func addScaled(f *asm.File, rows int) {
	f.Op("VPBROADCASTD shift<>(SB), Z26")
	f.Op("VPADDD 0(R13), Z26, Z24")
	f.Op("VPADDD 64(R13), Z26, Z25")
	for i := range rows {
		for v := range 2 {
			sum, temp := 2*i+v, 26+(2*i+v)%6
			f.Op("VPADDD.BCST %d(BX), Z%d, Z%d", 4*i, 24+v, temp)
			f.Op("VPADDD Z%d, Z%d, Z%d", temp, sum, sum)
			f.Op("VSUBPS Z%d, Z%d, Z%d", temp, sum, sum)
			f.Op("VADDPS Z%d, Z%d, Z%d", sum, 12+sum, 12+sum)
		}
	}
}

// exponents turns the greatest magnitudes in z into the factors by which elements are multiplied,
// in inv, and what is stored as the scale: e - base, as an exponent. base is a register or a
// constant.
func exponents(f *asm.File, z, inv, scale int, base string) {
	f.Op("VPADDD.BCST carry<>(SB), Z%d, Z%d", z, z)
	f.Op("VPSRLD $23, Z%d, Z%d", z, z)
	f.Op("VPMAXSD.BCST least<>(SB), Z%d, Z%d", z, z)
	f.Op("VPBROADCASTD c260<>(SB), Z%d", inv)
	f.Op("VPSUBD Z%d, Z%d, Z%d", z, inv, inv)
	f.Op("VPSLLD $23, Z%d, Z%d", inv, inv)
	if strings.HasPrefix(base, "Z") {
		f.Op("VPSUBD %s, Z%d, Z%d", base, z, scale)
	} else {
		f.Op("VPSUBD.BCST %s<>(SB), Z%d, Z%d", base, z, scale)
	}
	f.Op("VPSLLD $23, Z%d, Z%d", scale, scale)
}

// rowAhead is the number of bytes by which quantizeRow fetches a row, or the next.
const rowAhead = 2048

// quantizeRow quantizes a row, 8 blocks at a time, whose scales are found together.
func quantizeRow(f *asm.File) {
	f.Function("quantizeRowVNNI", "(n int, src *float32, dst *byte, flip, base uint32, scale *uint32, step uintptr, scratch *float32)", 56,
		"is quantizeRowPlain.")
	f.Op("MOVQ n+0(FP), CX")
	f.Op("MOVQ src+8(FP), SI")
	f.Op("MOVQ dst+16(FP), DI")
	f.Op("MOVL flip+24(FP), AX")
	f.Op("VPBROADCASTD AX, Z31")
	f.Op("MOVL base+28(FP), AX")
	f.Op("VPBROADCASTD AX, Z28")
	f.Op("MOVQ scale+32(FP), DX")
	f.Op("MOVQ step+40(FP), R9")
	f.Op("MOVQ scratch+48(FP), R14")
	f.Op("VPBROADCASTD magnitude<>(SB), Z30")
	f.Op("VMOVDQU32 order<>(SB), Z29")
	f.Label("eight")
	for b := range 8 {
		f.Op("PREFETCHT0 %d(SI)", 128*b+rowAhead)
		f.Op("PREFETCHT0 %d(SI)", 128*b+64+rowAhead)
		f.Op("VPANDD %d(SI), Z30, Z%d", 128*b, b)
		f.Op("VPANDD %d(SI), Z30, Z%d", 128*b+64, 8+b)
		f.Op("VPMAXSD Z%d, Z%d, Z%d", 8+b, b, b)
	}
	pair := func(imm0, imm1 string, x, y, to int) { // the greatest of the quarters that imm names
		f.Op("VSHUFI32X4 $%s, Z%d, Z%d, Z16", imm0, y, x)
		f.Op("VSHUFI32X4 $%s, Z%d, Z%d, Z17", imm1, y, x)
		f.Op("VPMAXSD Z16, Z17, Z%d", to)
	}
	for i := range 4 {
		pair("0x44", "0xee", 2*i, 2*i+1, 8+i) // 8 lanes of each block
	}
	for i := range 2 {
		pair("0x88", "0xdd", 8+2*i, 9+2*i, 12+i) // 4 lanes of each
	}
	f.Op("VPUNPCKLDQ Z13, Z12, Z16")
	f.Op("VPUNPCKHDQ Z13, Z12, Z17")
	f.Op("VPMAXSD Z16, Z17, Z0")
	f.Op("VPSHUFD $0x4e, Z0, Z1")
	f.Op("VPMAXSD Z1, Z0, Z0") // block b at lane 4·(b mod 4) + b/4
	exponents(f, 0, 2, 3, "Z28")
	f.Op("VMOVDQU32 Z2, 0(R14)")
	f.Op("VMOVDQU32 Z3, 64(R14)")
	lane := func(b int) int { return 4 * (4*(b%4) + b/4) }
	for b := range 8 {
		f.Op("MOVL %d(R14), AX", 64+lane(b))
		f.Op("MOVL AX, (DX)")
		f.Op("ADDQ R9, DX")
	}
	for i := range 4 {
		for v := range 4 {
			f.Op("VMOVUPS %d(SI), Z%d", 256*i+64*v, 4+v)
			f.Op("VMULPS.BCST %d(R14), Z%d, Z%d", lane(2*i+v/2), 4+v, 4+v)
			f.Op("VCVTPS2DQ Z%d, Z%d", 4+v, 4+v)
		}
		f.Op("VPACKSSDW Z5, Z4, Z4")
		f.Op("VPACKSSDW Z7, Z6, Z6")
		f.Op("VPACKSSWB Z6, Z4, Z4")
		f.Op("VPERMD Z4, Z29, Z4")
		f.Op("VPXORD Z31, Z4, Z4")
		f.Op("VMOVDQU32 Z4, %d(DI)", 64*i)
	}
	f.Op("ADDQ $1024, SI")
	f.Op("ADDQ $256, DI")
	f.Op("DECQ CX")
	f.Op("JNE eight")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// combine packs the bytes q+128 of four vectors of integers, of four consecutive k, into the first.
func combine(f *asm.File, z int) {
	f.Op("VPSLLD $8, Z%d, Z%d", z+1, z+1)
	f.Op("VPSLLD $16, Z%d, Z%d", z+2, z+2)
	f.Op("VPSLLD $24, Z%d, Z%d", z+3, z+3)
	f.Op("VPADDD Z%d, Z%d, Z%d", z+1, z, z)
	f.Op("VPADDD Z%d, Z%d, Z%d", z+3, z+2, z+2)
	f.Op("VPADDD Z28, Z%d, Z%d", z, z)
	f.Op("VPADDD Z%d, Z%d, Z%d", z+2, z, z)
}

var (
	fourRows  = []string{"(SI)", "(SI)(R9*1)", "(SI)(R9*2)", "(SI)(R11*1)"}
	fourAhead = []string{"(CX)", "(CX)(R9*1)", "(CX)(R9*2)", "(CX)(R11*1)"}
)

// quantizeLeft quantizes a block of 16 columns. Rows of memory may lie a power of two apart and
// share few places in a cache, so they are copied while their greatest magnitudes are taken. The
// bytes are q+128, or q in rows if whole is set.
func quantizeLeft(f *asm.File, name string, whole bool) {
	f.Function(name, "(src *float32, stride uintptr, dst *byte, scale *uint32, scratch *float32)", 40, "is quantizeLeftPlain.")
	load(f, "src stride dst scale scratch", "SI", "R9", "DI", "DX", "R14")
	f.Op("LEAQ (R9)(R9*2), R11")
	f.Op("MOVQ R9, CX")
	f.Op("SHLQ $5, CX")
	f.Op("ADDQ SI, CX") // the next block
	f.Op("VPBROADCASTD magnitude<>(SB), Z30")
	f.Op("VPBROADCASTD flip<>(SB), Z28")
	f.Op("VPXORD Z0, Z0, Z0")
	f.Op("VPXORD Z1, Z1, Z1")
	for s := range fours {
		for i, at := range fourRows {
			f.Op("PREFETCHT0 128%s", at)
			f.Op("PREFETCHT1 %s", fourAhead[i])
			f.Op("VMOVUPS %s, Z%d", at, 4+i)
			f.Op("VMOVUPS Z%d, %d(R14)", 4+i, 256*s+64*i)
			f.Op("VPANDD Z%d, Z30, Z%d", 4+i, 4+i)
			f.Op("VPMAXSD Z%d, Z%d, Z%d", 4+i, i%2, i%2)
		}
		f.Op("LEAQ (SI)(R9*4), SI")
		f.Op("LEAQ (CX)(R9*4), CX")
	}
	f.Op("VPMAXSD Z1, Z0, Z0")
	exponents(f, 0, 6, 8, "c133")
	f.Op("VMOVDQU32 Z8, (DX)")
	for s := range fours {
		for i := range 4 {
			f.Op("VMULPS %d(R14), Z6, Z%d", 256*s+64*i, 12+i)
			f.Op("VCVTPS2DQ Z%d, Z%d", 12+i, 12+i)
		}
		combine(f, 12)
		if whole {
			f.Op("VPXORD Z28, Z12, Z%d", 16+s)
			continue
		}
		f.Op("VMOVDQU32 Z12, %d(DI)", 4*panelA*s)
	}
	if whole {
		storeRows(f)
	}
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// storeRows stores the bytes of 16 rows of a block, whose words for fours of k are in Z16-Z23, one
// row after the other.
func storeRows(f *asm.File) {
	for s := 0; s < fours; s += 2 { // two words of two rows in each quarter
		f.Op("VPUNPCKLDQ Z%d, Z%d, Z%d", 17+s, 16+s, s)
		f.Op("VPUNPCKHDQ Z%d, Z%d, Z%d", 17+s, 16+s, s+1)
	}
	f.Op("VMOVDQU64 orderRows<>(SB), Z15")
	for row := range 4 {
		unpack := []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"}[row%2]
		f.Op("%s Z%d, Z%d, Z8", unpack, 2+row/2, row/2)   // words 0 to 3 of row 4l+row
		f.Op("%s Z%d, Z%d, Z9", unpack, 6+row/2, 4+row/2) // and 4 to 7
		f.Op("VSHUFI32X4 $0x44, Z9, Z8, Z10")             // of rows row and 4+row
		f.Op("VSHUFI32X4 $0xee, Z9, Z8, Z11")             // of 8+row and 12+row
		for half := range 2 {
			f.Op("VPERMQ Z%d, Z15, Z%d", 10+half, 10+half)
			f.Op("VMOVDQU Y%d, %d(DI)", 10+half, 32*(8*half+row))
			f.Op("VEXTRACTI64X4 $1, Z%d, %d(DI)", 10+half, 32*(8*half+4+row))
		}
	}
}

// quantizeRight quantizes a block of 32 columns.
func quantizeRight(f *asm.File) {
	f.Function("quantizeRightVNNI", "(src *float32, stride uintptr, dst *byte, scale, sums *uint32, scratch *float32)", 48, "is quantizeRightPlain.")
	load(f, "src stride dst scale sums scratch", "SI", "R9", "DI", "DX", "BX", "R14")
	f.Op("LEAQ (R9)(R9*2), R11")
	f.Op("MOVQ R9, CX")
	f.Op("SHLQ $5, CX")
	f.Op("ADDQ SI, CX") // the next block
	f.Op("VPBROADCASTD magnitude<>(SB), Z30")
	f.Op("VPBROADCASTD ones<>(SB), Z29")
	f.Op("VPBROADCASTD flip<>(SB), Z28")
	for v := range 4 {
		f.Op("VPXORD Z%d, Z%d, Z%d", v, v, v)
	}
	for s := range fours {
		for i, at := range fourRows {
			for v := range 2 {
				f.Op("PREFETCHT0 %d%s", 128+64*v, at)
				f.Op("PREFETCHT1 %d%s", 64*v, fourAhead[i])
				f.Op("VMOVUPS %d%s, Z%d", 64*v, at, 4+v)
				f.Op("VMOVUPS Z%d, %d(R14)", 4+v, 512*s+128*i+64*v)
				f.Op("VPANDD Z%d, Z30, Z%d", 4+v, 4+v)
				f.Op("VPMAXSD Z%d, Z%d, Z%d", 4+v, v+2*(i%2), v+2*(i%2))
			}
		}
		f.Op("LEAQ (SI)(R9*4), SI")
		f.Op("LEAQ (CX)(R9*4), CX")
	}
	for v := range 2 {
		f.Op("VPMAXSD Z%d, Z%d, Z%d", v+2, v, v)
		exponents(f, v, 6+v, 8+v, "c6")
		f.Op("VMOVDQU32 Z%d, %d(DX)", 8+v, 64*v)
		f.Op("VPXORD Z%d, Z%d, Z%d", 10+v, 10+v, 10+v)
	}
	for s := range fours {
		for v := range 2 {
			for i := range 4 {
				f.Op("VMULPS %d(R14), Z%d, Z%d", 512*s+128*i+64*v, 6+v, 12+4*v+i)
				f.Op("VCVTPS2DQ Z%d, Z%d", 12+4*v+i, 12+4*v+i)
			}
			combine(f, 12+4*v)
			f.Op("VPXORD Z28, Z%d, Z%d", 12+4*v, 12+4*v)
			f.Op("VPDPBUSD Z%d, Z29, Z%d", 12+4*v, 10+v)
			f.Op("VMOVDQU32 Z%d, %d(DI)", 12+4*v, 128*s+64*v)
		}
	}
	f.Op("VPXORD Z4, Z4, Z4")
	for v := range 2 {
		f.Op("VPSLLD $7, Z%d, Z%d", 10+v, 10+v)
		f.Op("VPSUBD Z%d, Z4, Z%d", 10+v, 10+v)
		f.Op("VMOVDQU32 Z%d, %d(BX)", 10+v, 64*v)
	}
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// transpose copies 8 rows of 8 words at a time to columns.
func transpose(f *asm.File) {
	f.Function("transposeAVX2", "(n int, src *byte, stride uintptr, dst *byte, wide uintptr)", 40, "is transposePlain.")
	load(f, "n src stride dst wide", "CX", "SI", "R8", "DI", "R9")
	f.Op("LEAQ (R8)(R8*2), R10")
	f.Op("LEAQ (R9)(R9*2), R12")
	f.Label("square")
	f.Op("LEAQ (SI)(R8*4), BX")
	for i, at := range []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R10*1)", "(BX)", "(BX)(R8*1)", "(BX)(R8*2)", "(BX)(R10*1)"} {
		f.Op("VMOVDQU %s, Y%d", at, i)
	}
	for i := 0; i < 8; i += 2 {
		f.Op("VPUNPCKLDQ Y%d, Y%d, Y%d", i+1, i, 8+i)
		f.Op("VPUNPCKHDQ Y%d, Y%d, Y%d", i+1, i, 9+i)
	}
	for h := range 2 {
		a, b, c, d := 8+4*h, 9+4*h, 10+4*h, 11+4*h
		f.Op("VPUNPCKLQDQ Y%d, Y%d, Y%d", c, a, 4*h)
		f.Op("VPUNPCKHQDQ Y%d, Y%d, Y%d", c, a, 4*h+1)
		f.Op("VPUNPCKLQDQ Y%d, Y%d, Y%d", d, b, 4*h+2)
		f.Op("VPUNPCKHQDQ Y%d, Y%d, Y%d", d, b, 4*h+3)
	}
	f.Op("LEAQ (DI)(R9*4), DX")
	for i, at := range []string{"(DI)", "(DI)(R9*1)", "(DI)(R9*2)", "(DI)(R12*1)"} {
		f.Op("VPERM2I128 $0x20, Y%d, Y%d, Y8", 4+i, i)
		f.Op("VMOVDQU Y8, %s", at)
	}
	for i, at := range []string{"(DX)", "(DX)(R9*1)", "(DX)(R9*2)", "(DX)(R12*1)"} {
		f.Op("VPERM2I128 $0x31, Y%d, Y%d, Y8", 4+i, i)
		f.Op("VMOVDQU Y8, %s", at)
	}
	f.Op("ADDQ $32, SI")
	f.Op("LEAQ (DI)(R9*8), DI")
	f.Op("DECQ CX")
	f.Op("JNE square")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// sums stores -128·Σq of the blocks of a panel of B.
func sums(f *asm.File) {
	f.Function("sumsVNNI", "(n int, src *byte, sums *uint32)", 24, "is sumsPlain.")
	load(f, "n src sums", "CX", "SI", "BX")
	f.Op("VPBROADCASTD ones<>(SB), Z29")
	f.Op("VPXORD Z4, Z4, Z4")
	f.Label("block")
	for v := range 2 {
		f.Op("VPXORD Z%d, Z%d, Z%d", v, v, v)
	}
	for s := range fours {
		for v := range 2 {
			f.Op("VPDPBUSD %d(SI), Z29, Z%d", 128*s+64*v, v)
		}
	}
	for v := range 2 {
		f.Op("VPSLLD $7, Z%d, Z%d", v, v)
		f.Op("VPSUBD Z%d, Z4, Z%d", v, v)
		f.Op("VMOVDQU32 Z%d, %d(BX)", v, 64*v)
	}
	f.Op("ADDQ $%d, SI", 128*fours)
	f.Op("ADDQ $128, BX")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("VZEROUPPER")
	f.Op("RET")
}
