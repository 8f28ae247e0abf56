package distro

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// inParts is Encode by Columns, Rows, Momentum and Code.
func inParts(t *testing.T, c *Codec, w *exact.Worker, state, grad []float32, lr float32) []byte {
	t.Helper()
	factor, err := codec.Factor(normInParts(grad), c.cfg.ClipNorm)
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, c.PayloadMax())
	header := c.Header()
	body := payload[copy(payload, header[:]):]
	for i := range c.Blocks() {
		b := c.Block(i)
		n := b.Rows * b.Cols
		x, y := make([]float32, n), make([]float32, n)
		for r := range b.Rows {
			copy(x[r*b.Cols:(r+1)*b.Cols], grad[b.Offset+r*b.Stride:])
		}
		for _, band := range [][2]int{{0, b.Cols / 3}, {b.Cols / 3, b.Cols}} {
			c.Columns(w, i, y, x, band[0], band[1])
		}
		for _, band := range [][2]int{{0, b.Rows / 2}, {b.Rows / 2, b.Rows}} {
			c.Rows(w, i, x, y, band[0], band[1])
		}
		momentum := state[b.State : b.State+n]
		c.Momentum(momentum, x, float32(lr*factor))
		subset.WriteNumber(body, b.Bit, b.Bits, c.Code(i, momentum))
	}
	return payload
}

func normInParts(v []float32) float64 {
	var sum float64
	for from := 0; from < len(v); from += codec.NormSegment {
		var s codec.Squares
		segment := v[from:min(from+codec.NormSegment, len(v))]
		cut := len(segment) / 3
		s.Add(0, segment[:cut])
		s.Add(cut, segment[cut:])
		sum += s.Sum()
	}
	return math.Sqrt(sum)
}

func TestEncodeIsTheSumOfItsParts(t *testing.T) {
	layout := []tensor.Spec{{Name: "a", Shape: []int{70, 33}}, {Name: "b", Shape: []int{37}}, {Name: "c", Shape: []int{2, 3, 129}}, {Name: "d"}}
	for _, cfg := range []Config{
		{Block: 64, TopK: 32, Decay: .9, ClipNorm: 1},
		{Block: 16, TopK: 64, Decay: 1},
		{Block: 1, TopK: 1, ClipNorm: 3},
		{Block: 128, TopK: 5, Decay: .5, ClipNorm: 1e6},
	} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			pool := exact.NewPool(2)
			defer pool.Close()
			c := newCodec(t, cfg, pool, layout...)
			for _, kernel := range exact.Kernels() {
				whole, parts := make([]float32, c.StateLen()), make([]float32, c.StateLen())
				for step := range uint64(3) {
					grad := splitmix(100+step, c.StateLen())
					grad[step] = 0
					want, err := c.Encode(nil, whole, grad, .01)
					if err != nil {
						t.Fatal(err)
					}
					if got := inParts(t, c, exact.NewWorker(kernel), parts, grad, .01); !bytes.Equal(got, want) {
						t.Fatalf("%s, step %d: the payload differs", kernel.Name(), step)
					}
					if !slices.Equal(bits32(parts), bits32(whole)) {
						t.Fatalf("%s, step %d: the state differs", kernel.Name(), step)
					}
				}
			}
		})
	}
}

func TestStatesAreCheckedAsEncodeDoes(t *testing.T) {
	c := newCodec(t, Config{Block: 4, TopK: 1, Decay: 1}, nil, tensor.Spec{Name: "w", Shape: []int{4}})
	for _, most := range []float32{0, 1, stateMax, math.Nextafter32(stateMax, 0), math.Nextafter32(stateMax, 2*stateMax), float32(math.Inf(1)), float32(math.NaN())} {
		_, err := c.Encode(nil, []float32{0, most, 0, 0}, make([]float32, 4), .1)
		if got := new(Codec).CheckMagnitude(most); (got == nil) != (err == nil) {
			t.Errorf("a state of magnitude %g: %v, but Encode says %v", most, got, err)
		}
	}
}
