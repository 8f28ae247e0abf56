package main

import (
	"fmt"
	"math"
	"strings"
)

// A lane is the set of vector instructions that row kernels are written for. 16 floats are one iteration: one vector of AVX-512, or two of AVX2,
// which run the same body one after the other.
type lane struct {
	suffix   string // of function names
	register string // Z or Y
	bytes    int    // of a register
	count    int    // of registers
}

var lanesAMD64 = []lane{{"AVX512", "Z", 64, 32}, {"AVX2", "Y", 32, 16}}

// A row is a kernel: its parameters after n, and what it does with 16 elements.
type row struct {
	name   string
	params string // names of pointers, then ";", then names of floats, then "+" if there are lanes to add to
	doc    string
	body   func(v *vector)
}

// pointers are the registers of pointer parameters, in their order.
var pointers = []string{"SI", "DI", "R8", "R9", "R10", "R11"}

// A vector writes the body of a row kernel for one vector's worth of elements. Registers are named by the number of a temporary, or by the name of a
// parameter.
type vector struct {
	*assembly
	lane
	names map[string]string // of parameters: the address of a pointer's elements, or a float's register
	part  int               // which vector of the 16 elements
}

// at returns an operand: a temporary "0" to "9", a parameter, "lanes", or a constant.
func (v *vector) at(name string) string {
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		return v.register + name
	}
	if name == "lanes" {
		return fmt.Sprintf("%s%d", v.register, v.count-1-v.part)
	}
	if operand, ok := v.names[name]; ok {
		if strings.HasPrefix(operand, "(") {
			return fmt.Sprintf("%d%s", v.part*v.bytes, operand)
		}
		return operand
	}
	if offset, ok := constantOffset(name); ok {
		return fmt.Sprintf("constants<>+%d(SB)", offset)
	}
	panic("gen: no operand " + name)
}

// do writes instructions, one a line: "mul d a b" is d = a·b, and so on. Only the last operand may be memory.
func (v *vector) do(program string) {
	for line := range strings.Lines(program) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "load":
			v.op("VMOVUPS %s, %s", v.at(f[2]), v.at(f[1]))
		case "store":
			v.op("VMOVUPS %s, %s", v.at(f[2]), v.at(f[1]))
		case "sra", "sll":
			v.op("VPS%s $%s, %s, %s", map[string]string{"sra": "RAD", "sll": "LLD"}[f[0]], f[3], v.at(f[2]), v.at(f[1]))
		case "exp":
			v.exp()
		case "sigmoid":
			v.sigmoid()
		default:
			v.op("%s %s, %s, %s", instructions[f[0]], v.at(f[3]), v.at(f[2]), v.at(f[1]))
		}
	}
}

// instructions by the names that do understands. max and min return their last operand if the two are equal or one is a NaN.
var instructions = map[string]string{"add": "VADDPS", "sub": "VSUBPS", "mul": "VMULPS", "div": "VDIVPS", "max": "VMAXPS", "min": "VMINPS",
	"and": "VANDPS", "andnot": "VANDNPS", "or": "VORPS", "iadd": "VPADDD", "isub": "VPSUBD"}

// constants are those of package exact, each repeated 16 times.
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

func constantOffset(name string) (int, bool) {
	for i, c := range constants {
		if c.name == name {
			return 64 * i, true
		}
	}
	return 0, false
}

// writeConstants writes the table that at refers to.
func writeConstants(a *assembly) {
	a.text.WriteByte('\n')
	for i, c := range constants {
		for j := range 8 {
			fmt.Fprintf(&a.text, "DATA constants<>+%d(SB)/8, $0x%08x%08x\n", 64*i+8*j, c.bits, c.bits)
		}
	}
	fmt.Fprintf(&a.text, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n", 64*len(constants))
}

// exp turns temporary 0 into Exp of it, step by step as exact.Exp does; it uses 1 to 3.
func (v *vector) exp() {
	v.do(`load 1 least
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
		mul 0 3 1`)
}

// sigmoid sets temporary 0 to Sigmoid of temporary 4; it uses 1 to 3. The sign bit chooses the numerator: for -0 both are 1.
func (v *vector) sigmoid() {
	v.do(`or 0 4 sign
		exp
		sra 1 4 31
		and 2 0 1
		andnot 1 1 one
		or 2 2 1
		add 0 0 one
		div 0 2 0`)
}

// write writes the kernel for one set of instructions.
func (r row) write(a *assembly, l lane) {
	spec, hasLanes := strings.CutSuffix(r.params, "+")
	ptrs, floats, _ := strings.Cut(spec, ";")
	v := &vector{assembly: a, lane: l, names: map[string]string{}}
	var parts []string
	offset := 8
	var loads []string
	for i, p := range strings.Fields(ptrs) {
		loads = append(loads, fmt.Sprintf("MOVQ %s+%d(FP), %s", p, offset, pointers[i]))
		v.names[p] = "(" + pointers[i] + ")"
		offset += 8
	}
	parts = append(parts, strings.Join(strings.Fields(ptrs), ", ")+" *float32")
	next := l.count - 3 // the two above are the lanes
	for _, f := range strings.Fields(floats) {
		v.names[f] = fmt.Sprintf("%s%d", l.register, next)
		loads = append(loads, fmt.Sprintf("VBROADCASTSS %s+%d(FP), %s", f, offset, v.names[f]))
		next--
		offset += 4
	}
	if floats != "" {
		parts = append(parts, strings.Join(strings.Fields(floats), ", ")+" float32")
	}
	if hasLanes {
		offset = (offset + 7) / 8 * 8
		loads = append(loads, fmt.Sprintf("MOVQ l+%d(FP), DX", offset))
		parts = append(parts, "l *lanes")
		offset += 8
	}
	name := r.name + l.suffix
	a.function(name, "(n int, "+strings.Join(parts, ", ")+")", offset, r.doc)
	a.op("MOVQ n+0(FP), CX")
	for _, load := range loads {
		a.op("%s", load)
	}
	r.loop(v, name, len(strings.Fields(ptrs)), hasLanes)
}

// loop writes the kernel's loop over 16 elements at a time, and what stands around it.
func (r row) loop(v *vector, name string, pointerCount int, hasLanes bool) {
	vectors := 64 / v.bytes
	for v.part = range vectors {
		if hasLanes {
			v.op("VMOVUPS %d(DX), %s", v.part*v.bytes, v.at("lanes"))
		}
	}
	v.label(name + "Loop")
	for v.part = range vectors {
		r.body(v)
	}
	for i := range pointerCount {
		v.op("ADDQ $64, %s", pointers[i])
	}
	v.op("SUBQ $16, CX")
	v.op("JNZ %sLoop", name)
	for v.part = range vectors {
		if hasLanes {
			v.op("VMOVUPS %s, %d(DX)", v.at("lanes"), v.part*v.bytes)
		}
	}
	v.op("VZEROUPPER")
	v.op("RET")
}

func program(text string) func(v *vector) {
	return func(v *vector) { v.do(text) }
}

// rows are the kernels; package exact's rows_plain.go defines them.
var rows = []row{
	{"add", "y x", "computes y += x.", program("load 0 y\n add 0 0 x\n store y 0")},
	{"scale", "x;k", "computes x = x·k.", program("mul 0 k x\n store x 0")},
	{"dot", "x y;+", "adds x·y to the lanes.", program("load 0 x\n mul 0 0 y\n add lanes lanes 0")},
	{"dot3", "x y z;+", "adds (x·y)·z to the lanes.", program("load 0 x\n mul 0 0 y\n mul 0 0 z\n add lanes lanes 0")},
	{"max", "x;+", "raises the lanes to x.", program("load 0 x\n max lanes 0 lanes")},
	{"normalize", "y x gain;inv", "computes y = (x·inv)·gain.", program("mul 0 inv x\n mul 0 0 gain\n store y 0")},
	{"normBackward", "dx dg dy x gain;inv c", "computes dx += (dy·gain)·inv + x·c and dg += (dy·x)·inv.", program(`load 0 dy
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
		store dg 0`)},
	{"rotate", "a b cos sin", "turns the pairs of a and b.", program(`load 0 a
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
		store b 1`)},
	{"rotateBack", "a b cos sin", "turns the pairs of a and b back.", program(`load 0 a
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
		store b 1`)},
	{"expSum", "x;scale shift+", "computes x = Exp(x·scale - shift) and adds it to the lanes.", program(`mul 0 scale x
		sub 0 0 shift
		exp
		store x 0
		add lanes lanes 0`)},
	{"expScale", "x;scale shift inv", "computes x = Exp(x·scale - shift)·inv.", program(`mul 0 scale x
		sub 0 0 shift
		exp
		mul 0 0 inv
		store x 0`)},
	{"softmaxBackward", "dp p;sum scale", "computes dp = (p·(dp - sum))·scale.", program(`load 0 dp
		sub 0 0 sum
		mul 0 0 p
		mul 0 0 scale
		store dp 0`)},
	{"swiglu", "h gate up", "computes h = (gate·Sigmoid(gate))·up.", program(`load 4 gate
		sigmoid
		mul 0 4 0
		mul 0 0 up
		store h 0`)},
	{"swigluBackward", "dh gate up", "turns gate and up into their gradients and dh into h.", program(`load 4 gate
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
		store gate 0`)},
}

// foldsAVX2 writes the two folds of lanes, in the order of lanes.fold: halves, quarters, pairs. The second operand of a maximum wins if neither is
// greater, so it is the one with the lower index.
func foldsAVX2(a *assembly) {
	for _, f := range []struct{ name, op, doc string }{
		{"foldAVX2", "VADD", "returns the sum of the lanes; see lanes.fold."}, {"foldMaxAVX2", "VMAX", "returns the greatest lane; see lanes.foldMax."},
	} {
		fmt.Fprintf(&a.text, "\n// func %s(l *lanes) float32\nTEXT ·%s(SB), NOSPLIT, $0-12\n", f.name, f.name)
		fmt.Fprintf(&a.decls, "\n// %s %s\n//\n//go:noescape\nfunc %s(l *lanes) float32\n", f.name, f.doc, f.name)
		a.op("MOVQ l+0(FP), SI")
		a.op("VMOVUPS (SI), Y0")
		a.op("VMOVUPS 32(SI), Y1")
		a.op("%sPS Y0, Y1, Y0", f.op)
		a.op("VEXTRACTF128 $1, Y0, X1")
		a.op("%sPS X0, X1, X0", f.op)
		a.op("VPERMILPS $0x4e, X0, X1") // 2 and 3 to 0 and 1
		a.op("%sPS X0, X1, X0", f.op)
		a.op("VPERMILPS $0x55, X0, X1") // 1 to 0
		a.op("%sSS X0, X1, X0", f.op)
		a.op("VMOVSS X0, ret+8(FP)")
		a.op("VZEROUPPER")
		a.op("RET")
	}
}
