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
	a.Function(name, peakSignature, peakBytes, fmt.Sprintf(peakDoc, vectors))
	a.Op("MOVQ n+0(FP), CX")
	a.Op("MOVQ x+8(FP), SI")
	a.Op("MOVQ c+16(FP), DI")
	for i := range 2 {
		a.Op("VMOVUPS %d(SI), %s", i*t.bytes, t.reg(vectors+i))
	}
	for i := range vectors {
		a.Op("VMOVUPS %d(DI), %s", i*t.bytes, t.reg(i))
	}
	a.Label(name + "Loop")
	for i := range vectors {
		a.Op("VFMADD231PS %s, %s, %s", t.reg(vectors+1), t.reg(vectors), t.reg(i))
	}
	a.Op("DECQ CX")
	a.Op("JNZ %sLoop", name)
	for i := range vectors {
		a.Op("VMOVUPS %s, %d(DI)", t.reg(i), i*t.bytes)
	}
	a.Op("VZEROUPPER")
	a.Op("RET")
}

// peakNEON is peak for arm64.
func peakNEON(a *assembly) {
	const vectors = 24
	a.Function("peakNEON", peakSignature, peakBytes, fmt.Sprintf(peakDoc, vectors))
	a.Op("MOVD n+0(FP), R0")
	a.Op("MOVD x+8(FP), R1")
	a.Op("MOVD c+16(FP), R2")
	a.Op("MOVD R2, R3")
	a.Op("VLD1 (R1), [V%d.S4, V%d.S4]", vectors, vectors+1)
	four := func(i int) string { return fmt.Sprintf("[V%d.S4, V%d.S4, V%d.S4, V%d.S4]", i, i+1, i+2, i+3) }
	for i := 0; i < vectors; i += 4 {
		a.Op("VLD1.P 64(R2), %s", four(i))
	}
	a.Label("peakNEONLoop")
	for i := range vectors {
		a.Op("VFMLA V%d.S4, V%d.S4, V%d.S4", vectors, vectors+1, i)
	}
	a.Op("SUBS $1, R0, R0")
	a.Op("BNE peakNEONLoop")
	for i := 0; i < vectors; i += 4 {
		a.Op("VST1.P %s, 64(R3)", four(i))
	}
	a.Op("RET")
}
