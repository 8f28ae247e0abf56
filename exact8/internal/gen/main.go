// Command gen writes the assembly of package exact8, and the Go declarations that belong to it, to
// standard output:
//
//	go run ./internal/gen amd64 > kernels_amd64.s
//	go run ./internal/gen amd64.go > kernels_amd64.go
//	go run ./internal/gen arm64 > kernels_arm64.s
//	go run ./internal/gen arm64.go > kernels_arm64.go
//
// `go generate ./exact8` runs it; a test of package exact8 fails when the files are not what it
// writes. amd64.evex is amd64 for machines with AVX-512 that test the kernels for AVX-VNNI.
package main

import (
	"flag"
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

// files returns what can be written, by name.
func files() map[string]string {
	amd64, arm64 := amd64Of(dotVEX), asm.New("exact8/internal/gen", "exact8")
	writeNEON(arm64)
	writeI8MM(arm64)
	peakARM(arm64, "peakNEON", sdot)
	peakARM(arm64, "peakI8MM", smmla)
	return map[string]string{
		"amd64": amd64.Source(), "amd64.go": amd64.Declarations(), "arm64": arm64.Source(), "arm64.go": arm64.Declarations(),
		"amd64.evex": amd64Of(dotEVEX).Source(),
	}
}

// amd64Of returns the kernels for amd64, those for AVX-VNNI with d.
func amd64Of(d dot) *asm.File {
	f := asm.New("exact8/internal/gen", "exact8")
	constants(f)
	writeVNNI(f)
	writeAMX(f)
	writeAVX2(f)
	writeAVXVNNI(f, d)
	writePeaks(f, d)
	maker(f)
	return f
}

// maker asks CPUID for the first four letters of the name of the processor's maker.
func maker(f *asm.File) {
	f.Function("maker", "() (letters uint32)", 4, "returns the first four letters of the name of the processor's maker.")
	f.Op("XORL AX, AX")
	f.Op("XORL CX, CX")
	f.Op("CPUID")
	f.Op("MOVL BX, letters+0(FP)")
	f.Op("RET")
}

func main() {
	flag.Parse()
	text, ok := files()[flag.Arg(0)]
	if !ok {
		panic("gen: name a file to write: amd64, amd64.go, arm64 or arm64.go")
	}
	fmt.Print(text)
}
