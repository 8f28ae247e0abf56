package main

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	tileSignature = "(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr, count int, step uintptr, side *sideCopy, from, to *float32)"
	tileBytes     = 104
)

// A tile is the inner loop of a product on amd64: rows of A by vectors of B, with the tile of C in
// registers. It reads A in place, one broadcast for each row and k, and B from a packed panel.
type tile struct {
	name     string
	rows     int // at most 8
	vectors  int
	register string // Y or Z
	bytes    int    // size of a register
	count    int    // number of registers
	side     []move // that copy a piece of a sideCopy, through registers of broadcasts; nil: never
}

var tilesAMD64 = []tile{
	{"tileAVX512", 8, 2, "Z", 64, 32, []move{{"VMOVUPS", "Y18", 8}}},
	{"tileAVX2", 6, 2, "Y", 32, 16, []move{{"VMOVUPS", "X14", 4}, {"VMOVSD", "X15", 2}}},
	{"rowAVX512", 1, 2, "Z", 64, 32, nil},
	{"rowAVX2", 1, 2, "Y", 32, 16, nil},
}

// firstAhead is how many bytes ahead the first tile of a column prefetches its panel, a page. The
// panel may come from memory, as weights do where few tokens are read: without it a tile of 8 rows
// waits for more than half of its time. To prefetch beyond the panel's end does no harm.
const firstAhead = 4096

func (t tile) reg(i int) string { return fmt.Sprintf("%s%d", t.register, i) }

// rowAddresses are the addresses of A's rows at the current k. R10 holds 1, R11 3, R12 5 and R13 7
// times the row stride.
var rowAddresses = []string{"(SI)", "(SI)(R10*1)", "(SI)(R10*2)", "(SI)(R11*1)", "(SI)(R10*4)", "(SI)(R12*1)", "(SI)(R11*2)", "(SI)(R13*1)"}

func (t tile) write(a *assembly) {
	a.Function(t.name, tileSignature, tileBytes, fmt.Sprintf("computes a column of tiles of %d rows and %d columns; see tilePlain.", t.rows, t.vectors*t.bytes/4))
	for _, load := range []string{"rs+16(FP), R10", "cs+24(FP), R9", "c+40(FP), DX", "ldc+48(FP), R8", "count+64(FP), R15"} {
		a.Op("MOVQ %s", load)
	}
	a.Op("LEAQ (R10)(R10*2), R11")
	a.Op("LEAQ (R10)(R10*4), R12")
	a.Op("LEAQ (R11)(R10*4), R13")
	a.Label(t.name + "Tile")
	a.Op("MOVQ kc+0(FP), CX")
	a.Op("MOVQ a+8(FP), SI")
	a.Op("MOVQ b+32(FP), DI")
	t.begin(a)
	if t.side != nil {
		t.multiplyAndCopy(a)
	}
	a.Label(t.name + "Whole")
	a.Op("CMPQ R15, count+64(FP)")
	a.Op("JNE %sLoop", t.name)
	a.Label(t.name + "First")
	for line := 0; line < t.vectors*t.bytes; line += 64 {
		a.Op("PREFETCHT1 %d(DI)", firstAhead+line)
	}
	t.multiply(a)
	a.Op("DECQ CX")
	a.Op("JNE %sFirst", t.name)
	a.Op("JMP %sStore", t.name)
	a.Label(t.name + "Loop")
	t.multiply(a)
	a.Op("DECQ CX")
	a.Op("JNE %sLoop", t.name)
	a.Label(t.name + "Store")
	for r := range t.rows {
		for v := range t.vectors {
			a.Op("VMOVUPS %s, %d(DX)", t.reg(r*t.vectors+v), v*t.bytes)
		}
		a.Op("ADDQ R8, DX")
	}
	a.Op("MOVQ step+72(FP), AX")
	a.Op("ADDQ AX, a+8(FP)")
	a.Op("DECQ R15")
	a.Op("JNZ %sTile", t.name)
	a.Op("VZEROUPPER")
	a.Op("RET")
}

// multiplyAndCopy writes a loop that multiplies, and copies a piece of a sideCopy now and then.
func (t tile) multiplyAndCopy(a *assembly) {
	a.Op("CMPQ side+80(FP), $0")
	a.Op("JEQ %sWhole", t.name)
	a.Label(t.name + "Side")
	a.Op("CMPQ CX, $%d", sideEvery)
	a.Op("JLE %sLoop", t.name)
	a.Op("SUBQ $%d, CX", sideEvery)
	a.Op("MOVQ $%d, AX", sideEvery)
	a.Label(t.name + "Few")
	t.multiply(a)
	a.Op("DECQ AX")
	a.Op("JNE %sFew", t.name)
	t.copyPiece(a)
	a.Op("JMP %sSide", t.name)
}

// multiply adds the products of one column of A and one row of B.
func (t tile) multiply(a *assembly) {
	n := t.rows * t.vectors
	for v := range t.vectors {
		a.Op("VMOVUPS %d(DI), %s", v*t.bytes, t.reg(n+v))
	}
	broadcasts := t.count - n - t.vectors
	for r := range t.rows {
		x := t.reg(n + t.vectors + r%broadcasts)
		a.Op("VBROADCASTSS %s, %s", rowAddresses[r], x)
		for v := range t.vectors {
			a.Op("VFMADD231PS %s, %s, %s", t.reg(n+v), x, t.reg(r*t.vectors+v))
		}
	}
	a.Op("ADDQ $%d, DI", t.vectors*t.bytes)
	a.Op("ADDQ R9, SI")
}

// sideEvery is the number of k between two pieces of a sideCopy: small enough to finish when a
// block of A has been multiplied by 256 columns.
const sideEvery = 8

// copyPiece writes code that copies the next piece of a sideCopy, if any. The piece was prefetched
// long before, and multiplications continue meanwhile.
func (t tile) copyPiece(a *assembly) {
	field := func(name string) string { return fmt.Sprintf("%d(AX)", 8*slices.Index(sideFields, name)) }
	a.Op("MOVQ side+80(FP), AX")
	a.Op("CMPQ %s, $0", field("rows"))
	a.Op("JEQ %sSide", t.name)
	a.Op("MOVQ %s, R14", field("source"))
	a.Op("MOVQ %s, BX", field("target"))
	a.Op("ADDQ from+88(FP), R14")
	a.Op("ADDQ to+96(FP), BX")
	at := 0
	for _, m := range t.side {
		a.Op("%s %d(R14), %s", m.instruction, at, m.register)
		a.Op("%s %s, %d(BX)", m.instruction, m.register, at)
		at += 4 * m.floats
	}
	a.Op("ADDQ %s, R14", field("ahead"))
	a.Op("PREFETCHT0 (R14)")
	a.Op("MOVQ %s, BX", field("panel"))
	a.Op("ADDQ $%d, %s", at, field("source"))
	a.Op("ADDQ BX, %s", field("target"))
	a.Op("DECQ %s", field("left"))
	a.Op("JNE %sSide", t.name)
	for _, add := range [][2]string{{"nextSource", "source"}, {"nextTarget", "target"}, {"panels", "left"}} {
		a.Op("MOVQ %s, BX", field(add[0]))
		a.Op("ADDQ BX, %s", field(add[1]))
	}
	a.Op("DECQ %s", field("rows"))
}

// sideFields are the fields of package exact's sideCopy, in order.
var sideFields = []string{"source", "target", "ahead", "panel", "left", "panels", "nextSource", "nextTarget", "rows"}

// begin writes code that loads the tile of C, or sets it to +0, and prefetches the next one,
// because processors do not predict the jumps from row to row.
func (t tile) begin(a *assembly) {
	a.Op("MOVQ DX, AX")
	a.Op("CMPQ acc+56(FP), $0")
	a.Op("JEQ %sZero", t.name)
	for r := range t.rows {
		for v := range t.vectors {
			a.Op("VMOVUPS %d(AX), %s", v*t.bytes, t.reg(r*t.vectors+v))
		}
		a.Op("ADDQ R8, AX")
	}
	a.Op("JMP %sNext", t.name)
	a.Label(t.name + "Zero")
	for i := range t.rows * t.vectors {
		a.Op("VXORPS %s, %s, %s", t.reg(i), t.reg(i), t.reg(i))
	}
	for rows := t.rows; rows > 0; {
		step := 1 << (bits.Len(uint(rows)) - 1) // a power of two, at most 8
		a.Op("LEAQ (AX)(R8*%d), AX", step)
		rows -= step
	}
	a.Label(t.name + "Next")
	for range t.rows {
		for line := 0; line < t.vectors*t.bytes; line += 64 {
			a.Op("PREFETCHT0 %d(AX)", line)
		}
		a.Op("ADDQ R8, AX")
	}
}

// tileNEON writes the tile for arm64: 4 rows by 4 vectors of 4.
func tileNEON(a *assembly) {
	a.Function("tileNEON", tileSignature, tileBytes, "computes a column of tiles of 4 rows and 16 columns; see tilePlain.")
	for i, name := range []string{"kc", "a", "rs", "cs", "b", "c", "ldc", "acc"} {
		a.Op("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	a.Op("MOVD count+64(FP), R12")
	a.Op("MOVD R0, R13")
	a.Op("MOVD R1, R14")
	a.Op("MOVD R4, R15")
	a.Label("tileNEONTile")
	a.Op("MOVD R13, R0")
	a.Op("MOVD R14, R1")
	a.Op("MOVD R15, R4")
	a.Op("ADD R1, R2, R8")
	a.Op("ADD R8, R2, R9")
	a.Op("ADD R9, R2, R10")
	a.Op("MOVD R5, R11")
	for i := range 16 {
		a.Op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	a.Op("CBZ R7, tileNEONLoop")
	row := func(r int) string {
		return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", 4*r, 4*r+1, 4*r+2, 4*r+3)
	}
	for r := range 4 {
		a.Op("VLD1 (R11), %s", row(r))
		a.Op("ADD R6, R11, R11")
	}
	a.Label("tileNEONLoop")
	a.Op("VLD1.P 64(R4), %s", row(4))
	for r, x := range []string{"R1", "R8", "R9", "R10"} {
		a.Op("VLD1R (%s), [V%d.S4]", x, 20+r)
		a.Op("ADD R3, %s, %s", x, x)
		for v := range 4 {
			a.Op("VFMLA V%d.S4, V%d.S4, V%d.S4", 16+v, 20+r, 4*r+v)
		}
	}
	a.Op("SUBS $1, R0, R0")
	a.Op("BNE tileNEONLoop")
	for r := range 4 {
		a.Op("VST1 %s, (R5)", row(r))
		a.Op("ADD R6, R5, R5")
	}
	a.Op("MOVD step+72(FP), R11")
	a.Op("ADD R11, R14, R14")
	a.Op("SUBS $1, R12, R12")
	a.Op("BNE tileNEONTile")
	a.Op("RET")
}
