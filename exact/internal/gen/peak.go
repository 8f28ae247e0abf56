package main

import "fmt"

const (
	peakSignature = "(n int, x, c *float32)"
	peakDoc       = "does n rounds of %d vectors of fused multiply-adds; see peakPlain."
	peakBytes     = 24
)

// peak writes the loop that measures the processor's peak of fused multiply-adds. It has at least 8
// independent ones, enough to hide their latency on any processor with these instructions, and
// keeps operands in registers.
func (t tile) peak(a *assembly) {
	vectors := t.count * 3 / 4
	name := "peak" + t.name[len("tile"):]
	a.function(name, peakSignature, peakBytes, fmt.Sprintf(peakDoc, vectors))
	a.op("MOVQ n+0(FP), CX")
	a.op("MOVQ x+8(FP), SI")
	a.op("MOVQ c+16(FP), DI")
	for i := range 2 {
		a.op("VMOVUPS %d(SI), %s", i*t.bytes, t.reg(vectors+i))
	}
	for i := range vectors {
		a.op("VMOVUPS %d(DI), %s", i*t.bytes, t.reg(i))
	}
	a.label(name + "Loop")
	for i := range vectors {
		a.op("VFMADD231PS %s, %s, %s", t.reg(vectors+1), t.reg(vectors), t.reg(i))
	}
	a.op("DECQ CX")
	a.op("JNZ %sLoop", name)
	for i := range vectors {
		a.op("VMOVUPS %s, %d(DI)", t.reg(i), i*t.bytes)
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

// peakNEON is peak for arm64.
func peakNEON(a *assembly) {
	const vectors = 24
	a.function("peakNEON", peakSignature, peakBytes, fmt.Sprintf(peakDoc, vectors))
	a.op("MOVD n+0(FP), R0")
	a.op("MOVD x+8(FP), R1")
	a.op("MOVD c+16(FP), R2")
	a.op("MOVD R2, R3")
	a.op("VLD1 (R1), [V%d.S4, V%d.S4]", vectors, vectors+1)
	four := func(i int) string { return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", i, i+1, i+2, i+3) }
	for i := 0; i < vectors; i += 4 {
		a.op("VLD1.P 64(R2), %s", four(i))
	}
	a.label("peakNEONLoop")
	for i := range vectors {
		a.op("VFMLA V%d.S4, V%d.S4, V%d.S4", vectors, vectors+1, i)
	}
	a.op("SUBS $1, R0, R0")
	a.op("BNE peakNEONLoop")
	for i := 0; i < vectors; i += 4 {
		a.op("VST1.P %s, 64(R3)", four(i))
	}
	a.op("RET")
}
