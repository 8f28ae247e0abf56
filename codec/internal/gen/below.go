package main

import "fmt"

// below writes the function that finds the largest cell not above each of eight numbers of so many words, and takes it from them. It is for
// AVX-512 alone: it gathers cells for all numbers at a time.
//
// Vectors 0 to 3 are the numbers, 5 the positions, 10 to 13 the cells there, 14 to 17 the cells after them.
func below(a *assembly, words int) {
	name := fmt.Sprintf("below%dAVX512", words)
	a.function(name, "(rest, cells *uint64, guide *uint32, lead uint, positions *uint16)", 40, "takes cells from eight numbers and tells which.")
	a.op("MOVQ rest+0(FP), SI")
	a.op("MOVQ cells+8(FP), R8")
	a.op("MOVQ guide+16(FP), R9")
	a.op("MOVQ lead+24(FP), CX")
	a.op("MOVQ positions+32(FP), DI")
	for i := range words {
		a.op("VMOVDQU64 %d(SI), Z%d", 64*i, i)
	}
	a.piece(words)
	a.op("KXNORB K1, K1, K1")
	a.op("VPGATHERQQ (R9)(Z5*4), K1, Z7") // a value and the next
	a.op("VPSRLQ $32, Z7, Z8")
	a.op("VPSUBD Z7, Z8, Z8")
	a.op("VPMULUDQ Z6, Z8, Z8")
	a.op("VPSRLQ $16, Z8, Z8")
	a.op("VPSLLQ $32, Z7, Z7")
	a.op("VPSRLQ $32, Z7, Z7")
	a.op("VPADDQ Z7, Z8, Z5")
	a.op("VPSRLQ $16, Z5, Z5")
	a.op("VPSLLQ $%d, Z5, Z6", map[int]int{1: 0, 2: 1, 4: 2}[words])
	for i := range words {
		a.op("KXNORB K1, K1, K1")
		a.op("KXNORB K2, K2, K2")
		a.op("VPGATHERQQ %d(R8)(Z6*8), K1, Z%d", 8*(words+i), 14+i)
		a.op("VPGATHERQQ %d(R8)(Z6*8), K2, Z%d", 8*i, 10+i)
	}
	for i := range words { // K1: whether the number is below the cell after
		a.borrow(i, 14+i)
	}
	a.op("KNOTB K1, K3")
	for i := range words {
		a.op("VMOVDQA64 Z%d, K3, Z%d", 14+i, 10+i)
	}
	a.op("VPTERNLOGD $0xff, Z9, Z9, Z9")
	a.op("VPSUBQ Z9, Z5, K3, Z5") // less -1
	a.op("VPMOVQW Z5, (DI)")
	for i := range words {
		a.op("VPSUBQ Z%d, Z%d, Z18", 10+i, i)
		if i > 0 {
			a.op("VPADDQ Z9, Z18, K1, Z18")
		}
		a.borrow(i, 10+i)
		a.op("VMOVDQU64 Z18, %d(SI)", 64*i)
	}
	a.end()
}

// piece sets vector 5 to the numbers' piece of the guide and 6 to the 16 bits that follow. Both are in a number as binary64, whose exponent is its
// length and whose fraction the bits after the highest, cut off and not rounded.
func (a *assembly) piece(words int) {
	a.op("VCVTUQQ2PD.RZ_SAE Z%d, Z4", words-1)
	if words > 1 {
		a.op("MOVQ $0x43f0000000000000, AX") // 2^64
		a.op("VPBROADCASTQ AX, Z9")
	}
	for i := words - 2; i >= 0; i-- {
		a.op("VCVTUQQ2PD.RZ_SAE Z%d, Z5", i)
		a.op("VFMADD213PD.RZ_SAE Z5, Z9, Z4")
	}
	a.op("MOVQ $1022, AX") // the exponent of a number of length 0
	a.op("SHLQ CX, AX")
	a.op("VPBROADCASTQ AX, Z9")
	a.op("ADDQ $12, CX")
	a.op("VMOVQ CX, X6")
	a.op("VPSLLQ X6, Z4, Z6")
	a.op("VPSRLQ $48, Z6, Z6")
	a.op("NEGQ CX")
	a.op("ADDQ $64, CX")
	a.op("VMOVQ CX, X5")
	a.op("VPSRLQ X5, Z4, Z5")
	a.op("VPSUBQ Z9, Z5, Z5")
	a.op("VPXORD Z9, Z9, Z9")
	a.op("VPMAXSQ Z9, Z5, Z5") // zero has exponent 0
}

// borrow goes on with the comparison of the numbers, from their lowest word: it sets K1 to whether what was compared so far is below.
func (a *assembly) borrow(i, cell int) {
	if i == 0 {
		a.op("VPCMPUQ $1, Z%d, Z%d, K1", cell, i)
		return
	}
	a.op("VPCMPUQ $0, Z%d, Z%d, K1, K1", cell, i)
	a.op("VPCMPUQ $1, Z%d, Z%d, K2", cell, i)
	a.op("KORB K1, K2, K1")
}
