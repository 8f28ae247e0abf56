package distro

import (
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

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
