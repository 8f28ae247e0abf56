package distro_test

import (
	"fmt"

	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// Two members share a round. Both see the gradient fall along the rows, one sees some noise
// besides; what is largest is sent.
func Example() {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{2, 4}}})
	c, err := distro.New(layout, distro.Config{Block: 4, TopK: 1, Decay: 0.95}, exact.NewPool(1))
	if err != nil {
		panic(err)
	}
	const lr = 0.25
	params := make([]float32, layout.Len())
	var payloads [][]byte
	for _, grad := range [][]float32{
		{3, 1, -1, -3, 3, 1, -1, -3},
		{3, 1, -1, -3, 3, 1, -1, -2},
	} {
		momentum := make([]float32, c.StateLen()) // kept by a member from round to round
		p, err := c.Encode(nil, momentum, grad, lr)
		if err != nil {
			panic(err)
		}
		if err := c.Check(p); err != nil {
			panic(err)
		}
		payloads = append(payloads, p)
	}
	if err := c.Apply(params, payloads, lr); err != nil {
		panic(err)
	}
	fmt.Println(len(payloads[0]), "bytes,", params)
	// Output: 13 bytes, [-0.25 -0.25 0.25 0.25 -0.25 -0.25 0.25 0.25]
}
