package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A lane is the set of vector instructions for which row kernels are written. An iteration computes
// 16 floats: one vector of AVX-512, two of AVX2 or four of NEON, each with the same body.
type lane struct {
	instructionSet
	suffix     string // of function names
	bytes      int    // size of a register
	count      int    // number of registers; the last ones hold the lanes
	firstFloat int    // register of the first float parameter; the next ones are below it
	abreast    int    // vectors at a time in kernels with long chains of instructions
}

var (
	lanesAMD64 = []lane{{avx{"Z"}, "AVX512", 64, 32, 29, 4}, {avx{"Y"}, "AVX2", 32, 16, 13, 2}}
	laneNEON   = lane{neon{}, "NEON", 16, 32, 27, 1}
)

// An instructionSet provides the building blocks of row kernels for one processor. Integer
// registers have numbers: 0 counts elements, 1 to 6 hold the pointer parameters in order, and
// lanesPointer points to the lanes.
type instructionSet interface {
	address(offset, integer int) string // of an element in memory
	constant(i int) operand             // constant number i
	loadConstants(a *assembly, used map[int]bool)
	loadInteger(a *assembly, parameter string, integer int)
	loadFloat(a *assembly, parameter string, register int) // into all elements of a vector
	move(a *assembly, to, from operand)                    // at least one is a register
	operate(a *assembly, name string, d, x, y operand)     // d = x op y; y may be memory
	shift(a *assembly, name string, d, x operand, bits int)
	root(a *assembly, d, x operand)
	// skip jumps to label if fewer elements are left. repeat goes on by elements, and jumps to label
	// if as many are left.
	skip(a *assembly, elements int, label string)
	repeat(a *assembly, pointers, elements int, label string)
	end(a *assembly)
}

const lanesPointer = 7

// An operand is a vector register or memory.
type operand struct {
	register int
	memory   string // its address; "" for a register
}

func register(i int) operand { return operand{register: i} }

// A row is a kernel: its parameters after n, and its instructions for 16 elements.
type row struct {
	name   string
	params string // names of pointers, ";", names of floats, "+" if it updates lanes
	doc    string
	body   string // a program for vector.do
}

// A vector writes the body of a row kernel for one vector of elements. A register's name is the
// number of a temporary, or a parameter's name.
type vector struct {
	*assembly
	lane
	pointers, floats map[string]int // registers of parameters
	part             int            // number of the vector in an iteration
	first            int            // register of its temporary 0
	used             map[int]bool   // constants used
}

// at returns the operand with the given name: a temporary "0" to "9", a parameter, "lanes", or a
// constant. It panics if there is none.
func (v *vector) at(name string) operand {
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		return register(v.first + int(name[0]-'0'))
	}
	if name == "lanes" {
		return register(v.count - 1 - v.part%(64/v.bytes))
	}
	if r, ok := v.floats[name]; ok {
		return register(r)
	}
	if p, ok := v.pointers[name]; ok {
		return operand{memory: v.address(v.part*v.bytes, p)}
	}
	for i, c := range constants {
		if c.name == name {
			v.used[i] = true
			return v.constant(i)
		}
	}
	panic("gen: no operand " + name)
}

// lines returns the lines of a program.
func lines(program string) (all [][]string) {
	for line := range strings.Lines(program) {
		switch f := strings.Fields(line); {
		case len(f) == 0:
		case f[0] == "exp":
			all = append(all, lines(expProgram)...)
		case f[0] == "sigmoid":
			all = append(all, lines(sigmoidProgram)...)
		default:
			all = append(all, f)
		}
	}
	return all
}

// do writes the instruction of a line: "mul d a b" is d = a·b. Only the last operand may be memory.
// "max d a b" is a if a > b and otherwise b; "min d a b" is a if a < b and otherwise b; both are b
// if either is NaN. "andnot d a b" is b with the bits of a cleared.
func (v *vector) do(f []string) {
	switch f[0] {
	case "load", "store":
		v.move(v.assembly, v.at(f[1]), v.at(f[2]))
	case "sra", "sll":
		bits, err := strconv.Atoi(f[3])
		if err != nil {
			panic("gen: " + strings.Join(f, " "))
		}
		v.shift(v.assembly, f[0], v.at(f[1]), v.at(f[2]), bits)
	case "sqrt":
		v.root(v.assembly, v.at(f[1]), v.at(f[2]))
	default:
		v.operate(v.assembly, f[0], v.at(f[1]), v.at(f[2]), v.at(f[3]))
	}
}

// constants are those of package exact. The table holds each 16 times.
var constants = []struct {
	name string
	bits uint32
}{
	{"least", math.Float32bits(-104)}, {"most", math.Float32bits(89)}, {"log2E", math.Float32bits(1.44269504088896341)},
	{"magic", math.Float32bits(12582912)}, {"ln2Hi", math.Float32bits(0.693145751953125)}, {"ln2Lo", math.Float32bits(1.42860682030941723212e-6)},
	{"exp2", math.Float32bits(0.49999993451)}, {"exp3", math.Float32bits(0.166665206791)}, {"exp4", math.Float32bits(0.0416683874878)},
	{"exp5", math.Float32bits(0.00836871112901)}, {"exp6", math.Float32bits(0.00138146105581)}, {"one", math.Float32bits(1)},
	{"bias", 127}, {"sign", 1 << 31},
}

// constantBytes is the size of a constant in the table: that of the widest vector.
const constantBytes = 64

// writeConstants writes the table of constants.
func writeConstants(a *assembly) {
	a.Text("\n")
	for i, c := range constants {
		for j := range constantBytes / 8 {
			a.Text("DATA constants<>+%d(SB)/8, $0x%08x%08x\n", constantBytes*i+8*j, c.bits, c.bits)
		}
	}
	a.Text("GLOBL constants<>(SB), RODATA|NOPTR, $%d\n", constantBytes*len(constants))
}

// expProgram replaces temporary 0 by its Exp, with the steps of exact.Exp. It uses temporaries 1 to
// 3.
const expProgram = `load 1 least
		max 0 1 0
		load 1 most
		min 0 1 0
		mul 1 0 log2E
		add 1 1 magic
		sub 2 1 magic
		mul 3 2 ln2Hi
		sub 0 0 3
		mul 3 2 ln2Lo
		sub 0 0 3
		mul 3 0 exp6
		add 3 3 exp5
		mul 3 3 0
		add 3 3 exp4
		mul 3 3 0
		add 3 3 exp3
		mul 3 3 0
		add 3 3 exp2
		mul 3 3 0
		mul 3 3 0
		add 3 3 0
		add 3 3 one
		isub 1 1 magic
		sra 2 1 1
		isub 1 1 2
		iadd 2 2 bias
		sll 2 2 23
		iadd 1 1 bias
		sll 1 1 23
		mul 3 3 2
		mul 0 3 1`

// sigmoidProgram sets temporary 0 to the Sigmoid of temporary 4. It uses temporaries 1 to 3. The
// sign bit selects the numerator; both are 1 for -0.
const sigmoidProgram = `or 0 4 sign
		exp
		sra 1 4 31
		and 2 0 1
		andnot 1 1 one
		or 2 2 1
		add 0 0 one
		div 0 2 0`

// write writes the kernel for one instruction set.
func (r row) write(a *assembly, l lane) {
	spec, hasLanes := strings.CutSuffix(r.params, "+")
	before, after, _ := strings.Cut(spec, ";")
	pointers, floats := strings.Fields(before), strings.Fields(after)
	v := &vector{assembly: newAssembly(), lane: l, pointers: map[string]int{}, floats: map[string]int{}, used: map[int]bool{}}
	v.loadInteger(v.assembly, "n+0(FP)", 0)
	signature := "(n int, " + strings.Join(pointers, ", ") + " *float32"
	offset := 8
	for i, p := range pointers {
		v.pointers[p] = 1 + i
		v.loadInteger(v.assembly, fmt.Sprintf("%s+%d(FP)", p, offset), v.pointers[p])
		offset += 8
	}
	for i, f := range floats {
		v.floats[f] = l.firstFloat - i
		v.loadFloat(v.assembly, fmt.Sprintf("%s+%d(FP)", f, offset), v.floats[f])
		offset += 4
	}
	if len(floats) > 0 {
		signature += ", " + strings.Join(floats, ", ") + " float32"
	}
	if hasLanes {
		offset = (offset + 7) / 8 * 8
		v.loadInteger(v.assembly, fmt.Sprintf("l+%d(FP)", offset), lanesPointer)
		signature += ", l *lanes"
		offset += 8
	}
	name := r.name + l.suffix
	a.Function(name, signature+")", offset, r.doc)
	r.loop(v, name, hasLanes)
	a.Append(v.File)
}

// longProgram is the number of lines from which a program is written for vectors abreast. What
// waits for the units of a processor is a program or two, and in a long one each line waits for the
// line before.
const longProgram = 24

// loop writes the kernel's loop over elements, and loads and stores the lanes around it.
func (r row) loop(v *vector, name string, hasLanes bool) {
	program, vectors := lines(r.body), 64/v.bytes
	abreast := 1
	if len(program) >= longProgram {
		abreast = max(1, min(v.abreast, (v.firstFloat+1-len(v.floats))/temporaries(program)))
	}
	inLoop, wide := *v, *v
	inLoop.assembly, wide.assembly = newAssembly(), newAssembly()
	inLoop.iteration(program, vectors, min(abreast, vectors))
	v.loadConstants(v.assembly, v.used)
	for i := range v.used {
		if c := v.constant(i); c.memory == "" && c.register > v.firstFloat-len(v.floats) {
			panic("gen: " + name + " has too many floats to keep constants in registers")
		}
	}
	lanes := func(do func(register, memory operand)) {
		for v.part = range vectors {
			if hasLanes {
				do(v.at("lanes"), operand{memory: v.address(v.part*v.bytes, lanesPointer)})
			}
		}
	}
	lanes(func(register, memory operand) { v.move(v.assembly, register, memory) })
	if abreast > vectors {
		wide.iteration(program, abreast, abreast)
		v.skip(v.assembly, 16*abreast/vectors, name+"Loop")
		v.Label(name + "Wide")
		v.Append(wide.File)
		v.repeat(v.assembly, len(v.pointers), 16*abreast/vectors, name+"Wide")
		v.skip(v.assembly, 1, name+"End")
	}
	v.Label(name + "Loop")
	v.Append(inLoop.File)
	v.repeat(v.assembly, len(v.pointers), 16, name+"Loop")
	if abreast > vectors {
		v.Label(name + "End")
	}
	lanes(func(register, memory operand) { v.move(v.assembly, memory, register) })
	v.end(v.assembly)
}

// temporaries returns the number of temporaries that a program uses.
func temporaries(program [][]string) (n int) {
	for _, f := range program {
		for _, name := range f[1:] {
			if len(name) == 1 && name[0] >= '0' && name[0] <= '9' && f[0] != "sra" && f[0] != "sll" {
				n = max(n, int(name[0]-'0')+1)
			}
		}
	}
	return n
}

// iteration writes an iteration of the loop, over a number of vectors of which some are abreast.
func (v *vector) iteration(program [][]string, vectors, abreast int) {
	each := temporaries(program)
	for from := 0; from < vectors; from += abreast {
		for _, line := range program {
			for i := range abreast {
				v.part, v.first = from+i, i*each
				v.do(line)
			}
		}
	}
}

// rows are the kernels, which package exact defines in rows_plain.go.
var rows = []row{
	{"add", "y x", "computes y += x.", "load 0 y\n add 0 0 x\n store y 0"},
	{"scale", "x;k", "computes x = x·k.", "mul 0 k x\n store x 0"},
	{"dot", "x y;+", "adds x·y to the lanes.", "load 0 x\n mul 0 0 y\n add lanes lanes 0"},
	{"dot3", "x y z;+", "adds (x·y)·z to the lanes.", "load 0 x\n mul 0 0 y\n mul 0 0 z\n add lanes lanes 0"},
	{"max", "x;+", "raises the lanes to x.", "load 0 x\n max lanes 0 lanes"},
	{"normalize", "y x gain;inv", "computes y = (x·inv)·gain.", "mul 0 inv x\n mul 0 0 gain\n store y 0"},
	{"normBackward", "dx dg dy x gain;inv c", "computes dx += (dy·gain)·inv + x·c and dg += (dy·x)·inv.", `load 0 dy
		mul 1 0 gain
		mul 1 1 inv
		load 2 x
		mul 3 2 c
		add 1 1 3
		add 1 1 dx
		store dx 1
		mul 0 0 2
		mul 0 0 inv
		add 0 0 dg
		store dg 0`},
	{"rotate", "a b cos sin", "rotates the pairs of a and b.", `load 0 a
		load 1 b
		load 2 cos
		load 3 sin
		mul 4 0 2
		mul 5 1 3
		sub 4 4 5
		store a 4
		mul 1 1 2
		mul 0 0 3
		add 1 1 0
		store b 1`},
	{"rotateBack", "a b cos sin", "rotates the pairs of a and b back.", `load 0 a
		load 1 b
		load 2 cos
		load 3 sin
		mul 4 0 2
		mul 5 1 3
		add 4 4 5
		store a 4
		mul 1 1 2
		mul 0 0 3
		sub 1 1 0
		store b 1`},
	{"expSum", "x;scale shift+", "computes x = Exp(x·scale - shift) and adds it to the lanes.", `mul 0 scale x
		sub 0 0 shift
		exp
		store x 0
		add lanes lanes 0`},
	{"expScale", "x;scale shift inv", "computes x = Exp(x·scale - shift)·inv.", `mul 0 scale x
		sub 0 0 shift
		exp
		mul 0 0 inv
		store x 0`},
	{"softmaxBackward", "dp p;sum scale", "computes dp = (p·(dp - sum))·scale.", `load 0 dp
		sub 0 0 sum
		mul 0 0 p
		mul 0 0 scale
		store dp 0`},
	{"swiglu", "h gate up", "computes h = (gate·Sigmoid(gate))·up.", `load 4 gate
		sigmoid
		mul 0 4 0
		mul 0 0 up
		store h 0`},
	{"swigluBackward", "dh gate up", "replaces gate and up by their gradients and dh by h.", `load 4 gate
		sigmoid
		load 5 dh
		load 6 up
		mul 7 4 0
		mul 8 5 7
		store up 8
		mul 8 7 6
		store dh 8
		load 1 one
		sub 1 1 0
		mul 1 4 1
		add 1 1 one
		mul 0 0 1
		mul 5 5 6
		mul 0 5 0
		store gate 0`},
}

// A fold combines the lanes of a row in the order of lanes.fold.
type fold struct{ name, operation, doc string }

var folds = []fold{{"fold", "add", "returns the sum of the lanes; see lanes.fold."}, {"foldMax", "max", "returns the greatest lane; see lanes.foldMax."}}

// begin writes the start of the function.
func (f fold) begin(a *assembly, suffix string) {
	name := f.name + suffix
	a.Function(name, "(l *lanes) float32", 12, f.doc)
}
