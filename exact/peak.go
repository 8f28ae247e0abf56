package exact

import "unsafe"

// A peakLoop does n rounds of c = fma(x, y, c) on each of its vectors c. x points to the vector x,
// with y behind it.
type peakLoop struct {
	run            func(n int, x, c *float32)
	vectors, lanes int
}

// peakRoundsMax is the most rounds of one call of peakLoop.run. At this number the sums still grow,
// so the multiply-adds are those of ordinary numbers.
const peakRoundsMax = 1 << 20

// Peak does the given number of rounds of independent fused multiply-adds with operands in
// registers. It returns the number of floating-point operations, two for each multiply-add. Divided
// by the time taken, this is the peak speed of the kernel on one core.
func (w *Worker) Peak(rounds int) (operations int) {
	loop := w.kernel.peakLoop()
	x, c := make([]float32, 2*loop.lanes), make([]float32, loop.vectors*loop.lanes)
	for i := range x {
		x[i] = 1 - float32(float32(i)/64)
	}
	for left := rounds; left > 0; left -= peakRoundsMax {
		clear(c)
		loop.run(min(left, peakRoundsMax), &x[0], &c[0])
	}
	return 2 * rounds * len(c)
}

// peakVectorsPlain is the number of vectors, of one lane each, in peakPlain.
const peakVectorsPlain = 8

// peakPlain defines the loop: n rounds, at least one, of multiply-adds on peakVectorsPlain numbers.
func peakPlain(n int, x, c *float32) {
	a, b := *x, *(*float32)(unsafe.Add(unsafe.Pointer(x), 4))
	t := *(*[peakVectorsPlain]float32)(unsafe.Pointer(c))
	for range n {
		for i := range t { // FMA32 as in tilePlain
			if s := float64(float64(a)*float64(b)) + float64(t[i]); roundsOnce(s) {
				t[i] = float32(s)
			} else {
				t[i] = fmaToOdd(a, b, t[i])
			}
		}
	}
	*(*[peakVectorsPlain]float32)(unsafe.Pointer(c)) = t
}
