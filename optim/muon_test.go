package optim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Weights with a tall, a wide and a square matrix, and others before, between and after.
var mixed = tensor.NewLayout([]tensor.Spec{
	{Name: "gain", Shape: []int{19}}, {Name: "tall", Shape: []int{53, 30}}, {Name: "wide", Shape: []int{21, 70}},
	{Name: "bias", Shape: []int{3}}, {Name: "square", Shape: []int{33, 33}}, {Name: "embed", Shape: []int{40, 5}},
})

func matricesOf(l tensor.Layout, names ...string) (m []tensor.Tensor) {
	for _, t := range l.Tensors() {
		if slices.Contains(names, t.Name) {
			m = append(m, t)
		}
	}
	return m
}

func newMuon(t testing.TB, pool *exact.Pool) (*optim.Muon, []tensor.Tensor) {
	t.Helper()
	matrices := matricesOf(mixed, "tall", "wide", "square")
	o, err := optim.NewMuon(mixed.Len(), matrices, optim.DefaultAdamW(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return o, matrices
}

// muonHash is part of the definition of the arithmetic: every machine must reach it.
const muonHash = "8739e359bc368a4325ee430fb29ff711e4c54a4aa7ae476598896cd8b6489dee"

func TestMuonHasTheSameBitsForAnyNumberOfWorkers(t *testing.T) {
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 2, 5} {
			pool := exact.NewPoolOf(workers, kernel)
			o, _ := newMuon(t, pool)
			params := normals("params", mixed.Len())
			for step := range 4 {
				o.Step(params, normals(fmt.Sprint("grad ", step), mixed.Len()), 3e-3)
			}
			m, v, steps := o.Moments()
			hash := wire.Sum("test", tensor.Bytes(params), tensor.Bytes(m), tensor.Bytes(v)).String()
			if hash != muonHash || steps != 4 {
				t.Errorf("%s, %d workers: the hash after %d steps is %s, want %s", kernel.Name(), workers, steps, hash, muonHash)
			}
			pool.Close()
		}
	}
}

// muon64 is a step of one matrix in binary64, by loops over the definition.
func muon64(rows, columns int, w, m []float64, g []float32, lr, decay float64) {
	x := make([]float64, rows*columns)
	var sum float64
	for i := range x {
		m[i] = .95*m[i] + .05*float64(g[i])
		x[i] = .95*m[i] + .05*float64(g[i])
		sum += x[i] * x[i]
	}
	for i := range x {
		x[i] /= math.Sqrt(sum)
	}
	for range 5 {
		gram := make([]float64, rows*rows) // also for tall ones: the result is the same
		for i := range rows {
			for j := range rows {
				for k := range columns {
					gram[i*rows+j] += x[i*columns+k] * x[j*columns+k]
				}
			}
		}
		next := make([]float64, rows*columns)
		for i := range rows {
			for j := range rows {
				p := -4.775 * gram[i*rows+j]
				for k := range rows {
					p += 2.0315 * gram[i*rows+k] * gram[k*rows+j]
				}
				if i == j {
					p += 3.4445
				}
				for k := range columns {
					next[i*columns+k] += p * x[j*columns+k]
				}
			}
		}
		x = next
	}
	for i := range w {
		w[i] = w[i]*(1-lr*decay) - lr*.2*math.Sqrt(float64(max(rows, columns)))*x[i]
	}
}

func TestMuonStaysNearTheRealNumbers(t *testing.T) {
	const lr = 1e-2
	o, matrices := newMuon(t, nil)
	params := normals("params", mixed.Len())
	others := newAdamW(t, mixed.Len(), optim.DefaultAdamW(), nil)
	other := slices.Clone(params)
	var want, momentum [][]float64
	for _, m := range matrices {
		w := make([]float64, m.Len)
		for i, x := range m.Of(params) {
			w[i] = float64(x)
		}
		want, momentum = append(want, w), append(momentum, make([]float64, m.Len))
	}
	for step := range 6 {
		grad := normals(fmt.Sprint("grad ", step), mixed.Len())
		for i, m := range matrices {
			muon64(m.Shape[0], m.Shape[1], want[i], momentum[i], m.Of(grad), lr, .1)
		}
		o.Step(params, grad, lr)
		others.Step(other, grad, lr)
	}
	for i, m := range matrices {
		for k, x := range m.Of(params) {
			if d := math.Abs(float64(x) - want[i][k]); d > 1e-5 {
				t.Fatalf("%s: weight %d is %g, want %g", m.Name, k, x, want[i][k])
			}
		}
	}
	for _, x := range mixed.Tensors() {
		if !slices.ContainsFunc(matrices, func(m tensor.Tensor) bool { return m.Name == x.Name }) && !slices.Equal(x.Of(params), x.Of(other)) {
			t.Errorf("%s: other weights than AdamW's", x.Name)
		}
	}
}

// The singular values of a diagonal matrix are on its diagonal: those that are not tiny become
// nearly 1, whatever the gradient's scale, and nothing else changes.
func TestMuonMakesSingularValuesAlike(t *testing.T) {
	for _, scale := range []float32{1, 1e-30, 1e18} {
		l := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{4, 6}}})
		cfg := optim.DefaultAdamW()
		cfg.WeightDecay = 0
		o, err := optim.NewMuon(24, l.Tensors(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		params, grad := make([]float32, 24), make([]float32, 24)
		for i, x := range []float32{5, 1, -.2, 0} {
			grad[7*i] = x * scale
		}
		o.Step(params, grad, 1)
		unit := .2 * math.Sqrt(6)
		for i, x := range params {
			switch u := -float64(x) / unit; i {
			case 0, 7:
				if u < .65 || u > 1.25 {
					t.Errorf("scale %g: singular value %d is %g", scale, i/7, u)
				}
			case 14:
				if u > -.65 || u < -1.25 {
					t.Errorf("scale %g: the negative value is %g", scale, u)
				}
			default:
				if x != 0 {
					t.Errorf("scale %g: element %d is %g", scale, i, x)
				}
			}
		}
	}
}

func TestMuonRefuses(t *testing.T) {
	all := mixed.Tensors()
	for name, m := range map[string][]tensor.Tensor{
		"no matrix": {all[0]}, "not ascending": {all[2], all[1]}, "beyond the weights": {all[5]},
	} {
		if _, err := optim.NewMuon(mixed.Len()-1, m, optim.DefaultAdamW(), nil); err == nil || !strings.Contains(err.Error(), "is not a matrix among") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := optim.NewMuon(mixed.Len(), nil, optim.AdamWConfig{Beta1: 2}, nil); err == nil || !strings.Contains(err.Error(), "beta1") {
		t.Errorf("beta1 of 2: %v", err)
	}
}
