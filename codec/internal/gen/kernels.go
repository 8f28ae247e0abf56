package main

// kernels are the functions, which package codec/internal/vec defines in plain Go.
var kernels = []func(a *assembly, l lane){sumSquares, momentum, most, reach, signStep, columns, fetch}

// load moves 16 floats at a pointer, or a part of them, to a register.
func (a *assembly) load(l lane, pointer string, part, register int) {
	a.op("VMOVUPS %d(%s), %s", part*l.bytes, pointer, l.r(register))
}

// sumSquares keeps the 16 sums in binary64 in registers from 8 on. The squares are exact, so fused
// multiply-adds give the same sums.
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

// abs sets a register to the mask of all bits but the sign.
func (a *assembly) abs(l lane, register int) {
	r := l.r(register)
	if l.register == "Z" {
		a.op("VPTERNLOGD $0xff, %s, %s, %s", r, r, r)
	} else {
		a.op("VPCMPEQD %s, %s, %s", r, r, r)
	}
	a.op("VPSRLD $1, %s, %s", r, r)
}

// momentum keeps the greatest magnitudes in registers from 8 on; 15 is the mask of magnitudes, 14
// decay, 13 step.
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

// most is the second half of momentum.
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

// signStep keeps the mask of magnitudes in 15, keep in 14, the rate in 13 and zeros in 12.
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

// columns goes through the coefficients of a column 64 at a time, as bits that mark the nonzero
// ones, with 64 sums in registers. CX counts columns, R9 is the size of a row in bytes, R10 that of
// the finished sums, R13 counts coefficients. Processors cannot predict the number of set bits, so
// the function gathers bits until a word is full.
func columns(a *assembly, l lane) {
	name := "columns" + l.suffix
	vectors := 256 / l.bytes
	a.function(name, "(cols, ld int, out, basis, coefficients *float32)", 40, "computes columns of products with few coefficients.")
	a.op("MOVQ cols+0(FP), CX")
	a.op("MOVQ ld+8(FP), DX")
	a.op("MOVQ out+16(FP), DI")
	a.op("MOVQ basis+24(FP), R8")
	a.op("MOVQ coefficients+32(FP), SI")
	a.op("LEAQ (DX*4), R9")
	a.op("VPXOR X15, X15, X15")
	a.label(name + "Column")
	a.op("XORQ R10, R10")
	a.label(name + "Sums")
	for i := range vectors {
		a.op("%s %s, %s, %s", l.logic("VPXOR"), l.r(i), l.r(i), l.r(i))
	}
	a.op("MOVQ SI, R11")
	a.op("LEAQ (R8)(R10*1), R12")
	a.op("MOVQ DX, R13")
	a.label(name + "Word")
	a.setBits(l)
	a.op("TESTQ AX, AX")
	a.op("JZ %sZeros", name)
	a.label(name + "Bit")
	a.op("BSFQ AX, BX")
	a.op("VBROADCASTSS (R11)(BX*4), %s", l.r(8))
	a.op("IMULQ R9, BX")
	for i := range vectors {
		a.op("VFMADD231PS %d(R12)(BX*1), %s, %s", i*l.bytes, l.r(8), l.r(i))
	}
	a.op("LEAQ -1(AX), BX")
	a.op("ANDQ BX, AX")
	a.op("JNZ %sBit", name)
	a.label(name + "Zeros")
	a.op("MOVQ R9, BX")
	a.op("SHLQ $6, BX")
	a.op("ADDQ BX, R12")
	a.op("ADDQ $256, R11")
	a.op("SUBQ $64, R13")
	a.op("JNZ %sWord", name)
	a.op("LEAQ (DI)(R10*1), BX")
	for i := range vectors {
		a.op("VMOVUPS %s, %d(BX)", l.r(i), i*l.bytes)
	}
	a.op("ADDQ $256, R10")
	a.op("CMPQ R10, R9")
	a.op("JLT %sSums", name)
	a.op("ADDQ R9, SI")
	a.op("ADDQ R9, DI")
	a.op("DECQ CX")
	a.op("JNZ %sColumn", name)
	a.end()
}

// setBits sets the bits of AX for those of 64 floats at R11 that are not +0. It uses BX and vectors
// from 8 on; on AVX2, 15 holds zeros.
func (a *assembly) setBits(l lane) {
	if l.register == "Z" {
		for i := range 4 {
			a.op("VMOVDQU32 %d(R11), Z%d", 64*i, 8+i)
			a.op("VPTESTMD Z%d, Z%d, K%d", 8+i, 8+i, 1+i)
		}
		a.op("KUNPCKWD K1, K2, K1")
		a.op("KUNPCKWD K3, K4, K3")
		a.op("KUNPCKDQ K1, K3, K1")
		a.op("KMOVQ K1, AX")
		return
	}
	a.op("XORQ AX, AX")
	for i := 7; i >= 0; i-- {
		a.op("VPCMPEQD %d(R11), Y15, Y8", 32*i)
		a.op("VMOVMSKPS Y8, BX")
		a.op("SHLQ $8, AX")
		a.op("ORQ BX, AX")
	}
	a.op("NOTQ AX")
}

// fetch prefetches rows of cache lines.
func fetch(a *assembly, l lane) {
	name := "fetch" + l.suffix
	a.function(name, "(rows, bytes int, x *float32, stride uintptr)", 32, "brings rows into the second-level cache.")
	a.op("MOVQ rows+0(FP), CX")
	a.op("MOVQ bytes+8(FP), DX")
	a.op("MOVQ x+16(FP), SI")
	a.op("MOVQ stride+24(FP), R8")
	a.label(name + "Row")
	a.op("XORQ AX, AX")
	a.label(name + "Line")
	a.op("PREFETCHT1 (SI)(AX*1)")
	a.op("ADDQ $64, AX")
	a.op("CMPQ AX, DX")
	a.op("JLT %sLine", name)
	a.op("ADDQ R8, SI")
	a.op("DECQ CX")
	a.op("JNZ %sRow", name)
	a.op("RET")
}
