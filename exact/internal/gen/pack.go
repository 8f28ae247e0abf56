package main

import "fmt"

const (
	packSignature        = "(rows, panels int, dst *float32, panel uintptr, src *float32, stride uintptr)"
	packColumnsSignature = "(depth, squares int, dst *float32, wide uintptr, src *float32, stride uintptr)"
	packColumnsDoc       = "copies 8·squares columns of depth floats to a panel, depth being a multiple of 8; see packPanel."
)

// A packer copies rows to panels, each panel row after row. It traverses the matrix along its rows,
// the fastest way to read memory, and prefetches rows that it will need later, which are on other
// pages and which processors do not predict.
type packer struct {
	name  string
	moves []move // that copy one row of a panel
	width int    // floats in a row of a panel
	ahead int    // rows to prefetch ahead: 2 or 8
}

// A move is an instruction that copies floats through a register.
type move struct {
	instruction, register string
	floats                int
}

var packersAMD64 = []packer{
	{"packRows32", []move{{"VMOVUPS", "Z0", 16}, {"VMOVUPS", "Z1", 16}}, 32, 2},
	{"packRows16", []move{{"VMOVUPS", "Y0", 8}, {"VMOVUPS", "Y1", 8}}, 16, 2},
	{"packRows8", []move{{"VMOVUPS", "Y0", 8}}, 8, 8},
	{"packRows6", []move{{"VMOVUPS", "X0", 4}, {"VMOVSD", "X1", 2}}, 6, 8},
}

func (k packer) doc() string {
	return fmt.Sprintf("copies rows to panels of %d columns; see packPanel.", k.width)
}

func (k packer) write(a *assembly) {
	a.Function(k.name, packSignature, 48, k.doc())
	for i, r := range []string{"CX", "R11", "DI", "R8", "SI", "R9"} {
		a.Op("MOVQ %s+%d(FP), %s", []string{"rows", "panels", "dst", "panel", "src", "stride"}[i], 8*i, r)
	}
	a.Label(k.name + "Row")
	a.Op("MOVQ R11, R10")
	a.Op("MOVQ SI, AX")
	a.Op("MOVQ DI, BX")
	a.Label(k.name + "Panel")
	for line := 0; line < 4*k.width; line += 64 {
		a.Op("PREFETCHT0 %d(AX)(R9*%d)", line, k.ahead)
	}
	at := 0
	for _, m := range k.moves {
		a.Op("%s %d(AX), %s", m.instruction, at, m.register)
		at += 4 * m.floats
	}
	at = 0
	for _, m := range k.moves {
		a.Op("%s %s, %d(BX)", m.instruction, m.register, at)
		at += 4 * m.floats
	}
	a.Op("ADDQ $%d, AX", at)
	a.Op("ADDQ R8, BX")
	a.Op("DECQ R10")
	a.Op("JNZ %sPanel", k.name)
	a.Op("ADDQ R9, SI")
	a.Op("ADDQ $%d, DI", at)
	a.Op("DECQ CX")
	a.Op("JNZ %sRow", k.name)
	a.Op("VZEROUPPER")
	a.Op("RET")
}

// packColumnsAVX2 packs columns into one panel by transposing squares of 8 by 8 in registers: pairs
// within lanes, quadruples within lanes, then the two lanes. It takes two squares below each other
// at a time, which together use up the cache lines they read.
func packColumnsAVX2(a *assembly) {
	const name = "packColumnsAVX2"
	a.Function(name, packColumnsSignature, 48, packColumnsDoc)
	for i, r := range []string{"CX", "R11", "DI", "R8", "SI", "R9"} {
		a.Op("MOVQ %s+%d(FP), %s", []string{"depth", "squares", "dst", "wide", "src", "stride"}[i], 8*i, r)
	}
	a.Op("LEAQ (R9)(R9*2), R12") // 3, 5 and 7 columns
	a.Op("LEAQ (R9)(R9*4), R13")
	a.Op("LEAQ (R12)(R9*4), R15")
	a.Label(name + "Deep")
	a.Op("CMPQ CX, $16")
	a.Op("JLT %sRest", name)
	packSquares(a, name+"Two", 2)
	a.Op("ADDQ $64, SI")
	a.Op("LEAQ (DI)(R8*8), DI")
	a.Op("LEAQ (DI)(R8*8), DI")
	a.Op("SUBQ $16, CX")
	a.Op("JMP %sDeep", name)
	a.Label(name + "Rest")
	a.Op("TESTQ CX, CX")
	a.Op("JEQ %sEnd", name)
	packSquares(a, name+"One", 1)
	a.Label(name + "End")
	a.Op("VZEROUPPER")
	a.Op("RET")
}

// packSquares writes a loop over R11 columns of count squares.
func packSquares(a *assembly, name string, count int) {
	columns := []string{"(AX)", "(AX)(R9*1)", "(AX)(R9*2)", "(AX)(R12*1)", "(AX)(R9*4)", "(AX)(R13*1)", "(AX)(R12*2)", "(AX)(R15*1)"}
	a.Op("MOVQ R11, R10")
	a.Op("MOVQ SI, AX")
	a.Op("MOVQ DI, BX")
	a.Label(name)
	for square := range count {
		if square == 0 && count > 1 {
			for _, c := range columns {
				a.Op("PREFETCHT0 256%s", c)
			}
		}
		for c, address := range columns {
			a.Op("VMOVUPS %d%s, Y%d", 32*square, address, c)
		}
		for r := 0; r < 8; r += 2 {
			a.Op("VUNPCKLPS Y%d, Y%d, Y%d", r+1, r, 8+r)
			a.Op("VUNPCKHPS Y%d, Y%d, Y%d", r+1, r, 9+r)
		}
		for half := 0; half < 8; half += 4 {
			for pair := range 2 {
				a.Op("VSHUFPS $0x44, Y%d, Y%d, Y%d", 8+half+pair+2, 8+half+pair, half+2*pair)
				a.Op("VSHUFPS $0xee, Y%d, Y%d, Y%d", 8+half+pair+2, 8+half+pair, half+2*pair+1)
			}
		}
		for lane, mask := range []string{"$0x20", "$0x31"} {
			for r := range 4 {
				a.Op("VPERM2F128 %s, Y%d, Y%d, Y%d", mask, 4+r, r, 8+4*lane+r)
			}
		}
		a.Op("MOVQ BX, DX")
		if square == 1 {
			a.Op("LEAQ (BX)(R8*8), DX")
		}
		for r := range 8 {
			a.Op("VMOVUPS Y%d, (DX)", 8+r)
			a.Op("ADDQ R8, DX")
		}
	}
	a.Op("ADDQ $32, BX")
	a.Op("LEAQ (AX)(R9*8), AX")
	a.Op("DECQ R10")
	a.Op("JNZ %s", name)
}
