package main

import (
	"github.com/entrain-network/entrain/internal/asm"
)

// writeI8MM writes what processors with Arm's products of matrices of bytes do otherwise than those
// with dot products: an instruction multiplies 8 bytes of two rows by those of two columns. The
// bytes of a row of A lie together, in panels too.
func writeI8MM(f *asm.File) {
	const rows, vectors = 6, 4
	tileARM(f, "tileI8MM", "is the tile kernel for products of matrices of bytes, of an A whose bytes are q; see tilePlain.", rows, vectors, func() {
		f.Op("SUB $32, R21, R21") // from the end of a block to the next
	}, func() { blockI8MM(f, rows, vectors) })
}

// blockI8MM is blockNEON. V0-V23 are the sums: two rows by two columns each, a pair of rows after
// another.
func blockI8MM(f *asm.File, rows, vectors int) {
	pairs := 2 * vectors
	for i := range rows / 2 * pairs {
		f.Op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	for s := 0; s < fours; s += 2 {
		for p := range rows / 2 {
			f.Op("FMOVD.P 8(R%d), F%d", 1+2*p, 24+p)
			f.Op("VLD1.P 8(R%d), V%d.D[1]", 2+2*p, 24+p)
		}
		for v := range vectors {
			f.Op("FMOVQ %d(R7), F27", 128*s+16*v)
			f.Op("FMOVQ %d(R7), F28", 128*(s+1)+16*v)
			f.Op("VZIP1 V28.S4, V27.S4, V29.S4")
			f.Op("VZIP2 V28.S4, V27.S4, V30.S4")
			for p := range rows / 2 {
				word(f, smmla, pairs*p+2*v, 24+p, 29)
				word(f, smmla, pairs*p+2*v+1, 24+p, 30)
			}
		}
	}
	for i := range rows {
		f.Op("ADD R21, R%[1]d, R%[1]d", 1+i)
	}
	f.Op("MOVD R8, R19")
	f.Op("MOVD R20, R10")
	for i := range rows {
		half := "VZIP1"
		if i%2 == 1 {
			half = "VZIP2"
		}
		f.Op("VLD1R.P 4(R19), [V26.S4]")
		for v := range vectors {
			sum := i/2*pairs + 2*v
			f.Op("%s V%d.D2, V%d.D2, V24.D2", half, sum+1, sum)
			f.Op("FMOVQ %d(R9), F27", 16*v)
			f.Op("VADD V27.S4, V26.S4, V27.S4")
			word(f, scvtf, 24, 24)
			f.Op("FMOVQ %d(R10), F28", 16*v)
			f.Op("VFMLA V24.S4, V27.S4, V28.S4")
			f.Op("FMOVQ F28, %d(R10)", 16*v)
		}
		f.Op("ADD R11, R10, R10")
	}
}
