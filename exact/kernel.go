package exact

import "fmt"

// A Kernel is a set of inner loops for one kind of processor. All kernels compute the same bits.
type Kernel struct {
	name   string
	mr, nr int // rows and columns of a tile of a product
	// tile computes C (count·mr, nr) = A·B or C + A·B, tile by tile, as tilePlain defines. Unless
	// side is nil, it may meanwhile copy pieces from from to to.
	tile func(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr, count int, step uintptr, side *sideCopy, from, to *float32)
	// row is tile for one row, without sideCopy. It may be nil.
	row        func(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr, count int, step uintptr, side *sideCopy, from, to *float32)
	sideCopies bool // tile copies from from to to
	// packB and packA copy rows to panels of nr and mr columns, as packPanel defines.
	packB, packA func(rows, panels int, dst *float32, panel uintptr, src *float32, stride uintptr)
	// packColumns copies columns to a panel, 8 at a time, as packPanel defines. It may be nil.
	packColumns func(depth, squares int, dst *float32, wide uintptr, src *float32, stride uintptr)

	// fold and foldMax are the methods of lanes. They may be nil.
	fold, foldMax func(l *lanes) float32

	// The row kernels are the functions of rows_plain.go for n elements, a multiple of 16. Each may
	// be nil.
	add             func(n int, y, x *float32)
	scale           func(n int, x *float32, k float32)
	dot             func(n int, x, y *float32, l *lanes)
	dot3            func(n int, x, y, z *float32, l *lanes)
	max             func(n int, x *float32, l *lanes)
	normalize       func(n int, y, x, g *float32, inv float32)
	normBackward    func(n int, dx, dg, dy, x, g *float32, inv, c float32)
	rotate          func(n int, a, b, cos, sin *float32)
	rotateBack      func(n int, a, b, cos, sin *float32)
	expSum          func(n int, x *float32, scale, shift float32, l *lanes)
	expScale        func(n int, x *float32, scale, shift, inv float32)
	softmaxBackward func(n int, dp, p *float32, sum, scale float32)
	swiglu          func(n int, h, g, u *float32)
	swigluBackward  func(n int, dh, g, u *float32)
}

// Name returns "avx512", "avx2", "neon" or "plain".
func (kn Kernel) Name() string { return kn.name }

// Kernels returns the kernels that this processor can run, fastest first. The last one is "plain",
// in portable Go.
func Kernels() []Kernel {
	return append(processorKernels(), Kernel{name: "plain", mr: 4, nr: 16, tile: tilePlain})
}

// KernelNamed returns the kernel with the given name, for tests and comparisons on one machine. It
// returns an error if this processor does not have it.
func KernelNamed(name string) (Kernel, error) {
	var names []string
	for _, kn := range Kernels() {
		if kn.name == name {
			return kn, nil
		}
		names = append(names, kn.name)
	}
	return Kernel{}, fmt.Errorf("this processor has no kernel %q; it has %q", name, names)
}
