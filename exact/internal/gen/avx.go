package main

import (
	"fmt"
	"strings"
)

// avx is the instruction set of AVX2, with registers Y, and of AVX-512, with registers Z.
// Arithmetic reads constants from memory because AVX2 has no registers to spare.
type avx struct{ registers string }

// integersAMD64 are the integer registers by number.
var integersAMD64 = []string{"CX", "SI", "DI", "R8", "R9", "R10", "R11", "DX"}

// operationsAVX are the instructions by their names in vector.do. VMAXPS and VMINPS return their
// last operand if both are equal or one is a NaN.
var operationsAVX = map[string]string{"add": "VADDPS", "sub": "VSUBPS", "mul": "VMULPS", "div": "VDIVPS", "max": "VMAXPS", "min": "VMINPS",
	"and": "VANDPS", "andnot": "VANDNPS", "or": "VORPS", "iadd": "VPADDD", "isub": "VPSUBD", "sra": "VPSRAD", "sll": "VPSLLD"}

func (s avx) text(o operand) string {
	if o.memory != "" {
		return o.memory
	}
	return fmt.Sprintf("%s%d", s.registers, o.register)
}

func (s avx) address(offset, integer int) string {
	return fmt.Sprintf("%d(%s)", offset, integersAMD64[integer])
}

func (s avx) constant(i int) operand {
	return operand{memory: fmt.Sprintf("constants<>+%d(SB)", constantBytes*i)}
}

func (s avx) loadConstants(*assembly, map[int]bool) {}

func (s avx) loadInteger(a *assembly, parameter string, integer int) {
	a.Op("MOVQ %s, %s", parameter, integersAMD64[integer])
}

func (s avx) loadFloat(a *assembly, parameter string, r int) {
	a.Op("VBROADCASTSS %s, %s", parameter, s.text(register(r)))
}

func (s avx) move(a *assembly, to, from operand) { a.Op("VMOVUPS %s, %s", s.text(from), s.text(to)) }

func (s avx) operate(a *assembly, name string, d, x, y operand) {
	a.Op("%s %s, %s, %s", operationsAVX[name], s.text(y), s.text(x), s.text(d))
}

func (s avx) shift(a *assembly, name string, d, x operand, bits int) {
	a.Op("%s $%d, %s, %s", operationsAVX[name], bits, s.text(x), s.text(d))
}

func (s avx) root(a *assembly, d, x operand) { a.Op("VSQRTPS %s, %s", s.text(x), s.text(d)) }

func (s avx) skip(a *assembly, elements int, label string) {
	a.Op("CMPQ CX, $%d", elements)
	a.Op("JLT %s", label)
}

func (s avx) repeat(a *assembly, pointers, elements int, label string) {
	for i := range pointers {
		a.Op("ADDQ $%d, %s", 4*elements, integersAMD64[1+i])
	}
	a.Op("SUBQ $%d, CX", elements)
	a.Op("CMPQ CX, $%d", elements)
	a.Op("JGE %s", label)
}

func (s avx) end(a *assembly) {
	a.Op("VZEROUPPER")
	a.Op("RET")
}

// foldsAVX2 writes the two folds of lanes, in the order of lanes.fold. A maximum returns its second
// operand unless the first is greater, so the second is the one with the lower index.
func foldsAVX2(a *assembly) {
	for _, f := range folds {
		f.begin(a, "AVX2")
		instruction := strings.TrimSuffix(operationsAVX[f.operation], "PS")
		a.Op("MOVQ l+0(FP), SI")
		a.Op("VMOVUPS (SI), Y0")
		a.Op("VMOVUPS 32(SI), Y1")
		a.Op("%sPS Y0, Y1, Y0", instruction)
		a.Op("VEXTRACTF128 $1, Y0, X1")
		a.Op("%sPS X0, X1, X0", instruction)
		a.Op("VPERMILPS $0x4e, X0, X1") // 2 and 3 to 0 and 1
		a.Op("%sPS X0, X1, X0", instruction)
		a.Op("VPERMILPS $0x55, X0, X1") // 1 to 0
		a.Op("%sSS X0, X1, X0", instruction)
		a.Op("VMOVSS X0, ret+8(FP)")
		a.Op("VZEROUPPER")
		a.Op("RET")
	}
}
