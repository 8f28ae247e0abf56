package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// checkAdamW does a step with each kernel and compares the bits of all that it changes with those
// of plain Go.
func checkAdamW(t *testing.T, x, m, v, g []float32, s AdamWStep) {
	t.Helper()
	kernels := Kernels()
	step := func(kernel Kernel) [3][]float32 {
		xx, mm, vv := append([]float32(nil), x...), append([]float32(nil), m...), append([]float32(nil), v...)
		NewWorker(kernel).AdamW(xx, mm, vv, g, s)
		return [3][]float32{xx, mm, vv}
	}
	want := step(kernels[len(kernels)-1])
	for _, kernel := range kernels {
		got := step(kernel)
		for i, name := range []string{"weights", "means", "mean squares"} {
			expectSame(t, fmt.Sprintf("%s by %s, %d elements", name, kernel.Name(), len(x)), got[i], want[i])
		}
	}
}

var adamwSteps = []AdamWStep{
	{Beta1: 0.9, Fresh1: 0.1, Beta2: 0.95, Fresh2: 0.05, Keep: 0.9999, Rate: 1e-3, Scale: 1.5, Eps: 1e-8},
	{Beta1: 0, Fresh1: 1, Beta2: 0, Fresh2: 1, Keep: 1, Rate: 1, Scale: 1, Eps: 1},
	{Beta1: 0.999, Fresh1: 1e-3, Beta2: 0.99999, Fresh2: 1e-5, Keep: 0, Rate: 1e30, Scale: 1e10, Eps: 1e-18},
}

func TestAdamWHasTheSameBitsOnEveryKernel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 48, 100, 1000} {
		for mode := range 4 {
			for _, s := range adamwSteps {
				x, m, g := random(r, n, mode), random(r, n, mode), random(r, n, mode)
				v := random(r, n, mode)
				for i := range v {
					v[i] = max(v[i], -v[i])
				}
				checkAdamW(t, x, m, v, g, s)
			}
		}
	}
}

func TestAdamWHasTheSameBitsOnSpecialNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 4000 {
		k := random(r, 8, []int{0, 2, 4}[i%3])
		s := AdamWStep{Beta1: k[0], Fresh1: k[1], Beta2: k[2], Fresh2: k[3], Keep: k[4], Rate: k[5], Scale: k[6], Eps: k[7]}
		const n = 96
		checkAdamW(t, random(r, n, 4), random(r, n, 4), random(r, n, 4), random(r, n, 4), s)
	}
}

func FuzzAdamW(f *testing.F) {
	f.Add(uint64(1), uint8(33), uint8(2), float32(0.9), float32(0.95), float32(1e-3), float32(1e-8))
	f.Fuzz(func(t *testing.T, seed uint64, n, mode uint8, beta1, beta2, rate, eps float32) {
		r := rand.New(rand.NewPCG(seed, 1))
		size, kind := int(n), int(mode%4)
		checkAdamW(t, random(r, size, kind), random(r, size, kind), random(r, size, kind), random(r, size, kind),
			AdamWStep{Beta1: beta1, Fresh1: 1 - beta1, Beta2: beta2, Fresh2: 1 - beta2, Keep: 0.5, Rate: rate, Scale: 2, Eps: eps})
	})
}
