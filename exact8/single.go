package exact8

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/entrain-network/entrain/exact"
)

// single is the memory of a product of one block of k.
type single struct {
	scratch      []float32
	padded       [2][Block * Block]float32 // operands that are smaller
	bytes        [Block * Block]byte
	a            [Block * panelA]byte
	b            [Block * panelB]byte
	scaleA       [panelA]uint32
	scaleB, sums [panelB]uint32
	c            [panelA * panelB]float32 // whole tiles
	args         tileArgs
}

var singles = sync.Pool{New: func() any { return &single{scratch: newScratch()} }}

// GemmOn is Gemm with a worker's kernel, for m, n and k of at most Block.
func GemmOn(w *exact.Worker, m, n, k int, a []float32, ars, acs int, b []float32, brs, bcs int, c []float32, ldc int, acc bool) {
	if max(m, n, k) > Block {
		panic(fmt.Sprintf("exact8: GemmOn of %d by %d by %d", m, n, k))
	}
	if m == 0 || n == 0 || k == 0 {
		Gemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc, acc)
		return
	}
	kernel := kernelsOf(w.Kernel())[0]
	s := singles.Get().(*single)
	defer singles.Put(s)
	s.left(&kernel, m, k, a, ars, acs)
	s.right(&kernel, n, k, b, bcs, brs)
	for i := range Block {
		if bad(s.scaleA[i], scaleA(mostExponent+1)) || bad(s.scaleB[i], scaleB(mostExponent+1)) {
			Gemm(m, n, k, a, ars, acs, b, brs, bcs, c, ldc, acc)
			return
		}
	}
	g := &s.args
	g.b, g.scaleB, g.sums = &s.b[0], &s.scaleB[0], &s.sums[0]
	g.a, g.scaleA, g.c, g.next, g.ldc = address(&s.a[0]), address(&s.scaleA[0]), address(&s.c[0]), address(&s.c[0]), 4*panelB
	g.blocks, g.acc, g.count, g.scratch = 1, 0, (m+kernel.tileRows-1)/kernel.tileRows, &s.scratch[0]
	if acc {
		g.acc = 1
		for i := range m {
			copy(s.c[i*panelB:i*panelB+n], c[i*ldc:])
		}
	}
	kernel.tile(g)
	for i := range m {
		copy(c[i*ldc:i*ldc+n], s.c[i*panelB:])
	}
}

// whole returns x (rows, k) as a block of Block rows of Block elements: as it is, or a copy filled
// up with zeros. It reports whether rows, rather than columns, lie side by side.
func (s *single) whole(i, rows, k int, x []float32, xrs, xcs int) (from *float32, byRows bool) {
	if rows == Block && k == Block && max(xrs, xcs) == Block && min(xrs, xcs) == 1 {
		return &x[0], xcs == 1
	}
	to := &s.padded[i]
	clear(to[:])
	for r := range rows {
		for p := range k {
			to[r*Block+p] = x[r*xrs+p*xcs]
		}
	}
	return &to[0], true
}

// left quantizes A.
func (s *single) left(kernel *kernel, rows, k int, x []float32, xrs, xcs int) {
	g := &s.args
	from, byRows := s.whole(0, rows, k, x, xrs, xcs)
	if byRows {
		kernel.quantizeRow(Block/together, from, &s.a[0], kernel.flip, 133, &s.scaleA[0], 4, &s.scratch[0])
		g.inRows(kernel, Block)
		return
	}
	for i := 0; i < Block; i += 16 {
		kernel.quantizeLeft(offset(from, i), 4*Block, &s.a[kernel.rowBytes*i], &s.scaleA[i], &s.scratch[0])
	}
	g.inPanels(kernel)
}

// right quantizes B, given as its transpose.
func (s *single) right(kernel *kernel, rows, k int, x []float32, xrs, xcs int) {
	from, byRows := s.whole(1, rows, k, x, xrs, xcs)
	if !byRows {
		kernel.quantizeRight(from, 4*Block, &s.b[0], &s.scaleB[0], &s.sums[0], &s.scratch[0])
		return
	}
	kernel.quantizeRow(Block/together, from, &s.bytes[0], 0, 6, &s.scaleB[0], 4, &s.scratch[0])
	for q := 0; q < panelB; q += 8 {
		kernel.transpose(1, &s.bytes[q*Block], Block, &s.b[four*q], four*panelB)
	}
	kernel.sums(1, &s.b[0], &s.sums[0])
}

// offset returns the address of the float that lies i floats beyond x.
func offset(x *float32, i int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(x), 4*i)) }
