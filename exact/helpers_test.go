package exact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// hostile are floats at the edges of binary32, without NaN and infinities.
var hostile = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126,
	0x1.fffffcp-127, math.MaxFloat32, -math.MaxFloat32, 0x1.000002p0, 0x1.fffffep-1, 0x1p-75, -0x1p64, 0x1p-24, 3e-39, -1e38, 0x1.555556p-2}

// random returns n floats: mode 0 ordinary ones, mode 1 of very different sizes with many zeros and subnormals, mode 2 hostile ones, mode 3 any
// bits at all, NaN and infinities included.
func random(r *rand.Rand, n, mode int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch mode {
		case 0:
			x[i] = float32(r.NormFloat64())
		case 1:
			x[i] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(200)-150))
			if r.IntN(4) == 0 {
				x[i] = float32(math.Copysign(0, r.Float64()-0.5))
			}
		case 2:
			x[i] = hostile[r.IntN(len(hostile))]
		case 3:
			x[i] = math.Float32frombits(r.Uint32())
		}
	}
	return x
}

// same tells whether two floats have the same bits, or are both NaN, whose bits are not defined.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

// expectSame fails unless two slices are the same to the last bit.
func expectSame(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: element %d of %d is %g (%#08x), want %g (%#08x)", what, i, len(want), got[i], math.Float32bits(got[i]), want[i],
				math.Float32bits(want[i]))
		}
	}
}
