package main

import (
	"fmt"
	"maps"
	"slices"
)

// neon is the instruction set of arm64. Its arithmetic reads only registers: constants stay in
// registers, and other memory is loaded into scratch first.
type neon struct{}

// Registers that neon uses itself. vector uses the temporaries, 0 to 9, the lanes, 28 to 31, and
// the floats below the lanes.
const (
	scratchNEON       = 10 // an operand from memory, or a comparison's result
	firstConstantNEON = 11
)

// tableNEON is the integer register that points to the constants.
const tableNEON = "R8"

// knownNEON are the operations that Go's assembler supports.
var knownNEON = map[string]struct{ instruction, elements string }{"iadd": {"VADD", "S4"}, "isub": {"VSUB", "S4"}, "and": {"VAND", "B16"}, "or": {"VORR", "B16"}}

// threeSame are the operations that Go's assembler does not support: their names in the Arm
// Architecture Reference Manual, and their fields in its encoding "Advanced SIMD three same". Sums,
// products and quotients round once, to nearest even.
var threeSame = map[string]struct {
	instruction, elements string
	u, size, opcode       uint32
}{
	"add": {"fadd", "4s", 0, 0, 0b11010}, "sub": {"fsub", "4s", 0, 2, 0b11010}, "mul": {"fmul", "4s", 1, 0, 0b11011}, "div": {"fdiv", "4s", 1, 0, 0b11111},
	"greater": {"fcmgt", "4s", 1, 2, 0b11100}, "without": {"bic", "16b", 0, 1, 0b00011},
}

// encoded writes d = n op m for an operation of threeSame.
func (a *assembly) encoded(name string, d, n, m int) {
	i := threeSame[name]
	bits := 0x4e200400 | i.u<<29 | i.size<<22 | uint32(m)<<16 | i.opcode<<11 | uint32(n)<<5 | uint32(d)
	a.word(bits, "%s v%d.%s, v%d.%s, v%d.%s", i.instruction, d, i.elements, n, i.elements, m, i.elements)
}

// word writes an instruction as its bits, with its text in Arm's syntax as a comment; a test
// compares the two.
func (a *assembly) word(bits uint32, format string, args ...any) {
	a.Op("WORD $0x%08x // %s", bits, fmt.Sprintf(format, args...))
}

func (neon) address(offset, integer int) string { return fmt.Sprintf("%d(R%d)", offset, integer) }

func (neon) constant(i int) operand { return register(firstConstantNEON + i) }

func (s neon) loadConstants(a *assembly, used map[int]bool) {
	if len(used) > 0 {
		a.Op("MOVD $constants<>(SB), %s", tableNEON)
	}
	for _, i := range slices.Sorted(maps.Keys(used)) {
		s.move(a, s.constant(i), operand{memory: fmt.Sprintf("%d(%s)", constantBytes*i, tableNEON)})
	}
}

func (neon) loadInteger(a *assembly, parameter string, integer int) {
	a.Op("MOVD %s, R%d", parameter, integer)
}

func (neon) loadFloat(a *assembly, parameter string, r int) {
	a.Op("FMOVS %s, F%d", parameter, r)
	a.Op("VDUP V%d.S[0], V%d.S4", r, r)
}

func (neon) move(a *assembly, to, from operand) {
	switch {
	case from.memory != "":
		a.Op("FMOVQ %s, F%d", from.memory, to.register)
	case to.memory != "":
		a.Op("FMOVQ F%d, %s", from.register, to.memory)
	default:
		a.Op("VMOV V%d.B16, V%d.B16", from.register, to.register)
	}
}

func (s neon) operate(a *assembly, name string, d, x, y operand) {
	if y.memory != "" {
		s.move(a, register(scratchNEON), y)
		y = register(scratchNEON)
	}
	known, ok := knownNEON[name]
	switch {
	case ok:
		a.Op("%s V%d.%s, V%d.%s, V%d.%s", known.instruction, y.register, known.elements, x.register, known.elements, d.register, known.elements)
	case name == "andnot":
		a.encoded("without", d.register, y.register, x.register)
	case name == "max":
		replace(a, d, x, y, x.register, y.register)
	case name == "min":
		replace(a, d, x, y, y.register, x.register)
	default:
		a.encoded(name, d.register, x.register, y.register)
	}
}

// replace sets y to x where greater is greater than less; these are x and y in some order. FMAX and
// FMIN are unsuitable because they order zeros by sign and return NaNs.
func replace(a *assembly, d, x, y operand, greater, less int) {
	if d != y || y.register == scratchNEON {
		panic("gen: a maximum or minimum must overwrite its last operand")
	}
	a.encoded("greater", scratchNEON, greater, less)
	a.Op("VBIT V%d.B16, V%d.B16, V%d.B16", scratchNEON, x.register, y.register)
}

// shift encodes SSHR, "Advanced SIMD shift by immediate", which holds 64 minus the number of bits.
func (neon) shift(a *assembly, name string, d, x operand, bits int) {
	if name == "sll" {
		a.Op("VSHL $%d, V%d.S4, V%d.S4", bits, x.register, d.register)
		return
	}
	a.word(0x4f000400|uint32(64-bits)<<16|uint32(x.register)<<5|uint32(d.register), "sshr v%d.4s, v%d.4s, #%d", d.register, x.register, bits)
}

// root encodes FSQRT, "Advanced SIMD two-register miscellaneous", which rounds once.
func (neon) root(a *assembly, d, x operand) {
	a.word(0x6ea1f800|uint32(x.register)<<5|uint32(d.register), "fsqrt v%d.4s, v%d.4s", d.register, x.register)
}

func (neon) skip(a *assembly, elements int, label string) {
	a.Op("CMP $%d, R0", elements)
	a.Op("BLT %s", label)
}

func (neon) repeat(a *assembly, pointers, elements int, label string) {
	for i := range pointers {
		a.Op("ADD $%d, R%d", 4*elements, 1+i)
	}
	a.Op("SUB $%d, R0", elements)
	a.Op("CMP $%d, R0", elements)
	a.Op("BGE %s", label)
}

func (neon) end(a *assembly) { a.Op("RET") }

// foldsNEON writes the two folds of lanes as foldsAVX2 does. The last two steps compute whole
// vectors, of which only the first elements matter.
func foldsNEON(a *assembly) {
	for _, f := range folds {
		f.begin(a, "NEON")
		a.Op("MOVD l+0(FP), R1")
		a.Op("VLD1 (R1), [V0.S4, V1.S4, V2.S4, V3.S4]")
		s := neon{}
		for _, pair := range [][2]int{{2, 0}, {3, 1}, {1, 0}} {
			s.operate(a, f.operation, register(pair[1]), register(pair[0]), register(pair[1]))
		}
		a.Op("VEXT $8, V0.B16, V0.B16, V1.B16") // 2 and 3 to 0 and 1
		s.operate(a, f.operation, register(0), register(1), register(0))
		a.Op("VEXT $4, V0.B16, V0.B16, V1.B16") // 1 to 0
		s.operate(a, f.operation, register(0), register(1), register(0))
		a.Op("FMOVS F0, ret+8(FP)")
		a.Op("RET")
	}
}
