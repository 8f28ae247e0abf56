package main

// kernels are the functions, which package codec/internal/vec defines in plain Go.
var kernels = []func(a *assembly, l lane){sumSquares, momentum, most, reach, signStep, columns, fetch}

// load moves 16 floats at a pointer, or a part of them, to a register.
func (a *assembly) load(l lane, pointer string, part, register int) {
	a.Op("VMOVUPS %d(%s), %s", part*l.bytes, pointer, l.r(register))
}

// sumSquares keeps the 16 sums in binary64 in registers from 8 on. The squares are exact, so fused
// multiply-adds give the same sums.
func sumSquares(a *assembly, l lane) {
	name := "sumSquares" + l.suffix
	a.Function(name, "(n int, x *float32, sums *[Lanes]float64)", 24, "adds squares to the sums.")
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ x+8(FP), SI")
	a.Op("MOVQ sums+16(FP), DX")
	half := l.bytes / 2
	vectors := 128 / l.bytes
	for i := range vectors {
		a.Op("VMOVUPD %d(DX), %s", i*l.bytes, l.r(8+i))
	}
	a.repeat(name, []string{"SI"}, func() {
		for i := range vectors {
			a.Op("VCVTPS2PD %d(SI), %s", i*half, l.r(i))
		}
		for i := range vectors {
			a.Op("VFMADD231PD %s, %s, %s", l.r(i), l.r(i), l.r(8+i))
		}
	})
	for i := range vectors {
		a.Op("VMOVUPD %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// abs sets a register to the mask of all bits but the sign.
func (a *assembly) abs(l lane, register int) {
	r := l.r(register)
	if l.register == "Z" {
		a.Op("VPTERNLOGD $0xff, %s, %s, %s", r, r, r)
	} else {
		a.Op("VPCMPEQD %s, %s, %s", r, r, r)
	}
	a.Op("VPSRLD $1, %s, %s", r, r)
}

// momentum keeps the greatest magnitudes in registers from 8 on; 15 is the mask of magnitudes, 14
// decay, 13 step.
func momentum(a *assembly, l lane) {
	name := "momentum" + l.suffix
	a.Function(name, "(n int, m, x *float32, decay, step float32, most *[Lanes]float32)", 40, "computes m = decay*m + step*x and raises most.")
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ m+8(FP), DI")
	a.Op("MOVQ x+16(FP), SI")
	a.Op("VBROADCASTSS decay+24(FP), %s", l.r(14))
	a.Op("VBROADCASTSS step+28(FP), %s", l.r(13))
	a.Op("MOVQ most+32(FP), DX")
	a.abs(l, 15)
	for i := range l.parts() {
		a.load(l, "DX", i, 8+i)
	}
	a.repeat(name, []string{"SI", "DI"}, func() {
		for i := range l.parts() {
			at := i * l.bytes
			a.Op("VMULPS %d(DI), %s, %s", at, l.r(14), l.r(2*i))
			a.Op("VMULPS %d(SI), %s, %s", at, l.r(13), l.r(2*i+1))
			a.Op("VADDPS %s, %s, %s", l.r(2*i+1), l.r(2*i), l.r(2*i))
			a.Op("VMOVUPS %s, %d(DI)", l.r(2*i), at)
			a.Op("%s %s, %s, %s", l.logic("VPAND"), l.r(15), l.r(2*i), l.r(2*i))
			a.Op("VPMAXUD %s, %s, %s", l.r(2*i), l.r(8+i), l.r(8+i))
		}
	})
	for i := range l.parts() {
		a.Op("VMOVUPS %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// most is the second half of momentum.
func most(a *assembly, l lane) {
	name := "most" + l.suffix
	a.Function(name, "(n int, x *float32, most *[Lanes]float32)", 24, "raises most to the magnitudes of x.")
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ x+8(FP), SI")
	a.Op("MOVQ most+16(FP), DX")
	a.abs(l, 15)
	for i := range l.parts() {
		a.load(l, "DX", i, 8+i)
	}
	a.repeat(name, []string{"SI"}, func() {
		for i := range l.parts() {
			a.Op("%s %d(SI), %s, %s", l.logic("VPAND"), i*l.bytes, l.r(15), l.r(i))
			a.Op("VPMAXUD %s, %s, %s", l.r(i), l.r(8+i), l.r(8+i))
		}
	})
	for i := range l.parts() {
		a.Op("VMOVUPS %s, %d(DX)", l.r(8+i), i*l.bytes)
	}
	a.end()
}

// reach compares signed integers, as AVX2 can: magnitude > bound-1.
func reach(a *assembly, l lane) {
	name := "reach" + l.suffix
	a.Function(name, "(n int, x *float32, bound uint32, set *uint64)", 32, "writes a bit for each magnitude that reaches bound.")
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ x+8(FP), SI")
	a.Op("MOVL bound+16(FP), AX")
	a.Op("DECL AX")
	a.Op("VMOVD AX, X14")
	a.Op("VPBROADCASTD X14, %s", l.r(14))
	a.Op("MOVQ set+24(FP), DI")
	a.abs(l, 15)
	a.repeat(name, []string{"SI"}, func() {
		if l.register == "Z" {
			a.Op("VPANDD (SI), Z15, Z0")
			a.Op("VPCMPGTD Z14, Z0, K1")
			a.Op("KMOVW K1, AX")
		} else {
			a.Op("VPAND (SI), Y15, Y0")
			a.Op("VPAND 32(SI), Y15, Y1")
			a.Op("VPCMPGTD Y14, Y0, Y0")
			a.Op("VPCMPGTD Y14, Y1, Y1")
			a.Op("VMOVMSKPS Y0, AX")
			a.Op("VMOVMSKPS Y1, DX")
			a.Op("SHLL $8, DX")
			a.Op("ORL DX, AX")
		}
		a.Op("MOVW AX, (DI)")
		a.Op("ADDQ $2, DI")
	})
	a.end()
}

// signStep keeps the mask of magnitudes in 15, keep in 14, the rate in 13 and zeros in 12.
func signStep(a *assembly, l lane) {
	name := "signStep" + l.suffix
	a.Function(name, "(n int, x, direction *float32, keep, lr float32)", 32, "computes x = x*keep - lr*sign(direction).")
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ x+8(FP), DI")
	a.Op("MOVQ direction+16(FP), SI")
	a.Op("VBROADCASTSS keep+24(FP), %s", l.r(14))
	a.Op("VBROADCASTSS lr+28(FP), %s", l.r(13))
	a.Op("%s %s, %s, %s", l.logic("VPXOR"), l.r(12), l.r(12), l.r(12))
	a.abs(l, 15)
	a.repeat(name, []string{"SI", "DI"}, func() {
		for i := range l.parts() {
			magnitude, step, x := l.r(3*i), l.r(3*i+1), l.r(3*i+2)
			a.load(l, "SI", i, 3*i+1)
			a.Op("%s %s, %s, %s", l.logic("VPAND"), l.r(15), step, magnitude)
			a.Op("%s %s, %s, %s", l.logic("VPANDN"), step, l.r(15), step) // the sign
			a.Op("VPSUBD %s, %s, %s", magnitude, l.r(12), magnitude)
			a.Op("VPSRAD $31, %s, %s", magnitude, magnitude)
			a.Op("%s %s, %s, %s", l.logic("VPOR"), l.r(13), step, step)
			a.Op("%s %s, %s, %s", l.logic("VPAND"), magnitude, step, step)
			a.Op("VMULPS %d(DI), %s, %s", i*l.bytes, l.r(14), x)
			a.Op("VSUBPS %s, %s, %s", step, x, x)
			a.Op("VMOVUPS %s, %d(DI)", x, i*l.bytes)
		}
	})
	a.end()
}

// columns goes through the coefficients of a column 64 at a time, as bits that mark the nonzero
// ones, with 64 sums in registers. CX counts columns, R9 is the size of a row in bytes, R10 that of
// the finished sums, R13 counts coefficients. Processors cannot predict the number of set bits, so
// the function gathers bits until a word is full.
func columns(a *assembly, l lane) {
	name := "columns" + l.suffix
	vectors := 256 / l.bytes
	a.Function(name, "(cols, ld int, out, basis, coefficients *float32)", 40, "computes columns of products with few coefficients.")
	a.Op("MOVQ cols+0(FP), CX")
	a.Op("MOVQ ld+8(FP), DX")
	a.Op("MOVQ out+16(FP), DI")
	a.Op("MOVQ basis+24(FP), R8")
	a.Op("MOVQ coefficients+32(FP), SI")
	a.Op("LEAQ (DX*4), R9")
	a.Op("VPXOR X15, X15, X15")
	a.Label(name + "Column")
	a.Op("XORQ R10, R10")
	a.Label(name + "Sums")
	for i := range vectors {
		a.Op("%s %s, %s, %s", l.logic("VPXOR"), l.r(i), l.r(i), l.r(i))
	}
	a.Op("MOVQ SI, R11")
	a.Op("LEAQ (R8)(R10*1), R12")
	a.Op("MOVQ DX, R13")
	a.Label(name + "Word")
	a.setBits(l)
	a.Op("TESTQ AX, AX")
	a.Op("JZ %sZeros", name)
	a.Label(name + "Bit")
	a.Op("BSFQ AX, BX")
	a.Op("VBROADCASTSS (R11)(BX*4), %s", l.r(8))
	a.Op("IMULQ R9, BX")
	for i := range vectors {
		a.Op("VFMADD231PS %d(R12)(BX*1), %s, %s", i*l.bytes, l.r(8), l.r(i))
	}
	a.Op("LEAQ -1(AX), BX")
	a.Op("ANDQ BX, AX")
	a.Op("JNZ %sBit", name)
	a.Label(name + "Zeros")
	a.Op("MOVQ R9, BX")
	a.Op("SHLQ $6, BX")
	a.Op("ADDQ BX, R12")
	a.Op("ADDQ $256, R11")
	a.Op("SUBQ $64, R13")
	a.Op("JNZ %sWord", name)
	a.Op("LEAQ (DI)(R10*1), BX")
	for i := range vectors {
		a.Op("VMOVUPS %s, %d(BX)", l.r(i), i*l.bytes)
	}
	a.Op("ADDQ $256, R10")
	a.Op("CMPQ R10, R9")
	a.Op("JLT %sSums", name)
	a.Op("ADDQ R9, SI")
	a.Op("ADDQ R9, DI")
	a.Op("DECQ CX")
	a.Op("JNZ %sColumn", name)
	a.end()
}

// setBits sets the bits of AX for those of 64 floats at R11 that are not +0. It uses BX and vectors
// from 8 on; on AVX2, 15 holds zeros.
func (a *assembly) setBits(l lane) {
	if l.register == "Z" {
		for i := range 4 {
			a.Op("VMOVDQU32 %d(R11), Z%d", 64*i, 8+i)
			a.Op("VPTESTMD Z%d, Z%d, K%d", 8+i, 8+i, 1+i)
		}
		a.Op("KUNPCKWD K1, K2, K1")
		a.Op("KUNPCKWD K3, K4, K3")
		a.Op("KUNPCKDQ K1, K3, K1")
		a.Op("KMOVQ K1, AX")
		return
	}
	a.Op("XORQ AX, AX")
	for i := 7; i >= 0; i-- {
		a.Op("VPCMPEQD %d(R11), Y15, Y8", 32*i)
		a.Op("VMOVMSKPS Y8, BX")
		a.Op("SHLQ $8, AX")
		a.Op("ORQ BX, AX")
	}
	a.Op("NOTQ AX")
}

// fetch prefetches rows of cache lines.
func fetch(a *assembly, l lane) {
	name := "fetch" + l.suffix
	a.Function(name, "(rows, bytes int, x *float32, stride uintptr)", 32, "brings rows into the second-level cache.")
	a.Op("MOVQ rows+0(FP), CX")
	a.Op("MOVQ bytes+8(FP), DX")
	a.Op("MOVQ x+16(FP), SI")
	a.Op("MOVQ stride+24(FP), R8")
	a.Label(name + "Row")
	a.Op("XORQ AX, AX")
	a.Label(name + "Line")
	a.Op("PREFETCHT1 (SI)(AX*1)")
	a.Op("ADDQ $64, AX")
	a.Op("CMPQ AX, DX")
	a.Op("JLT %sLine", name)
	a.Op("ADDQ R8, SI")
	a.Op("DECQ CX")
	a.Op("JNZ %sRow", name)
	a.Op("RET")
}
