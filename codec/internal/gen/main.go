// Command gen writes the assembly of package codec/internal/vec and its Go declarations to standard
// output:
//
//	go run ../gen amd64 > kernels_amd64.s
//	go run ../gen amd64.go > kernels_amd64.go
//
// `go generate ./codec/internal/vec` runs it. A test there fails if the files differ from its
// output.
package main

import (
	"flag"
	"fmt"

	"github.com/entrain-network/entrain/internal/asm"
)

func main() {
	flag.Parse()
	a := newAssembly()
	for _, l := range lanes {
		for _, k := range kernels {
			k(a, l)
		}
	}
	for _, words := range []int{1, 2, 4, 5} {
		below(a, words)
	}
	switch flag.Arg(0) {
	case "amd64":
		fmt.Print(a.Source())
	case "amd64.go":
		fmt.Print(a.Declarations())
	default:
		panic("gen: name a file to write: amd64 or amd64.go")
	}
}

// An assembly is a file of kernels.
type assembly struct{ *asm.File }

func newAssembly() *assembly { return &assembly{asm.New("codec/internal/gen", "vec")} }

// A lane is a set of vector instructions. 16 floats are one vector of AVX-512 or two of AVX2.
type lane struct {
	suffix   string // of function names
	register string // Z or Y
	bytes    int    // size of a register
}

var lanes = []lane{{"AVX512", "Z", 64}, {"AVX2", "Y", 32}}

// parts returns the number of registers that hold 16 floats.
func (l lane) parts() int { return 64 / l.bytes }

// r returns the name of a vector register.
func (l lane) r(n int) string { return fmt.Sprintf("%s%d", l.register, n) }

// logic returns the bitwise instruction with the given name. Those of AVX-512 have the size of
// elements in their names.
func (l lane) logic(name string) string {
	if l.register == "Z" {
		return name + "D"
	}
	return name
}

// repeat writes a loop whose body handles 16 elements. CX counts elements; the loop advances the
// pointers.
func (a *assembly) repeat(name string, pointers []string, body func()) {
	a.Label(name + "Loop")
	body()
	for _, p := range pointers {
		a.Op("ADDQ $64, %s", p)
	}
	a.Op("SUBQ $16, CX")
	a.Op("JNZ %sLoop", name)
}

func (a *assembly) end() {
	a.Op("VZEROUPPER")
	a.Op("RET")
}
