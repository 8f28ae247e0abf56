package subset

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// topSlow is the rule: sort all.
func topSlow(momentum []float32, k int) []uint16 {
	var all []uint16
	for i, m := range momentum {
		if m != 0 {
			all = append(all, uint16(i))
		}
	}
	slices.SortStableFunc(all, func(a, b uint16) int {
		return cmp.Compare(math.Abs(float64(momentum[b])), math.Abs(float64(momentum[a])))
	})
	all = all[:min(k, len(all))]
	slices.Sort(all)
	return all
}

// checkTop draws a block with ties, zeros and a few numbers that stand out, and any way to make
// groups of it.
func checkTop(t *rapid.T) {
	n := rapid.IntRange(1, 64*64).Draw(t, "n")
	k := rapid.IntRange(1, min(n, KMax)).Draw(t, "k")
	few := rapid.SliceOfN(rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(-1e30, 1e30), rapid.SampledFrom([]float32{1, -1, 1e-45})), 1, 40).Draw(t, "few")
	momentum := make([]float32, n)
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0: // few different numbers, so that many are equal
		for i := range momentum {
			momentum[i] = few[i*7%len(few)]
		}
	case 1: // many different
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range momentum {
			momentum[i] = float32(r.NormFloat64())
		}
	case 2: // nearly all are zero
		for i, v := range few {
			momentum[(i*641)%n] = v
		}
	}
	run := vec.Lanes * rapid.IntRange(1, 20).Draw(t, "run")
	for _, kernel := range exact.Kernels() {
		loop := vec.For(kernel)
		p := NewPicker(n, k)
		for i := 0; i < n; i += run {
			var lanes [vec.Lanes]float32
			loop.Momentum(slices.Clone(momentum[i:min(i+run, n)]), make([]float32, min(run, n-i)), 1, 0, &lanes)
			p.Most = append(p.Most, lanes[:]...)
		}
		var top, picked Signed
		p.Top(&loop, momentum, k, &top)
		p.Pick(momentum, k, &picked)
		if want := topSlow(momentum, k); !slices.Equal(top.Positions[:top.N], want) || !slices.Equal(picked.Positions[:picked.N], want) {
			t.Fatalf("%s: the %d largest of %d are at %v and %v, want %v", kernel.Name(), k, n, top.Positions[:top.N], picked.Positions[:picked.N], want)
		}
	}
}

func TestTopIsThatOfSorting(t *testing.T) { rapid.Check(t, checkTop) }

func FuzzTopIsThatOfSorting(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkTop)) }
