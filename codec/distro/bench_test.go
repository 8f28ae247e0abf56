package distro

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// benchmarked has 4 million parameters in 1024 blocks of 64 by 64. Bytes are those of the
// parameters, 4 each; all is on one core.
var benchmarked = []tensor.Spec{{Name: "w", Shape: []int{2048, 2048}}}

// benchmarkedConfigs have the number of coefficients of published runs and that of the default.
var benchmarkedConfigs = []Config{
	{Block: 64, TopK: 8, Decay: .99, WeightDecay: .1, ClipNorm: 1},
	{Block: 64, TopK: 32, Decay: .95, WeightDecay: .1, ClipNorm: 1},
	{Block: 8, TopK: 2, Decay: .95, WeightDecay: .1, ClipNorm: 1},
}

// benchmark runs f for each of them, on one core.
func benchmark(b *testing.B, f func(b *testing.B, c *Codec)) {
	for _, cfg := range benchmarkedConfigs {
		b.Run(fmt.Sprintf("k=%d", cfg.TopK), func(b *testing.B) {
			pool := exact.NewPool(1)
			defer pool.Close()
			f(b, newCodec(b, cfg, pool, benchmarked...))
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	benchmark(b, func(b *testing.B, c *Codec) {
		grad, state := splitmix(1, c.n), make([]float32, c.n)
		var dst []byte
		b.SetBytes(int64(4 * c.n))
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if dst, err = c.Encode(dst[:0], state, grad, 1e-3); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// payloadsOf encodes so many members' gradients, which have half in common.
func payloadsOf(b *testing.B, c *Codec, members int) [][]byte {
	common := splitmix(1, c.n)
	var payloads [][]byte
	for m := range members {
		grad := splitmix(uint64(m+2), c.n)
		for i := range grad {
			grad[i] += common[i]
		}
		p, err := c.Encode(nil, make([]float32, c.n), grad, 1e-3)
		if err != nil {
			b.Fatal(err)
		}
		payloads = append(payloads, p)
	}
	return payloads
}

func BenchmarkCheck(b *testing.B) {
	benchmark(b, func(b *testing.B, c *Codec) {
		p := payloadsOf(b, c, 1)[0]
		b.SetBytes(int64(4 * c.n))
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Check(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkApply checks, decodes, adds up and steps.
func BenchmarkApply(b *testing.B) {
	benchmark(b, func(b *testing.B, c *Codec) {
		payloads := payloadsOf(b, c, 32)
		params := splitmix(7, c.n)
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("payloads=%d", n), func(b *testing.B) {
				b.SetBytes(int64(4 * c.n))
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Apply(params, payloads[:n], 1e-3); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// BenchmarkBits measures no time that matters: it prints the bits of a payload per parameter,
// header included, beside those an ideal coder needs when all sets of coefficients are equally
// likely.
func BenchmarkBits(b *testing.B) {
	llama := []tensor.Spec{ // sizes of a small Llama whose dimensions 64 does not divide
		{Name: "embed", Shape: []int{256, 160}}, {Name: "q", Shape: []int{4, 160, 160}}, {Name: "up", Shape: []int{8, 432, 160}}, {Name: "norm", Shape: []int{9, 160}},
	}
	for _, v := range []struct {
		name  string
		specs []tensor.Spec
		cfg   Config
	}{
		{"block=64/k=4", benchmarked, Config{Block: 64, TopK: 4}},
		{"block=64/k=8", benchmarked, Config{Block: 64, TopK: 8}},
		{"block=64/k=32", benchmarked, Config{Block: 64, TopK: 32}},
		{"block=64/k=64", benchmarked, Config{Block: 64, TopK: 64}},
		{"block=128/k=32", benchmarked, Config{Block: 128, TopK: 32}},
		{"llama/chunk=64/k=8", llama, Config{Block: 64, TopK: 8}},
	} {
		b.Run(v.name, func(b *testing.B) {
			var c *Codec
			for b.Loop() {
				c = newCodec(b, v.cfg, nil, v.specs...)
			}
			b.ReportMetric(float64(8*c.PayloadMax())/float64(c.n), "bits/param")
			ideal := 0.0 // an ideal coder's, if all payloads are equally likely
			for _, b := range c.table() {
				ideal += b.shape.BitsIdeal()
			}
			b.ReportMetric(ideal/float64(c.n), "ideal-bits/param")
			b.ReportMetric(float64(4*c.n)/float64(c.PayloadMax()), "x-smaller-than-fp32")
		})
	}
}
