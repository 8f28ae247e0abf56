package distro

import (
	"math"
	"testing"

	"github.com/entrain-network/entrain/tensor"
)

func TestStatesAreCheckedAsEncodeDoes(t *testing.T) {
	c := newCodec(t, Config{Block: 4, TopK: 1, Decay: 1}, nil, tensor.Spec{Name: "w", Shape: []int{4}})
	for _, most := range []float32{0, 1, stateMax, math.Nextafter32(stateMax, 0), math.Nextafter32(stateMax, 2*stateMax), float32(math.Inf(1)), float32(math.NaN())} {
		_, err := c.Encode(nil, []float32{0, most, 0, 0}, make([]float32, 4), .1)
		if got := new(Codec).CheckMagnitude(most); (got == nil) != (err == nil) {
			t.Errorf("a state of magnitude %g: %v, but Encode says %v", most, got, err)
		}
	}
}
