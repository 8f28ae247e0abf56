package distro

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// All kernels give the same payloads, states and parameters for blocks of every shape that a tensor
// of odd sides has.
func TestKernelsAndWorkersAgree(t *testing.T) {
	specs := []tensor.Spec{{Name: "a", Shape: []int{130, 67}}, {Name: "b", Shape: []int{2, 64, 64}}, {Name: "c", Shape: []int{201}}, {Name: "d", Shape: []int{3, 5}}}
	for _, cfg := range []Config{{Block: 64, TopK: 32, Decay: .95, WeightDecay: .1, ClipNorm: 1}, {Block: 64, TopK: 8, Decay: .999},
		{Block: 17, TopK: 3, Decay: .5, WeightDecay: .1, ClipNorm: .1}, {Block: 128, TopK: 64, Decay: .9, WeightDecay: .1, ClipNorm: 1, VotesMax: 2}} {
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
	c := newCodec(t, Config{Block: 64, TopK: 32, Decay: .9, WeightDecay: .1, ClipNorm: 1}, pool, tensor.Spec{Name: "w", Shape: []int{200, 150}})
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
