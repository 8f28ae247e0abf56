package optim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

func newAdamW(t testing.TB, n int, cfg optim.AdamWConfig, pool *exact.Pool) *optim.AdamW {
	t.Helper()
	a, err := optim.NewAdamW(n, cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// normals returns n numbers around 0, of a standard deviation near 1.
func normals(label string, n int) []float32 {
	source := prng.New(wire.Sum("optim/test"), label)
	x := make([]float32, n)
	for i := range x {
		for range 12 {
			x[i] += float32(source.Uint64()>>40) / (1 << 24)
		}
		x[i] -= 6
	}
	return x
}

// The weights after each of three steps of torch.optim.AdamW (PyTorch 2.15.0, lr 0.01, betas 0.9
// and 0.95, eps 1e-8, weight_decay 0.1).
func TestAdamWAgreesWithPyTorch(t *testing.T) {
	params := []float32{1, -0.5, 0.25, 3, 0}
	a := newAdamW(t, len(params), optim.DefaultAdamW(), nil)
	for step, c := range []struct{ grad, want []float32 }{
		{[]float32{0.1, -0.2, 0, 5, 1e-12}, []float32{0.989000022, -0.489500016, 0.249750003, 2.98699999, -9.99899953e-07}},
		{[]float32{-0.3, 0.01, 1e-3, -5, 1e-12}, []float32{0.992904007, -0.482609481, 0.242150769, 2.98453951, -1.99880014e-06}},
		{[]float32{0.7, 0.5, -2e-3, 0.125, 0}, []float32{0.987745643, -0.486169308, 0.244989902, 2.98185253, -2.62774665e-06}},
	} {
		a.Step(params, c.grad, 0.01)
		for i, want := range c.want {
			if d := math.Abs(float64(params[i] - want)); d > 2e-7*math.Abs(float64(want))+1e-12 {
				t.Errorf("step %d: weight %d is %.9g, want %.9g", step+1, i, params[i], want)
			}
		}
	}
}

// adamw64 is one step in binary64: what AdamW rounds.
func adamw64(cfg optim.AdamWConfig, x, m, v, g, lr float64, t int) (float64, float64, float64) {
	b1, b2 := float64(cfg.Beta1), float64(cfg.Beta2)
	m = b1*m + (1-b1)*g
	v = b2*v + (1-b2)*g*g
	mean, square := m/(1-math.Pow(b1, float64(t))), v/(1-math.Pow(b2, float64(t)))
	return x*(1-lr*float64(cfg.WeightDecay)) - lr*mean/(math.Sqrt(square)+float64(cfg.Eps)), m, v
}

// Over many steps with gradients of all sizes the rounded weights stay near the real ones.
func TestAdamWStaysNearTheRealNumbers(t *testing.T) {
	const n, steps, lr = 400, 60, 1e-2
	for _, cfg := range []optim.AdamWConfig{optim.DefaultAdamW(), {Beta1: 0, Beta2: 0.999, Eps: 1e-6}, {Beta1: 0.5, Beta2: 0, Eps: 1e-3, WeightDecay: 1}} {
		params := normals("params", n)
		x, m, v := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float64(params[i])
		}
		a := newAdamW(t, n, cfg, nil)
		for step := 1; step <= steps; step++ {
			grad := normals(fmt.Sprint("grad ", step), n)
			for i := range grad {
				grad[i] *= float32(math.Pow(10, float64(i%9-6)))
				x[i], m[i], v[i] = adamw64(cfg, x[i], m[i], v[i], float64(grad[i]), lr, step)
			}
			a.Step(params, grad, lr)
		}
		for i := range x {
			if d := math.Abs(float64(params[i]) - x[i]); d > 2e-6*(math.Abs(x[i])+steps*lr) {
				t.Errorf("%+v: weight %d is %g, want %g", cfg, i, params[i], x[i])
			}
		}
	}
}

// adamwHash is part of the definition of the arithmetic: every machine must reach it.
const adamwHash = "1d9148b558cdc24a75b72f6a69955466126286660e23b7514b30c9a59c40f940"

func TestAdamWHasTheSameBitsForAnyNumberOfWorkers(t *testing.T) {
	const n = 3<<14 + 21
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 2, 5} {
			pool := exact.NewPoolOf(workers, kernel)
			params := normals("params", n)
			a := newAdamW(t, n, optim.DefaultAdamW(), pool)
			for step := range 4 {
				a.Step(params, normals(fmt.Sprint("grad ", step), n), 3e-3)
			}
			if got := wire.Sum("adamw", tensor.Bytes(params)).String(); got != adamwHash {
				t.Errorf("%s, %d workers: weights hash to %s, want %s", kernel.Name(), workers, got, adamwHash)
			}
			pool.Close()
		}
	}
}

func TestAdamWDecaysWeightsWithoutAGradient(t *testing.T) {
	params := []float32{2, -4, 0}
	cfg := optim.DefaultAdamW()
	cfg.WeightDecay = 0.5
	newAdamW(t, 3, cfg, nil).Step(params, make([]float32, 3), 0.5)
	if params[0] != 1.5 || params[1] != -3 || params[2] != 0 {
		t.Errorf("weights are %v, want [1.5 -3 0]", params)
	}
}

func TestAdamWAllocatesNothing(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	params, grad := normals("params", 1<<15), normals("grad", 1<<15)
	a := newAdamW(t, len(params), optim.DefaultAdamW(), pool)
	if n := testing.AllocsPerRun(5, func() { a.Step(params, grad, 1e-3) }); n != 0 {
		t.Errorf("%g allocations in a step, want none", n)
	}
}

func TestAdamWReportsEveryFault(t *testing.T) {
	nan := float32(math.NaN())
	_, err := optim.NewAdamW(1, optim.AdamWConfig{Beta1: 1, Beta2: nan, Eps: 0, WeightDecay: -1}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"beta1 is 1", "beta2 is NaN", "eps is 0", "weight decay is -1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q says nothing of %q", err, want)
		}
	}
}

func TestAdamWRefusesWhatItWasNotMadeFor(t *testing.T) {
	for name, f := range map[string]func(*optim.AdamW){
		"parameters of another length": func(a *optim.AdamW) { a.Step(make([]float32, 2), make([]float32, 3), 1e-3) },
		"gradient of another length":   func(a *optim.AdamW) { a.Step(make([]float32, 3), make([]float32, 2), 1e-3) },
		"a negative rate":              func(a *optim.AdamW) { a.Step(make([]float32, 3), make([]float32, 3), -1) },
		"a rate that is not a number":  func(a *optim.AdamW) { a.Step(make([]float32, 3), make([]float32, 3), float32(math.NaN())) },
		"a rate that turns weights":    func(a *optim.AdamW) { a.Step(make([]float32, 3), make([]float32, 3), 11) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(newAdamW(t, 3, optim.DefaultAdamW(), nil))
		})
	}
}

func BenchmarkAdamW(b *testing.B) {
	const n = 1 << 22
	params, grad := normals("params", n), normals("grad", n)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			pool := exact.NewPool(workers)
			defer pool.Close()
			a := newAdamW(b, n, optim.DefaultAdamW(), pool)
			b.SetBytes(4 * n)
			b.ReportAllocs()
			for b.Loop() {
				a.Step(params, grad, 1e-3)
			}
		})
	}
}
