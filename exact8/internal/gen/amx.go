package main

import (
	"encoding/binary"
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

const (
	amxRows  = 16 // of a tile
	amxBatch = 8  // blocks whose sums a tile's kernel keeps in scratch memory
)

// Tiles of AMX: the sums of a block, its bytes of A, and its bytes of B.
const (
	tmmSums = iota
	tmmA
	tmmB
)

// Registers as their instructions number them.
const (
	dx, si, di       = 2, 6, 7
	r8, r9, r10, r15 = 8, 9, 10, 15
)

// Prefixes of AMX's instructions.
const prefixNone, prefixF3, prefixF2 = 0, 2, 3

// amx writes an instruction of AMX, which Go's assembler does not know, by its bits, with its text
// as a comment; a test compares the two. Extended says which of the operands' registers are R8 to
// R15, v is the third tile.
func amx(f *asm.File, text string, prefix, v int, extended, opcode byte, operands ...byte) {
	bits := append([]byte{0xc4, 0xe2 ^ extended, byte(15-v)<<3 | byte(prefix), opcode}, operands...)
	line := ""
	for _, x := range bits {
		line += fmt.Sprintf("BYTE $0x%02x; ", x)
	}
	f.Op("%s// %s", line, text)
}

// tileMove writes a load or a store of a tile, whose rows begin at base, stride bytes apart.
func tileMove(f *asm.File, text string, prefix, tmm, base, stride int) {
	extended := byte(stride>>3<<6 | base>>3<<5)
	amx(f, text, prefix, 0, extended, 0x4b, byte(tmm<<3|4), byte(stride&7<<3|base&7))
}

// config writes data that give each tile its rows and the bytes of a row.
func config(f *asm.File, name string, tiles [][2]int) {
	data := [64]byte{1} // palette 1
	for tmm, size := range tiles {
		data[16+2*tmm], data[48+tmm] = byte(size[1]), byte(size[0])
	}
	f.Text("\n")
	for i := 0; i < len(data); i += 8 {
		f.Text("DATA %s<>+%d(SB)/8, $%#x\n", name, i, binary.LittleEndian.Uint64(data[i:]))
	}
	f.Text("GLOBL %s<>(SB), RODATA|NOPTR, $64\n", name)
}

func configure(f *asm.File, config string) {
	f.Op("LEAQ %s<>(SB), DX", config)
	amx(f, "ldtilecfg (%rdx)", prefixNone, 0, 0, 0x49, dx)
}

func tileRelease(f *asm.File) { amx(f, "tilerelease", prefixNone, 0, 0, 0x49, 0xc0) }

func tileZero(f *asm.File, tmm int) {
	amx(f, fmt.Sprintf("tilezero %%tmm%d", tmm), prefixF2, 0, 0, 0x49, 0xc0|byte(tmm)<<3)
}

// tileDot adds to sums the products of tiles a and b of signed bytes.
func tileDot(f *asm.File, b, a, sums int) {
	amx(f, fmt.Sprintf("tdpbssd %%tmm%d, %%tmm%d, %%tmm%d", b, a, sums), prefixF2, b, 0, 0x5e, 0xc0|byte(sums)<<3|byte(a))
}

// writeAMX writes the kernels for AMX. Both operands of TDPBSSD are signed.
func writeAMX(f *asm.File) {
	tileAMX(f, "tileAMX", "is the tile kernel for AMX; see tilePlain.", amxRows)
	tileAMX(f, "rowAMX", "is tileAMX for a tile of one row.", 1)
	quantizeLeft(f, "quantizeLeftAMX", true)
}

// tileAMX computes a tile in two groups of 16 columns, one group after the other. Tiles of AMX
// reach vectors through memory only, and a load of what was just stored waits for the store. So
// the sums of a batch of blocks go to scratch memory, and are scaled and added afterwards. The
// group's part of C stays in Z0-Z15.
func tileAMX(f *asm.File, name, doc string, rows int) {
	config(f, name+"Config", [][2]int{tmmSums: {rows, 64}, tmmA: {rows, 32}, tmmB: {fours, 64}})
	f.Function(name, "(t *tileArgs)", 8, doc)
	configure(f, name+"Config")
	f.Op("MOVQ t+0(FP), AX")
	f.Op("MOVQ %d(AX), R8", argRowStep)
	f.Op("MOVQ $128, R9")
	f.Op("MOVQ $64, R10")
	f.Op("MOVQ %d(AX), R11", argLDC)
	f.Op("MOVQ %d(AX), R12", argBlockStep)
	f.Label("tile")
	f.Op("XORQ R14, R14") // bytes of the group among the columns
	f.Label("group")
	f.Op("MOVQ %d(AX), SI", argA)
	address(f, argB, "DI")
	f.Op("MOVQ %d(AX), BX", argScaleA)
	address(f, argScaleB, "R13")
	f.Op("MOVQ %d(AX), CX", argBlocks)
	address(f, argC, "DX")
	beginAMX(f, rows)
	f.Label("batch")
	batchAMX(f, rows)
	f.Op("TESTQ CX, CX")
	f.Op("JNE batch")
	address(f, argC, "DX")
	for i := range rows {
		f.Op("VMOVUPS Z%d, (DX)", i)
		f.Op("ADDQ R11, DX")
	}
	f.Op("ADDQ $64, R14")
	f.Op("CMPQ R14, $128")
	f.Op("JNE group")
	f.Op("SUBQ $64, DX")
	f.Op("MOVQ DX, %d(AX)", argC)
	f.Op("MOVQ %d(AX), DX", argTileStep)
	f.Op("ADDQ DX, %d(AX)", argA)
	f.Op("ADDQ $%d, %d(AX)", 4*rows, argScaleA)
	f.Op("DECQ %d(AX)", argCount)
	f.Op("JNE tile")
	tileRelease(f)
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// address loads an argument, an address that moves with the group.
func address(f *asm.File, from int, register string) {
	f.Op("MOVQ %d(AX), %s", from, register)
	f.Op("ADDQ R14, %s", register)
}

// beginAMX loads or clears a group's part of C, and fetches the next tile's lines of C.
func beginAMX(f *asm.File, rows int) {
	f.Op("CMPQ %d(AX), $0", argAcc)
	f.Op("JEQ zero")
	for i := range rows {
		f.Op("VMOVUPS (DX), Z%d", i)
		f.Op("ADDQ R11, DX")
	}
	f.Op("JMP ready")
	f.Label("zero")
	for i := range rows {
		f.Op("VPXORD Z%d, Z%d, Z%d", i, i, i)
		f.Op("ADDQ R11, DX")
	}
	f.Label("ready")
	if rows > 1 {
		address(f, argNext, "R15")
		f.Op("CMPQ %d(AX), $1", argCount)
		f.Op("CMOVQEQ R15, DX")
		for range rows { // the next tile's lines of C
			f.Op("PREFETCHT0 (DX)")
			f.Op("ADDQ R11, DX")
		}
	}
}

// batchAMX multiplies a batch of blocks, and adds them to the group's part of C.
func batchAMX(f *asm.File, rows int) {
	f.Op("MOVQ $%d, DX", amxBatch)
	f.Op("CMPQ CX, DX")
	f.Op("CMOVQLT CX, DX")
	f.Op("SUBQ DX, CX")
	f.Op("MOVQ %d(AX), R15", argScratch)
	f.Label("multiply")
	tileMove(f, "tileloadd (%rsi,%r8), %tmm1", prefixF2, tmmA, si, r8)
	tileMove(f, "tileloadd (%rdi,%r9), %tmm2", prefixF2, tmmB, di, r9)
	tileZero(f, tmmSums)
	tileDot(f, tmmB, tmmA, tmmSums)
	tileMove(f, "tilestored %tmm0, (%r15,%r10)", prefixF3, tmmSums, r15, r10)
	f.Op("ADDQ R12, SI")
	f.Op("ADDQ $%d, DI", 128*fours)
	f.Op("ADDQ $%d, R15", 64*rows)
	f.Op("DECQ DX")
	f.Op("JNE multiply")
	f.Op("MOVQ %d(AX), DX", argScratch)
	f.Label("add")
	f.Op("VMOVDQU32 (R13), Z16")
	for i := range rows {
		scale, sum := 17+i%7, 24+i%8
		f.Op("VPADDD.BCST %d(BX), Z16, Z%d", 4*i, scale)
		f.Op("VCVTDQ2PS %d(DX), Z%d", 64*i, sum)
		f.Op("VFMADD231PS Z%d, Z%d, Z%d", sum, scale, i)
	}
	f.Op("ADDQ $%d, BX", 4*panelA)
	f.Op("ADDQ $128, R13")
	f.Op("ADDQ $%d, DX", 64*rows)
	f.Op("CMPQ DX, R15")
	f.Op("JNE add")
}
