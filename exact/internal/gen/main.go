// Command gen writes the assembly of package exact and its Go declarations to standard output:
//
//	go run ./internal/gen amd64 > kernels_amd64.s
//	go run ./internal/gen amd64.go > kernels_amd64.go
//
// and likewise for arm64. `go generate ./exact` runs it. A test of package exact fails if the files
// differ from its output.
package main

import (
	"flag"
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/internal/asm"
)

func main() {
	flag.Parse()
	text, ok := files()[flag.Arg(0)]
	if !ok {
		panic("gen: name a file to write: amd64, amd64.go, arm64 or arm64.go")
	}
	fmt.Print(text)
}

// files returns the text of each generated file.
func files() map[string]string {
	amd64, arm64 := newAssembly(), newAssembly()
	for _, t := range tilesAMD64 {
		t.write(amd64)
		if strings.HasPrefix(t.name, "tile") { // a row has the peak of its tile
			t.peak(amd64)
		}
	}
	for _, k := range packersAMD64 {
		k.write(amd64)
	}
	packColumnsAVX2(amd64)
	foldsAVX2(amd64)
	writeConstants(amd64)
	for _, l := range lanesAMD64 {
		for _, r := range rows {
			r.write(amd64, l)
		}
		adamw.write(amd64, l)
	}
	tileNEON(arm64)
	peakNEON(arm64)
	for _, k := range packersNEON {
		k.writeNEON(arm64)
	}
	packColumnsNEON(arm64)
	foldsNEON(arm64)
	writeConstants(arm64)
	for _, r := range rows {
		r.write(arm64, laneNEON)
	}
	adamw.write(arm64, laneNEON)
	return map[string]string{
		"amd64": amd64.Source(), "amd64.go": amd64.Declarations(),
		"arm64": arm64.Source(), "arm64.go": arm64.Declarations(),
	}
}

// An assembly is a file of kernels.
type assembly struct{ *asm.File }

func newAssembly() *assembly { return &assembly{asm.New("exact/internal/gen", "exact")} }
