package main

import "fmt"

// groupBytes is the size of a vec.Group: vectors of the numbers' words, and from groupPlaces on the
// places of their cells.
const (
	groupBytes  = 6 * 64
	groupPlaces = 5 * 64
)

// below writes the function that finds the largest cell not above each of eight numbers in each
// group, and subtracts it. It needs AVX-512, which has eight numbers in the lanes of a vector.
//
// Processors cannot predict where the cells are, and the cells do not fit into the first cache. So
// the function makes two passes over the groups: the first prefetches all cells, the second uses
// them.
func below(a *assembly, words int) {
	name := fmt.Sprintf("below%dAVX512", words)
	a.function(name, "(groups int, rest, cells *uint64, guide *uint32, lead uint, positions *uint16)", 48, "subtracts cells from eight numbers a group; see Kernel.Below.")
	a.op("MOVQ cells+16(FP), R8")
	a.op("MOVQ guide+24(FP), R9")
	a.pieceConstants()
	a.eachGroup(name+"Ask", func() {
		a.piece(words)
		a.place(words)
	})
	a.op("VPTERNLOGD $0xff, Z9, Z9, Z9")
	a.eachGroup(name+"Take", func() { a.take(words) })
	a.end()
}

// eachGroup writes a loop over the groups, with SI at the group and DI at its positions.
func (a *assembly) eachGroup(name string, body func()) {
	a.op("MOVQ groups+0(FP), R10")
	a.op("MOVQ rest+8(FP), SI")
	a.op("MOVQ positions+40(FP), DI")
	a.label(name)
	body()
	a.op("ADDQ $%d, SI", groupBytes)
	a.op("ADDQ $16, DI")
	a.op("DECQ R10")
	a.op("JNZ %s", name)
}

// pieceConstants sets the constants of piece, vectors 16 to 20.
func (a *assembly) pieceConstants() {
	a.op("MOVQ lead+32(FP), CX")
	a.op("MOVQ $0x43f0000000000000, AX") // 2^64
	a.op("VPBROADCASTQ AX, Z16")
	a.op("MOVQ $1022, AX") // the exponent of a number of length 0
	a.op("SHLQ CX, AX")
	a.op("VPBROADCASTQ AX, Z17")
	a.op("ADDQ $12, CX")
	a.op("VMOVQ CX, X18")
	a.op("NEGQ CX")
	a.op("ADDQ $64, CX")
	a.op("VMOVQ CX, X19")
	a.op("VPXORD Z20, Z20, Z20")
}

// piece sets vector 5 to the numbers' pieces of the guide, and 6 to the 16 bits that follow. Both
// come from the number as a binary64, whose exponent is its length and whose fraction the bits
// after the highest, truncated.
func (a *assembly) piece(words int) {
	for i := words - 1; i >= 0; i-- {
		a.op("VMOVDQU64 %d(SI), Z%d", 64*i, i)
		if i == words-1 {
			a.op("VCVTUQQ2PD.RZ_SAE Z%d, Z4", i)
			continue
		}
		a.op("VCVTUQQ2PD.RZ_SAE Z%d, Z5", i)
		a.op("VFMADD213PD.RZ_SAE Z5, Z16, Z4")
	}
	a.op("VPSLLQ X18, Z4, Z6")
	a.op("VPSRLQ $48, Z6, Z6")
	a.op("VPSRLQ X19, Z4, Z5")
	a.op("VPSUBQ Z17, Z5, Z5")
	a.op("VPMAXSQ Z20, Z5, Z5") // zero has exponent 0
}

// place stores which cell the guide names and its offset in words, and prefetches it and the next
// cell.
func (a *assembly) place(words int) {
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
	a.op("VPMOVQW Z5, (DI)")
	switch words {
	case 2, 4:
		a.op("VPSLLQ $%d, Z5, Z5", words/2)
	case 5:
		a.op("VPSLLQ $2, Z5, Z7")
		a.op("VPADDQ Z7, Z5, Z5")
	}
	a.op("VMOVDQU64 Z5, %d(SI)", groupPlaces)
	if words == 1 {
		return // the cells are few and already in the cache
	}
	for n := range 8 {
		a.op("MOVQ %d(SI), AX", groupPlaces+8*n)
		a.op("PREFETCHT0 (R8)(AX*8)")
		a.op("PREFETCHT0 %d(R8)(AX*8)", 8*(2*words-1))
	}
}

// take subtracts the cells. Vectors 0 to 4 are the numbers, those from 10 on the cells at the
// group's places, followed by the cells after them; 9 is all ones.
func (a *assembly) take(words int) {
	after := 10 + words
	for i := range words {
		a.op("VMOVDQU64 %d(SI), Z%d", 64*i, i)
	}
	switch words {
	case 1:
		a.op("VMOVDQU64 %d(SI), Z6", groupPlaces)
		a.op("KXNORB K1, K1, K1")
		a.op("KXNORB K2, K2, K2")
		a.op("VPGATHERQQ 8(R8)(Z6*8), K1, Z11")
		a.op("VPGATHERQQ (R8)(Z6*8), K2, Z10")
	case 2:
		a.cells2()
	case 4:
		a.cells(0, []int{10, 11, 12, 13, 14, 15, 16, 17})
	case 5:
		a.cells(0, []int{10, 11, 12, 13, 14})
		a.cells(8*words, []int{15, 16, 17, 18, 19})
	}
	for i := range words { // K1: the number is below the next cell
		a.borrow(i, after+i)
	}
	a.op("KNOTB K1, K3")
	for i := range words {
		a.op("VMOVDQA64 Z%d, K3, Z%d", after+i, 10+i)
	}
	a.op("VPMOVZXWQ (DI), Z5")
	a.op("VPSUBQ Z9, Z5, K3, Z5") // less -1
	a.op("VPMOVQW Z5, (DI)")
	for i := range words {
		a.op("VPSUBQ Z%d, Z%d, Z7", 10+i, i)
		if i > 0 {
			a.op("VPADDQ Z9, Z7, K1, Z7")
		}
		a.borrow(i, 10+i)
		a.op("VMOVDQU64 Z7, %d(SI)", 64*i)
	}
}

// cells2 sets vectors 10 to 13 to the words of the cells of two words at the group's places and of
// the cells after them. The two are adjacent: one load for each number and a transposition cost
// less than a gather for each word.
func (a *assembly) cells2() {
	for i, n := range []int{0, 1, 4, 5} { // each with the number two after it
		a.op("MOVQ %d(SI), AX", groupPlaces+8*n)
		a.op("MOVQ %d(SI), DX", groupPlaces+8*n+16)
		a.op("VMOVDQU64 (R8)(AX*8), Y%d", 20+i)
		a.op("VINSERTI64X4 $1, (R8)(DX*8), Z%d, Z%d", 20+i, 20+i)
	}
	for word, unpack := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		a.op("%s Z21, Z20, Z24", unpack)
		a.op("%s Z23, Z22, Z25", unpack)
		a.op("VSHUFI64X2 $0x88, Z25, Z24, Z%d", 10+word)
		a.op("VSHUFI64X2 $0xdd, Z25, Z24, Z%d", 12+word)
	}
}

// cells loads the eight words at the given byte offset from each of the group's places, and sets
// the given vectors to the first words, the second words, and so on.
func (a *assembly) cells(offset int, to []int) {
	for n := range 8 {
		register := []string{"AX", "DX"}[n%2]
		a.op("MOVQ %d(SI), %s", groupPlaces+8*n, register)
		a.op("VMOVDQU64 %d(R8)(%s*8), Z%d", offset, register, 20+n)
	}
	for odd, unpack := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		for pair := range 4 { // of numbers: words 0, 2, 4 and 6, or 1, 3, 5 and 7, of both
			a.op("%s Z%d, Z%d, Z%d", unpack, 21+2*pair, 20+2*pair, 28+pair)
		}
		for word := odd; word < 4; word += 2 { // and that four after it
			lanes := []string{"$0x88", "$0xdd"}[word/2]
			a.op("VSHUFI64X2 %s, Z29, Z28, Z7", lanes)
			a.op("VSHUFI64X2 %s, Z31, Z30, Z8", lanes)
			a.op("VSHUFI64X2 $0x88, Z8, Z7, Z%d", to[word])
			if word+4 < len(to) {
				a.op("VSHUFI64X2 $0xdd, Z8, Z7, Z%d", to[word+4])
			}
		}
	}
}

// borrow continues the comparison of the numbers from their lowest word: it sets K1 where the words
// so far are below.
func (a *assembly) borrow(i, cell int) {
	if i == 0 {
		a.op("VPCMPUQ $1, Z%d, Z%d, K1", cell, i)
		return
	}
	a.op("VPCMPUQ $0, Z%d, Z%d, K1, K1", cell, i)
	a.op("VPCMPUQ $1, Z%d, Z%d, K2", cell, i)
	a.op("KORB K1, K2, K1")
}
