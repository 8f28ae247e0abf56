package main

import (
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

// peak writes a loop that measures the processor's peak of products of bytes: dots independent
// instructions a round, enough to hide their latency, with operands in registers.
func peak(f *asm.File, name string, dots int, begin, dot func(i int), end ...func()) {
	f.Function(name, "(n int)", 8, fmt.Sprintf("does n rounds of %d dot products of vectors or tiles; see peakPlain.", dots))
	f.Op("MOVQ n+0(FP), CX")
	for i := range dots {
		begin(i)
	}
	f.Label("round")
	for i := range dots {
		dot(i)
	}
	f.Op("DECQ CX")
	f.Op("JNE round")
	for _, e := range end {
		e()
	}
	f.Op("VZEROUPPER")
	f.Op("RET")
}

// writePeaks writes the loops for amd64, that of AVX-VNNI with d.
func writePeaks(f *asm.File, d dot) {
	peak(f, "peakVNNI", 24, func(i int) { f.Op("VPXORD Z%d, Z%d, Z%d", i, i, i) }, func(i int) { f.Op("VPDPBUSD Z24, Z25, Z%d", i) })
	peak(f, "peakAVXVNNI", 12, func(i int) { f.Op("VPXOR Y%d, Y%d, Y%d", i, i, i) }, func(i int) { d(f, 12, 13, i) })
	peak(f, "peakAVX2", 6, func(i int) { f.Op("VPXOR Y%d, Y%d, Y%d", i, i, i) }, func(i int) {
		f.Op("VPMADDUBSW Y12, Y13, Y%d", 6+i)
		f.Op("VPMADDWD Y14, Y%d, Y%d", 6+i, 6+i)
		f.Op("VPADDD Y%d, Y%d, Y%d", 6+i, i, i)
	})
	config(f, "peakAMXConfig", [][2]int{{16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}, {16, 64}})
	configured := false
	peak(f, "peakAMX", 4, func(i int) {
		if !configured {
			configure(f, "peakAMXConfig")
			configured = true
		}
		tileZero(f, i)
	}, func(i int) { tileDot(f, 5, 4, i) }, func() { tileRelease(f) })
}

// peakARM is peak for arm64.
func peakARM(f *asm.File, name string, dot wordOf) {
	const dots = 24
	f.Function(name, "(n int)", 8, fmt.Sprintf("does n rounds of %d products of vectors; see peakPlain.", dots))
	f.Op("MOVD n+0(FP), R0")
	for i := range dots {
		f.Op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	f.Label("round")
	for i := range dots {
		word(f, dot, i, 24, 25)
	}
	f.Op("SUBS $1, R0")
	f.Op("BNE round")
	f.Op("RET")
}
