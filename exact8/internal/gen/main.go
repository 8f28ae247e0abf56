// Command gen writes the assembly of package exact8, and the Go declarations that belong to it, to
// standard output:
//
//	go run ./internal/gen amd64 > kernels_amd64.s
//	go run ./internal/gen amd64.go > kernels_amd64.go
//
// `go generate ./exact8` runs it; a test of package exact8 fails when the files are not what it
// writes.
package main

import (
	"flag"
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

func main() {
	flag.Parse()
	f := asm.New("exact8/internal/gen", "exact8")
	constants(f)
	writeVNNI(f)
	writeAVX2(f)
	switch flag.Arg(0) {
	case "amd64":
		fmt.Print(f.Source())
	case "amd64.go":
		fmt.Print(f.Declarations())
	default:
		panic("gen: name a file to write: amd64 or amd64.go")
	}
}
