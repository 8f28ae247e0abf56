package main

import (
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

// A dot writes the instruction that adds to a sum the products of A's unsigned by B's signed bytes.
type dot func(f *asm.File, b, a, sum int)

// dotVEX writes AVX-VNNI's VPDPBUSD, which Go's assembler does not know, by its bits, with its text
// as a comment; a test compares the two.
func dotVEX(f *asm.File, b, a, sum int) {
	bits := []int{0xc4, 0xe2 ^ sum>>3<<7 ^ b>>3<<5, 0x7d ^ a<<3, 0x50, 0xc0 | sum&7<<3 | b&7}
	text := ""
	for _, x := range bits {
		text += fmt.Sprintf("BYTE $0x%02x; ", x)
	}
	f.Op("%s// {vex} vpdpbusd %%ymm%d, %%ymm%d, %%ymm%d", text, b, a, sum)
}

// dotEVEX writes the same instruction of AVX-512, which computes the same. A test runs the kernels
// with it where AVX-VNNI is missing.
func dotEVEX(f *asm.File, b, a, sum int) { f.Op("VPDPBUSD Y%d, Y%d, Y%d", b, a, sum) }

// writeAVXVNNI writes the kernels for AVX2 with AVX-VNNI. A's bytes are q+128, as with AVX-512.
func writeAVXVNNI(f *asm.File, d dot) {
	tileAVXVNNI(f, "tileAVXVNNI", "is the tile kernel for AVX-VNNI; see tilePlain.", rows, 2, d)
	tileAVXVNNI(f, "rowAVXVNNI", "is tileAVXVNNI for a tile of one row.", 1, 4, d)
	quantizeLeftAVX2(f, "quantizeLeftAVXVNNI", true)
}

// tileAVXVNNI computes a tile in groups of vectors of 8 columns, one group after another: Y0-Y11
// are the sums of a block. The tile of C stays in memory.
func tileAVXVNNI(f *asm.File, name, doc string, rows, vectors int, d dot) {
	f.Function(name, "(t *tileArgs)", 8, doc)
	f.Op("MOVQ t+0(FP), AX")
	f.Op("MOVQ %d(AX), R8", argRowStep)
	f.Op("LEAQ (R8)(R8*2), R9")
	f.Op("LEAQ (R8)(R8*4), R10")
	f.Op("MOVQ %d(AX), R11", argLDC)
	f.Op("MOVQ %d(AX), R12", argFourStep)
	f.Label("tile")
	f.Op("XORQ R14, R14") // bytes of the group among the columns
	f.Label("group")
	f.Op("MOVQ %d(AX), SI", argA)
	f.Op("MOVQ %d(AX), BX", argScaleA)
	f.Op("MOVQ %d(AX), CX", argBlocks)
	f.Op("MOVQ %d(AX), DI", argB)
	f.Op("ADDQ R14, DI")
	f.Op("MOVQ %d(AX), R13", argScaleB)
	f.Op("ADDQ R14, R13")
	f.Op("MOVQ %d(AX), R15", argSums)
	f.Op("ADDQ R14, R15")
	address := func() {
		f.Op("MOVQ %d(AX), DX", argC)
		f.Op("ADDQ R14, DX")
	}
	f.Op("CMPQ %d(AX), $0", argAcc)
	f.Op("JNE block")
	address()
	f.Op("VPXOR Y0, Y0, Y0")
	for range rows {
		for v := range vectors {
			f.Op("VMOVUPS Y0, %d(DX)", 32*v)
		}
		f.Op("ADDQ R11, DX")
	}
	f.Label("block")
	address()
	blockAVXVNNI(f, rows, vectors, d)
	f.Op("ADDQ $%d, DI", 128*fours)
	f.Op("ADDQ $%d, BX", 4*panelA)
	f.Op("ADDQ $128, R13")
	f.Op("ADDQ $128, R15")
	f.Op("DECQ CX")
	f.Op("JNE block")
	f.Op("ADDQ $%d, R14", 32*vectors)
	f.Op("CMPQ R14, $128")
	f.Op("JNE group")
	for range rows {
		f.Op("ADDQ R11, %d(AX)", argC)
	}
	f.Op("MOVQ %d(AX), DX", argTileStep)
	f.Op("ADDQ DX, %d(AX)", argA)
	f.Op("ADDQ $%d, %d(AX)", 4*rows, argScaleA)
	f.Op("DECQ %d(AX)", argCount)
	f.Op("JNE tile")
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// blockAVXVNNI multiplies one block of k and adds it to a group of columns of the tile of C.
func blockAVXVNNI(f *asm.File, rows, vectors int, d dot) {
	for v := range vectors {
		f.Op("VMOVDQU %d(R15), Y%d", 32*v, v)
		for i := 1; i < rows; i++ {
			f.Op("VMOVDQA Y%d, Y%d", v, vectors*i+v)
		}
	}
	for s := range fours {
		for v := 0; v < vectors; v += 2 {
			f.Op("VMOVDQU %d(DI), Y12", 128*s+32*v)
			f.Op("VMOVDQU %d(DI), Y13", 128*s+32*v+32)
			for i, at := range sixRows[:rows] {
				f.Op("VPBROADCASTD %s, Y%d", at, 14+i%2)
				d(f, 12, 14+i%2, vectors*i+v)
				d(f, 13, 14+i%2, vectors*i+v+1)
			}
		}
		f.Op("ADDQ R12, SI")
	}
	for i := range rows {
		f.Op("VPBROADCASTD %d(BX), Y12", 4*i)
		for v := range vectors {
			sum := vectors*i + v
			f.Op("VPADDD %d(R13), Y12, Y13", 32*v)
			f.Op("VCVTDQ2PS Y%d, Y%d", sum, sum)
			f.Op("VMOVUPS %d(DX), Y14", 32*v)
			f.Op("VFMADD231PS Y%d, Y13, Y14", sum)
			f.Op("VMOVUPS Y14, %d(DX)", 32*v)
		}
		f.Op("ADDQ R11, DX")
	}
}
