package exact8

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/entrain-network/entrain/exact"
)

//go:generate sh -c "go run ./internal/gen amd64 > kernels_amd64.s"
//go:generate sh -c "go run ./internal/gen amd64.go > kernels_amd64.go"
//go:generate sh -c "go run ./internal/gen arm64 > kernels_arm64.s"
//go:generate sh -c "go run ./internal/gen arm64.go > kernels_arm64.go"

// A kernel is a set of inner loops for one kind of processor. The plain functions below are their
// definition.
type kernel struct {
	name          string
	tileRows      int    // rows of C in a tile; panelA is a multiple
	rowBytes      int    // of a row of A that lie together in a panel: four, or a block
	flip          uint32 // four times what is added to q, mod 256, in the bytes of A: 128 or 0
	tile          func(t *tileArgs)
	near          func(t *tileArgs) // tile for exponents of at most nearExponent; nil if not faster
	row           func(t *tileArgs) // tile, for a tile of one row
	quantizeRow   func(n int, src *float32, dst *byte, flip, base uint32, scale *uint32, step uintptr, scratch *float32)
	quantizeLeft  func(src *float32, stride uintptr, dst *byte, scale *uint32, scratch *float32)
	quantizeRight func(src *float32, stride uintptr, dst *byte, scale, sums *uint32, scratch *float32)
	transpose     func(n int, src *byte, stride uintptr, dst *byte, wide uintptr)
	sums          func(n int, src *byte, sums *uint32)
	peak          func(n int) // n rounds of
	peakProducts  int         // products of bytes
}

// plain is the kernel in portable Go.
var plain = kernel{
	name: "plain", tileRows: 6, rowBytes: four, flip: 0x80808080, tile: func(t *tileArgs) { tilePlain(t, 6) }, row: func(t *tileArgs) { tilePlain(t, 1) }, quantizeRow: quantizeRowPlain, quantizeLeft: quantizeLeftPlain, quantizeRight: quantizeRightPlain,
	transpose: transposePlain, sums: sumsPlain, peak: peakPlain, peakProducts: peakPlainProducts,
}

// Peak does the given number of rounds of independent products of bytes with operands in registers,
// and returns the number of operations, two for each product. Divided by the time taken, this is
// the peak of w's processor on one core.
func Peak(w *exact.Worker, rounds int) (operations int) {
	k := kernelsOf(w.Kernel())[0]
	k.peak(rounds)
	return 2 * rounds * k.peakProducts
}

const peakPlainProducts = 8

// peakPlain defines the loop: n rounds, at least one, of products that are added to sums.
func peakPlain(n int) {
	var sums [peakPlainProducts]int32
	a, b := int8(1), int8(2)
	for range n {
		for i := range sums {
			sums[i] += int32(a) * int32(b)
		}
		a, b = b, int8(sums[0])
	}
	runtime.KeepAlive(sums)
}

// tileArgs are the arguments of a tile kernel. Assembly knows where its fields lie. a, scaleA and c
// move on from tile to tile. Steps are in bytes.
type tileArgs struct {
	a                           uintptr // bytes of the first row
	rowStep, fourStep, tileStep uintptr // to the next row, the next four k, the next tile
	scaleA                      uintptr // of the first row; panelA words from block to block
	b                           *byte
	scaleB, sums                *uint32 // panelB words from block to block
	c, ldc                      uintptr
	blocks                      int
	acc                         int     // 1 to add to C
	count                       int     // of tiles
	next                        uintptr // C of the tile after the last, for its cache lines
	blockStep                   uintptr // of a, to the next block of k
	scratch                     *float32
}

// inRows says that rows of A lie stride bytes apart.
func (t *tileArgs) inRows(k *kernel, stride int) {
	t.rowStep, t.fourStep, t.blockStep, t.tileStep = uintptr(stride), four, Block, uintptr(k.tileRows*stride)
}

// inPanels says that A lies in panels.
func (t *tileArgs) inPanels(k *kernel) {
	t.rowStep, t.fourStep, t.blockStep, t.tileStep = uintptr(k.rowBytes), four, Block*panelA, uintptr(k.tileRows*k.rowBytes)
	if k.rowBytes == four {
		t.fourStep = four * panelA
	}
}

// at returns the element of type T that lies n bytes beyond p.
func at[T any](p uintptr, n int) *T {
	return (*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&p)), n))
}

// tilePlain computes count tiles of C, each of rows by panelB, one below another. Bytes of A are
// q+128; kernels for which they are q have no use for sums.
func tilePlain(t *tileArgs, rows int) {
	b := unsafe.Slice(t.b, t.blocks*Block*panelB)
	scaleB, sums := unsafe.Slice(t.scaleB, t.blocks*panelB), unsafe.Slice(t.sums, t.blocks*panelB)
	for ; t.count > 0; t.count-- {
		for i := range rows {
			c := unsafe.Slice(at[float32](t.c, 0), panelB)
			if t.acc == 0 {
				clear(c)
			}
			for k := range t.blocks {
				var dots [panelB]int32
				for q := range dots {
					dots[q] = int32(sums[k*panelB+q])
				}
				for s := range fours {
					a := at[[four]byte](t.a, i*int(t.rowStep)+(k*fours+s)*int(t.fourStep))
					a0, a1, a2, a3 := int32(a[0]), int32(a[1]), int32(a[2]), int32(a[3])
					row := b[(k*fours+s)*four*panelB:][:four*panelB]
					for q := range dots {
						x := row[four*q : four*q+four : four*q+four]
						dots[q] += a0*int32(int8(x[0])) + a1*int32(int8(x[1])) + a2*int32(int8(x[2])) + a3*int32(int8(x[3]))
					}
				}
				scaleA := *at[uint32](t.scaleA, 4*(k*panelA+i))
				for q := range dots {
					scale := math.Float32frombits(scaleA + scaleB[k*panelB+q])
					c[q] = exact.FMA32(float32(dots[q]), scale, c[q])
				}
			}
			t.c += t.ldc
		}
		t.a += t.tileStep
		t.scaleA += 4 * uintptr(rows)
	}
}

// quantizeRowPlain quantizes n times together blocks of a row to bytes q, or q+128 if flip's bits
// are set, and stores e-base of each block as an exponent, step bytes apart.
func quantizeRowPlain(n int, src *float32, dst *byte, flip, base uint32, scale *uint32, step uintptr, _ *float32) {
	x, q := unsafe.Slice(src, n*together*Block), unsafe.Slice(dst, n*together*Block)
	for k := range n * together {
		var greatest uint32
		for _, v := range x[k*Block : (k+1)*Block] {
			greatest = max(greatest, math.Float32bits(v)&^(1<<31))
		}
		e := exponent(greatest)
		*(*uint32)(unsafe.Add(unsafe.Pointer(scale), k*int(step))) = (e - base) << 23
		if e > mostExponent {
			continue
		}
		factor := factor(e)
		for p := k * Block; p < (k+1)*Block; p++ {
			q[p] = byte(quantum(x[p], factor)) ^ byte(flip)
		}
	}
}

// column quantizes one column of a block: element p lies p times stride bytes beyond x, and its
// byte in four columns of dst.
func column(x *float32, stride uintptr, dst *byte, wide int, flip byte) (e uint32, sum int32) {
	var values [Block]float32
	var greatest uint32
	for p := range values {
		values[p] = *(*float32)(unsafe.Add(unsafe.Pointer(x), p*int(stride)))
		greatest = max(greatest, math.Float32bits(values[p])&^(1<<31))
	}
	e = exponent(greatest)
	if e > mostExponent {
		return e, 0
	}
	factor := factor(e)
	for p, v := range values {
		q := quantum(v, factor)
		sum += q
		*(*byte)(unsafe.Add(unsafe.Pointer(dst), p/four*four*wide+p%four)) = byte(q) ^ flip
	}
	return e, sum
}

// quantizeLeftPlain quantizes a block of 16 columns that lie side by side in memory, rows stride
// bytes apart, to a panel of A.
func quantizeLeftPlain(src *float32, stride uintptr, dst *byte, scale *uint32, _ *float32) {
	x, scales := unsafe.Slice(src, 16), unsafe.Slice(scale, 16)
	for i := range scales {
		e, _ := column(&x[i], stride, (*byte)(unsafe.Add(unsafe.Pointer(dst), four*i)), panelA, 0x80)
		scales[i] = scaleA(e)
	}
}

// quantizeRightPlain quantizes a block of panelB columns that lie side by side in memory, rows
// stride bytes apart, to a panel of B.
func quantizeRightPlain(src *float32, stride uintptr, dst *byte, scale, sums *uint32, _ *float32) {
	x, scales, minus := unsafe.Slice(src, panelB), unsafe.Slice(scale, panelB), unsafe.Slice(sums, panelB)
	for i := range scales {
		e, sum := column(&x[i], stride, (*byte)(unsafe.Add(unsafe.Pointer(dst), four*i)), panelB, 0)
		scales[i], minus[i] = scaleB(e), uint32(-128*sum)
	}
}

// transposePlain copies n times 8 rows of 8 words, rows stride bytes apart, to 8 rows of 8 words,
// wide bytes apart, each of which was a column.
func transposePlain(n int, src *byte, stride uintptr, dst *byte, wide uintptr) {
	for i := range n {
		for row := range 8 {
			for col := range 8 {
				word := *(*[four]byte)(unsafe.Add(unsafe.Pointer(src), row*int(stride)+four*(8*i+col)))
				*(*[four]byte)(unsafe.Add(unsafe.Pointer(dst), (8*i+col)*int(wide)+four*row)) = word
			}
		}
	}
}

// sumsPlain stores -128·Σq of each column of n blocks of a panel of B.
func sumsPlain(n int, src *byte, sums *uint32) {
	b, minus := unsafe.Slice(src, n*Block*panelB), unsafe.Slice(sums, n*panelB)
	for k := range n {
		var sum [panelB]int32
		for i, q := range b[k*Block*panelB : (k+1)*Block*panelB] {
			sum[i/four%panelB] += int32(int8(q))
		}
		for q := range sum {
			minus[k*panelB+q] = uint32(-128 * sum[q])
		}
	}
}
