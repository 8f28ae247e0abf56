package main

// kernels are the functions; package codec/internal/vec defines in plain Go what they do.
var kernels = []func(a *assembly, l lane){sumSquares, momentum, most, reach, signStep}

// load moves 16 floats at a pointer, or part of them, to a register.
func (a *assembly) load(l lane, pointer string, part, register int) {
	a.op("VMOVUPS %d(%s), %s", part*l.bytes, pointer, l.r(register))
}

// sumSquares keeps the 16 sums of binary64 in registers from 8 on. The squares are exact, so a fused multiply-add adds the same.
func sumSquares(a *assembly, l lane) {
	name := "sumSquares" + l.suffix
	a.function(name, "(n int, x *float32, sums *[Lanes]float64)", 24, "adds squares to the sums.")
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ sums+16(FP), DX")
	half := l.bytes / 2
	vectors := 128 / l.bytes
	for i := range vectors {
		a.op("VMOVUPD %d(DX), %s", i*l.bytes, l.r(8+i))
	}
	a.repeat(name, []string{"SI"}, func() {
		for i := range vectors {
			a.op("VCVTPS2PD %d(SI), %s", i*half, l.r(i))
		}
		for i := range vectors {
			a.op("VFMADD231PD %s, %s, %s", l.r(i), l.r(i), l.r(8+i))
		}
	})
	for i := range vectors {
		a.op("VMOVUPD %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// abs puts the mask of all bits but the sign into a register.
func (a *assembly) abs(l lane, register int) {
	r := l.r(register)
	if l.register == "Z" {
		a.op("VPTERNLOGD $0xff, %s, %s, %s", r, r, r)
	} else {
		a.op("VPCMPEQD %s, %s, %s", r, r, r)
	}
	a.op("VPSRLD $1, %s, %s", r, r)
}

// momentum keeps the greatest magnitudes in registers from 8 on; 15 is the mask of magnitudes, 14 decay, 13 step.
func momentum(a *assembly, l lane) {
	name := "momentum" + l.suffix
	a.function(name, "(n int, m, x *float32, decay, step float32, most *[Lanes]float32)", 40, "computes m = decay*m + step*x and raises most.")
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ m+8(FP), DI")
	a.op("MOVQ x+16(FP), SI")
	a.op("VBROADCASTSS decay+24(FP), %s", l.r(14))
	a.op("VBROADCASTSS step+28(FP), %s", l.r(13))
	a.op("MOVQ most+32(FP), DX")
	a.abs(l, 15)
	for i := range l.parts() {
		a.load(l, "DX", i, 8+i)
	}
	a.repeat(name, []string{"SI", "DI"}, func() {
		for i := range l.parts() {
			at := i * l.bytes
			a.op("VMULPS %d(DI), %s, %s", at, l.r(14), l.r(2*i))
			a.op("VMULPS %d(SI), %s, %s", at, l.r(13), l.r(2*i+1))
			a.op("VADDPS %s, %s, %s", l.r(2*i+1), l.r(2*i), l.r(2*i))
			a.op("VMOVUPS %s, %d(DI)", l.r(2*i), at)
			a.op("%s %s, %s, %s", l.logic("VPAND"), l.r(15), l.r(2*i), l.r(2*i))
			a.op("VPMAXUD %s, %s, %s", l.r(2*i), l.r(8+i), l.r(8+i))
		}
	})
	for i := range l.parts() {
		a.op("VMOVUPS %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// most is the latter half of momentum.
func most(a *assembly, l lane) {
	name := "most" + l.suffix
	a.function(name, "(n int, x *float32, most *[Lanes]float32)", 24, "raises most to the magnitudes of x.")
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ most+16(FP), DX")
	a.abs(l, 15)
	for i := range l.parts() {
		a.load(l, "DX", i, 8+i)
	}
	a.repeat(name, []string{"SI"}, func() {
		for i := range l.parts() {
			a.op("%s %d(SI), %s, %s", l.logic("VPAND"), i*l.bytes, l.r(15), l.r(i))
			a.op("VPMAXUD %s, %s, %s", l.r(i), l.r(8+i), l.r(8+i))
		}
	})
	for i := range l.parts() {
		a.op("VMOVUPS %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// reach compares signed integers, as AVX2 can: magnitude > bound-1.
func reach(a *assembly, l lane) {
	name := "reach" + l.suffix
	a.function(name, "(n int, x *float32, bound uint32, set *uint64)", 32, "writes a bit for each magnitude that reaches bound.")
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVL bound+16(FP), AX")
	a.op("DECL AX")
	a.op("VMOVD AX, X14")
	a.op("VPBROADCASTD X14, %s", l.r(14))
	a.op("MOVQ set+24(FP), DI")
	a.abs(l, 15)
	a.repeat(name, []string{"SI"}, func() {
		if l.register == "Z" {
			a.op("VPANDD (SI), Z15, Z0")
			a.op("VPCMPGTD Z14, Z0, K1")
			a.op("KMOVW K1, AX")
		} else {
			a.op("VPAND (SI), Y15, Y0")
			a.op("VPAND 32(SI), Y15, Y1")
			a.op("VPCMPGTD Y14, Y0, Y0")
			a.op("VPCMPGTD Y14, Y1, Y1")
			a.op("VMOVMSKPS Y0, AX")
			a.op("VMOVMSKPS Y1, DX")
			a.op("SHLL $8, DX")
			a.op("ORL DX, AX")
		}
		a.op("MOVW AX, (DI)")
		a.op("ADDQ $2, DI")
	})
	a.end()
}

// signStep has in 15 the mask of magnitudes, in 14 keep, in 13 the rate, in 12 zeros.
func signStep(a *assembly, l lane) {
	name := "signStep" + l.suffix
	a.function(name, "(n int, x, direction *float32, keep, lr float32)", 32, "computes x = x*keep - lr*sign(direction).")
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ x+8(FP), DI")
	a.op("MOVQ direction+16(FP), SI")
	a.op("VBROADCASTSS keep+24(FP), %s", l.r(14))
	a.op("VBROADCASTSS lr+28(FP), %s", l.r(13))
	a.op("%s %s, %s, %s", l.logic("VPXOR"), l.r(12), l.r(12), l.r(12))
	a.abs(l, 15)
	a.repeat(name, []string{"SI", "DI"}, func() {
		for i := range l.parts() {
			magnitude, step, x := l.r(3*i), l.r(3*i+1), l.r(3*i+2)
			a.load(l, "SI", i, 3*i+1)
			a.op("%s %s, %s, %s", l.logic("VPAND"), l.r(15), step, magnitude)
			a.op("%s %s, %s, %s", l.logic("VPANDN"), step, l.r(15), step) // the sign
			a.op("VPSUBD %s, %s, %s", magnitude, l.r(12), magnitude)
			a.op("VPSRAD $31, %s, %s", magnitude, magnitude)
			a.op("%s %s, %s, %s", l.logic("VPOR"), l.r(13), step, step)
			a.op("%s %s, %s, %s", l.logic("VPAND"), magnitude, step, step)
			a.op("VMULPS %d(DI), %s, %s", i*l.bytes, l.r(14), x)
			a.op("VSUBPS %s, %s, %s", step, x, x)
			a.op("VMOVUPS %s, %d(DI)", x, i*l.bytes)
		}
	})
	a.end()
}
