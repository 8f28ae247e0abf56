package main

import (
	"fmt"
	"math/bits"
)

// packersNEON move 8 floats through a pair of registers, or 4 through one.
var packersNEON = []packer{
	{"packRows16", []move{{"FLDPQ", "(F0, F1)", 8}, {"FLDPQ", "(F2, F3)", 8}}, 16, 2},
	{"packRows4", []move{{"FMOVQ", "F0", 4}}, 4, 8},
}

// storesNEON maps each load instruction to its store.
var storesNEON = map[string]string{"FLDPQ": "FSTPQ", "FMOVQ": "FMOVQ"}

// packingNEON loads the parameters of a packing function to R0 to R5.
func packingNEON(a *assembly, names ...string) {
	for i, name := range names {
		a.Op("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
}

// writeNEON is write for arm64.
func (k packer) writeNEON(a *assembly) {
	a.Function(k.name, packSignature, 48, k.doc())
	packingNEON(a, "rows", "panels", "dst", "panel", "src", "stride")
	a.Label(k.name + "Row")
	a.Op("MOVD R1, R6")
	a.Op("MOVD R4, R7")
	a.Op("MOVD R2, R8")
	a.Op("ADD R5<<%d, R4, R9", bits.Len(uint(k.ahead))-1)
	a.Label(k.name + "Panel")
	a.Op("PRFM (R9), PLDL1KEEP")
	at := 0
	for _, m := range k.moves {
		a.Op("%s %d(R7), %s", m.instruction, at, m.register)
		at += 4 * m.floats
	}
	at = 0
	for _, m := range k.moves {
		a.Op("%s %s, %d(R8)", storesNEON[m.instruction], m.register, at)
		at += 4 * m.floats
	}
	a.Op("ADD $%d, R7", at)
	a.Op("ADD $%d, R9", at)
	a.Op("ADD R3, R8")
	a.Op("SUBS $1, R6")
	a.Op("BNE %sPanel", k.name)
	a.Op("ADD R5, R4")
	a.Op("ADD $%d, R2", at)
	a.Op("SUBS $1, R0")
	a.Op("BNE %sRow", k.name)
	a.Op("RET")
}

// packColumnsNEON packs columns into one panel, 4 columns and 16 rows at a time. That uses up one
// cache line of each column at once, and four lines a power of two apart fit into a 4-way cache.
func packColumnsNEON(a *assembly) {
	const name = "packColumnsNEON"
	a.Function(name, packColumnsSignature, 48, packColumnsDoc)
	packingNEON(a, "depth", "squares", "dst", "wide", "src", "stride")
	a.Op("LSL $1, R1") // groups of 4 columns
	a.Label(name + "Deep")
	a.Op("CMP $16, R0")
	a.Op("BLT %sRest", name)
	packGroups(a, name+"Four", 4)
	a.Op("ADD $64, R4")
	a.Op("ADD R3<<4, R2")
	a.Op("SUB $16, R0")
	a.Op("B %sDeep", name)
	a.Label(name + "Rest")
	a.Op("CBZ R0, %sEnd", name)
	packGroups(a, name+"Two", 2)
	a.Label(name + "End")
	a.Op("RET")
}

// packGroups writes a loop over R1 groups of 4 columns. Each iteration transposes count squares of
// 4 by 4 below each other.
func packGroups(a *assembly, name string, count int) {
	a.Op("MOVD R1, R6")
	a.Op("MOVD R4, R7")
	a.Op("MOVD R2, R8")
	a.Label(name)
	for column := range 4 {
		list := ""
		for square := range count {
			list += fmt.Sprintf(", V%d.S4", 4*column+square)
		}
		a.Op("VLD1 (R7), [%s]", list[2:])
		a.Op("ADD R5, R7")
	}
	a.Op("MOVD R8, R9")
	for square := range count {
		transposeNEON(a, square, square+4, square+8, square+12)
		for row := range 4 {
			a.Op("FMOVQ F%d, (R9)", 20+row)
			a.Op("ADD R3, R9")
		}
	}
	a.Op("ADD $16, R8")
	a.Op("SUBS $1, R6")
	a.Op("BNE %s", name)
}

// transposeNEON sets V20 to V23 to the rows of the square with the given columns: first pairs of
// every other row, then all four elements of each row.
func transposeNEON(a *assembly, c0, c1, c2, c3 int) {
	for i, pair := range [][2]int{{c0, c1}, {c2, c3}} {
		for odd := range 2 {
			a.Op("VTRN%d V%d.S4, V%d.S4, V%d.S4", 1+odd, pair[1], pair[0], 16+2*i+odd)
		}
	}
	for row := range 4 {
		a.Op("VTRN%d V%d.D2, V%d.D2, V%d.D2", 1+row/2, 18+row%2, 16+row%2, 20+row)
	}
}
