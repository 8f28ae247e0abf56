package exact

import "fmt"

// A Kernel is a set of inner loops for one kind of processor. All kernels compute the same bits.
type Kernel struct {
	name   string
	mr, nr int // rows and columns of a tile of a product
	// tile computes C (count·mr, nr) = A·B or C + A·B, tile by tile; see tilePlain, which is the
	// definition. If side is not nil it may copy pieces from from to to meanwhile.
	tile       func(kc int, a *float32, rs, cs uintptr, b, c *float32, ldc, acc uintptr, count int, step uintptr, side *sideCopy, from, to *float32)
	sideCopies bool // tile does
	// packB and packA copy rows to panels of nr and of mr columns; see packPanel, which does it in
	// plain Go.
	packB, packA func(rows, panels int, dst *float32, panel uintptr, src *float32, stride uintptr)
	// packColumns copies columns to a panel, 8 at a time; see packPanel. nil if the kernel has
	// none.
	packColumns func(depth, squares int, dst *float32, wide uintptr, src *float32, stride uintptr)

	// fold and foldMax are those of lanes. nil if the kernel has none.
	fold, foldMax func(l *lanes) float32

	// Row kernels: the functions of rows_plain.go for n elements, a multiple of 16. nil where the
	// kernel has none.
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

// Name is "avx512", "avx2", "neon" or "plain".
func (kn Kernel) Name() string { return kn.name }

// Kernels returns the kernels this processor can run, the fastest first. The last one is "plain",
// which is portable Go.
func Kernels() []Kernel {
	return append(processorKernels(), Kernel{name: "plain", mr: 4, nr: 16, tile: tilePlain})
}

// KernelNamed returns the kernel of that name, for tests and for whoever wants to compare kernels
// on one machine.
func KernelNamed(name string) (Kernel, error) {
	var names []string
	for _, kn := range Kernels() {
		if kn.name == name {
			return kn, nil
		}
		names = append(names, kn.name)
	}
	return Kernel{}, fmt.Errorf("this processor has no kernel %q: it has %q", name, names)
}
