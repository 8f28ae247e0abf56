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
	a.Function(name, "(groups int, rest, cells *uint64, guide *uint32, lead uint, positions *uint16)", 48, "subtracts cells from eight numbers a group; see Kernel.Below.")
	a.Op("MOVQ cells+16(FP), R8")
	a.Op("MOVQ guide+24(FP), R9")
	a.pieceConstants()
	a.eachGroup(name+"Ask", func() {
		a.piece(words)
		a.place(words)
	})
	a.Op("VPTERNLOGD $0xff, Z9, Z9, Z9")
	a.eachGroup(name+"Take", func() { a.take(words) })
	a.end()
}

// eachGroup writes a loop over the groups, with SI at the group and DI at its positions.
func (a *assembly) eachGroup(name string, body func()) {
	a.Op("MOVQ groups+0(FP), R10")
	a.Op("MOVQ rest+8(FP), SI")
	a.Op("MOVQ positions+40(FP), DI")
	a.Label(name)
	body()
	a.Op("ADDQ $%d, SI", groupBytes)
	a.Op("ADDQ $16, DI")
	a.Op("DECQ R10")
	a.Op("JNZ %s", name)
}

// pieceConstants sets the constants of piece, vectors 16 to 20.
func (a *assembly) pieceConstants() {
	a.Op("MOVQ lead+32(FP), CX")
	a.Op("MOVQ $0x43f0000000000000, AX") // 2^64
	a.Op("VPBROADCASTQ AX, Z16")
	a.Op("MOVQ $1022, AX") // the exponent of a number of length 0
	a.Op("SHLQ CX, AX")
	a.Op("VPBROADCASTQ AX, Z17")
	a.Op("ADDQ $12, CX")
	a.Op("VMOVQ CX, X18")
	a.Op("NEGQ CX")
	a.Op("ADDQ $64, CX")
	a.Op("VMOVQ CX, X19")
	a.Op("VPXORD Z20, Z20, Z20")
}

// piece sets vector 5 to the numbers' pieces of the guide, and 6 to the 16 bits that follow. Both
// come from the number as a binary64, whose exponent is its length and whose fraction the bits
// after the highest, truncated.
func (a *assembly) piece(words int) {
	for i := words - 1; i >= 0; i-- {
		a.Op("VMOVDQU64 %d(SI), Z%d", 64*i, i)
		if i == words-1 {
			a.Op("VCVTUQQ2PD.RZ_SAE Z%d, Z4", i)
			continue
		}
		a.Op("VCVTUQQ2PD.RZ_SAE Z%d, Z5", i)
		a.Op("VFMADD213PD.RZ_SAE Z5, Z16, Z4")
	}
	a.Op("VPSLLQ X18, Z4, Z6")
	a.Op("VPSRLQ $48, Z6, Z6")
	a.Op("VPSRLQ X19, Z4, Z5")
	a.Op("VPSUBQ Z17, Z5, Z5")
	a.Op("VPMAXSQ Z20, Z5, Z5") // zero has exponent 0
}

// place stores which cell the guide names and its offset in words, and prefetches it and the next
// cell.
func (a *assembly) place(words int) {
	a.Op("KXNORB K1, K1, K1")
	a.Op("VPGATHERQQ (R9)(Z5*4), K1, Z7") // a value and the next
	a.Op("VPSRLQ $32, Z7, Z8")
	a.Op("VPSUBD Z7, Z8, Z8")
	a.Op("VPMULUDQ Z6, Z8, Z8")
	a.Op("VPSRLQ $16, Z8, Z8")
	a.Op("VPSLLQ $32, Z7, Z7")
	a.Op("VPSRLQ $32, Z7, Z7")
	a.Op("VPADDQ Z7, Z8, Z5")
	a.Op("VPSRLQ $16, Z5, Z5")
	a.Op("VPMOVQW Z5, (DI)")
	switch words {
	case 2, 4:
		a.Op("VPSLLQ $%d, Z5, Z5", words/2)
	case 5:
		a.Op("VPSLLQ $2, Z5, Z7")
		a.Op("VPADDQ Z7, Z5, Z5")
	}
	a.Op("VMOVDQU64 Z5, %d(SI)", groupPlaces)
	if words == 1 {
		return // the cells are few and already in the cache
	}
	for n := range 8 {
		a.Op("MOVQ %d(SI), AX", groupPlaces+8*n)
		a.Op("PREFETCHT0 (R8)(AX*8)")
		a.Op("PREFETCHT0 %d(R8)(AX*8)", 8*(2*words-1))
	}
}

// take subtracts the cells. Vectors 0 to 4 are the numbers, those from 10 on the cells at the
// group's places, followed by the cells after them; 9 is all ones.
func (a *assembly) take(words int) {
	after := 10 + words
	for i := range words {
		a.Op("VMOVDQU64 %d(SI), Z%d", 64*i, i)
	}
	switch words {
	case 1:
		a.Op("VMOVDQU64 %d(SI), Z6", groupPlaces)
		a.Op("KXNORB K1, K1, K1")
		a.Op("KXNORB K2, K2, K2")
		a.Op("VPGATHERQQ 8(R8)(Z6*8), K1, Z11")
		a.Op("VPGATHERQQ (R8)(Z6*8), K2, Z10")
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
	a.Op("KNOTB K1, K3")
	for i := range words {
		a.Op("VMOVDQA64 Z%d, K3, Z%d", after+i, 10+i)
	}
	a.Op("VPMOVZXWQ (DI), Z5")
	a.Op("VPSUBQ Z9, Z5, K3, Z5") // less -1
	a.Op("VPMOVQW Z5, (DI)")
	for i := range words {
		a.Op("VPSUBQ Z%d, Z%d, Z7", 10+i, i)
		if i > 0 {
			a.Op("VPADDQ Z9, Z7, K1, Z7")
		}
		a.borrow(i, 10+i)
		a.Op("VMOVDQU64 Z7, %d(SI)", 64*i)
	}
}

// cells2 sets vectors 10 to 13 to the words of the cells of two words at the group's places and of
// the cells after them. The two are adjacent: one load for each number and a transposition cost
// less than a gather for each word.
func (a *assembly) cells2() {
	for i, n := range []int{0, 1, 4, 5} { // each with the number two after it
		a.Op("MOVQ %d(SI), AX", groupPlaces+8*n)
		a.Op("MOVQ %d(SI), DX", groupPlaces+8*n+16)
		a.Op("VMOVDQU64 (R8)(AX*8), Y%d", 20+i)
		a.Op("VINSERTI64X4 $1, (R8)(DX*8), Z%d, Z%d", 20+i, 20+i)
	}
	for word, unpack := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		a.Op("%s Z21, Z20, Z24", unpack)
		a.Op("%s Z23, Z22, Z25", unpack)
		a.Op("VSHUFI64X2 $0x88, Z25, Z24, Z%d", 10+word)
		a.Op("VSHUFI64X2 $0xdd, Z25, Z24, Z%d", 12+word)
	}
}

// cells loads the eight words at the given byte offset from each of the group's places, and sets
// the given vectors to the first words, the second words, and so on.
func (a *assembly) cells(offset int, to []int) {
	for n := range 8 {
		register := []string{"AX", "DX"}[n%2]
		a.Op("MOVQ %d(SI), %s", groupPlaces+8*n, register)
		a.Op("VMOVDQU64 %d(R8)(%s*8), Z%d", offset, register, 20+n)
	}
	for odd, unpack := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
		for pair := range 4 { // of numbers: words 0, 2, 4 and 6, or 1, 3, 5 and 7, of both
			a.Op("%s Z%d, Z%d, Z%d", unpack, 21+2*pair, 20+2*pair, 28+pair)
		}
		for word := odd; word < 4; word += 2 { // and that four after it
			lanes := []string{"$0x88", "$0xdd"}[word/2]
			a.Op("VSHUFI64X2 %s, Z29, Z28, Z7", lanes)
			a.Op("VSHUFI64X2 %s, Z31, Z30, Z8", lanes)
			a.Op("VSHUFI64X2 $0x88, Z8, Z7, Z%d", to[word])
			if word+4 < len(to) {
				a.Op("VSHUFI64X2 $0xdd, Z8, Z7, Z%d", to[word+4])
			}
		}
	}
}

// borrow continues the comparison of the numbers from their lowest word: it sets K1 where the words
// so far are below.
func (a *assembly) borrow(i, cell int) {
	if i == 0 {
		a.Op("VPCMPUQ $1, Z%d, Z%d, K1", cell, i)
		return
	}
	a.Op("VPCMPUQ $0, Z%d, Z%d, K1, K1", cell, i)
	a.Op("VPCMPUQ $1, Z%d, Z%d, K2", cell, i)
	a.Op("KORB K1, K2, K1")
}
