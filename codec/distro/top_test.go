package distro

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// topSlow is the package comment's rule: sort all.
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

// checkTop draws a block with ties, zeros and a few numbers that stand out, and any way to make groups of it.
func checkTop(t *rapid.T, c *Codec) {
	n := rapid.IntRange(1, 64*64).Draw(t, "n")
	k := rapid.IntRange(1, min(n, TopKMax)).Draw(t, "k")
	few := rapid.SliceOfN(rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(-1e30, 1e30), rapid.SampledFrom([]float32{1, -1, 1e-45})), 1, 40).Draw(t, "few")
	momentum := make([]float32, n)
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0: // few different numbers, so that many are equal
		for i := range momentum {
			momentum[i] = few[i*7%len(few)]
		}
	case 1: // many different
		copy(momentum, splitmix(rapid.Uint64().Draw(t, "seed"), n))
	case 2: // nearly all are zero
		for i, v := range few {
			momentum[(i*641)%n] = v
		}
	}
	run := vec.Lanes * rapid.IntRange(1, 20).Draw(t, "run")
	for _, kernel := range exact.Kernels() {
		loop := vec.For(kernel)
		j := c.take()
		s := &j.scratch[0]
		s.most = s.most[:0]
		for i := 0; i < n; i += run {
			s.lanes = [vec.Lanes]float32{}
			loop.Momentum(slices.Clone(momentum[i:min(i+run, n)]), make([]float32, min(run, n-i)), 1, 0, &s.lanes)
			s.most = append(s.most, s.lanes[:]...)
		}
		s.top(&loop, momentum, k)
		if got, want := s.votes.Positions[:s.votes.N], topSlow(momentum, k); !slices.Equal(got, want) {
			t.Fatalf("%s: the %d largest of %d are at %v, want %v", kernel.Name(), k, n, got, want)
		}
		c.give(j)
	}
}

func TestTopIsThatOfSorting(t *testing.T) {
	c := newCodec(t, Config{Chunk: 64, TopK: TopKMax}, nil, tensor.Spec{Name: "w", Shape: []int{64, 64}})
	rapid.Check(t, func(t *rapid.T) { checkTop(t, c) })
}

func FuzzTopIsThatOfSorting(f *testing.F) {
	c := newCodec(f, Config{Chunk: 64, TopK: TopKMax}, nil, tensor.Spec{Name: "w", Shape: []int{64, 64}})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkTop(t, c) }))
}

// All kernels give the same payloads, states and parameters for blocks of every shape that a tensor of odd sides has.
func TestKernelsAndWorkersAgree(t *testing.T) {
	specs := []tensor.Spec{{Name: "a", Shape: []int{130, 67}}, {Name: "b", Shape: []int{2, 64, 64}}, {Name: "c", Shape: []int{201}}, {Name: "d", Shape: []int{3, 5}}}
	for _, cfg := range []Config{{Chunk: 64, TopK: 32, Decay: .95, WeightDecay: .1, ClipNorm: 1}, {Chunk: 64, TopK: 8, Decay: .999},
		{Chunk: 17, TopK: 3, Decay: .5, WeightDecay: .1, ClipNorm: .1}, {Chunk: 128, TopK: 64, Decay: .9, WeightDecay: .1, ClipNorm: 1, VotesMax: 2}} {
		var wantPayloads [][]byte
		var wantState, wantParams []float32
		for i, kernel := range exact.Kernels() {
			pool := exact.NewPoolOf(1+i, kernel)
			c := newCodec(t, cfg, pool, specs...)
			state, params := make([]float32, c.n), splitmix(3, c.n)
			var payloads [][]byte
			for round := range 3 {
				grad := splitmix(uint64(round), c.n)
				grad[5], grad[6] = 0, -1e-42
				p, err := c.Encode(nil, state, grad, .01)
				if err != nil {
					t.Fatal(err)
				}
				payloads = append(payloads, p)
				if err := c.Apply(params, payloads, .01); err != nil {
					t.Fatal(err)
				}
			}
			pool.Close()
			if i == 0 {
				wantPayloads, wantState, wantParams = payloads, state, params
				continue
			}
			for r := range payloads {
				if !slices.Equal(payloads[r], wantPayloads[r]) {
					t.Fatalf("%v: payload %d of kernel %s differs", cfg, r, kernel.Name())
				}
			}
			if !slices.Equal(state, wantState) || !slices.Equal(params, wantParams) {
				t.Fatalf("%v: the state or the parameters of kernel %s differ", cfg, kernel.Name())
			}
		}
	}
}

func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := newCodec(t, Config{Chunk: 64, TopK: 32, Decay: .9, WeightDecay: .1, ClipNorm: 1}, pool, tensor.Spec{Name: "w", Shape: []int{200, 150}})
	grad, state, params := splitmix(1, c.n), make([]float32, c.n), splitmix(2, c.n)
	payloads := make([][]byte, 1)
	if n := testing.AllocsPerRun(10, func() {
		var err error
		if payloads[0], err = c.Encode(payloads[0][:0], state, grad, .1); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(params, payloads, .1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}
