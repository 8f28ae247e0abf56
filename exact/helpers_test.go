package exact

import (
	"math"
	"math/rand/v2"
	"testing"
)

// hostile are floats at the edges of binary32, without NaN and infinities.
var hostile = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126,
	0x1.fffffcp-127, math.MaxFloat32, -math.MaxFloat32, 0x1.000002p0, 0x1.fffffep-1, 0x1p-75, -0x1p64, 0x1p-24, 3e-39, -1e38, 0x1.555556p-2}

// special are those, infinities, and NaNs of both signs and kinds.
var special = append([]float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xffc00001),
	math.Float32frombits(0x7f800001), math.Float32frombits(0xffffffff)}, hostile...)

// random returns n floats: mode 0 ordinary ones, mode 1 of very different sizes with many zeros and
// subnormals, mode 2 hostile ones, mode 3 any bits at all, NaN and infinities included, mode 4
// special ones.
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
		case 4:
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

// same reports whether two floats have the same bits, or are both NaN, whose bits are not defined.
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
