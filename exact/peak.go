package exact

import "unsafe"

// A peakLoop does n rounds of c = fma(x, y, c) on so many vectors c of so many lanes. x and y are a
// vector each, one after the other.
type peakLoop struct {
	run            func(n int, x, c *float32)
	vectors, lanes int
}

// peakRoundsMax is how many rounds Peak does in one go: few enough for the sums to go on growing,
// so that the work stays that of ordinary numbers.
const peakRoundsMax = 1 << 20

// Peak does rounds of the fused multiply-adds that products are made of, with nothing to hold them
// up: independent of each other, operands in registers. It returns how many floating-point
// operations that were, two for each multiply-add; divided by the time it took, that is the roof of
// what the kernel can reach on one core.
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

// peakVectorsPlain is the number of vectors, of one lane, of peakPlain.
const peakVectorsPlain = 8

// peakPlain is the definition: n rounds, at least one, of multiply-adds on peakVectorsPlain
// numbers.
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
