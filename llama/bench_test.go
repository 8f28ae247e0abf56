package llama

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// benchmarkTrain measures forward and backward, without an optimizer.
func benchmarkTrain(b *testing.B, preset string, batch, seq int) {
	cfg, err := Preset(preset)
	if err != nil {
		b.Fatal(err)
	}
	params := Init(cfg, wire.Sum("bench"))
	grad := make([]float32, len(params))
	tokens := randomTokens(cfg, batch, seq, rand.New(rand.NewPCG(1, 1)))
	for _, kernel := range exact.Kernels() {
		if kernel.Name() == "plain" {
			continue
		}
		for i := range 4 {
			workers := 1 + i/2
			cfg.Numerics = Numerics(i % 2)
			b.Run(fmt.Sprintf("%s/%d/%v", kernel.Name(), workers, cfg.Numerics), func(b *testing.B) {
				pool := exact.NewPoolOf(workers, kernel)
				defer pool.Close()
				m := newModel(b, cfg, pool, batch, seq)
				step := func() {
					if _, err := m.Grad(params, grad, tokens, batch, seq, batch); err != nil {
						b.Fatal(err)
					}
				}
				step() // the first allocates
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				b.ReportMetric(float64(batch*seq*b.N)/b.Elapsed().Seconds(), "tokens/s")
				b.ReportMetric(float64(m.Memory()+pool.Memory())/(1<<20), "MiB")
			})
		}
	}
}

// BenchmarkTrain50M and BenchmarkTrain124M have the sequence length of GPT-2. What "MiB" says comes
// on top of parameters and gradient.
func BenchmarkTrain50M(b *testing.B) { benchmarkTrain(b, "50m", 2, 1024) }

func BenchmarkTrain124M(b *testing.B) { benchmarkTrain(b, "124m", 1, 1024) }

func BenchmarkTrainNano(b *testing.B) { benchmarkTrain(b, "nano", 16, 128) }

// BenchmarkTrain10M has the shape of the test model of our trial: batch 8, sequence 256.
func BenchmarkTrain10M(b *testing.B) { benchmarkTrain(b, "10m", 8, 256) }

// BenchmarkGenerate reads a token of each of some texts after the other, in both Numerics.
func BenchmarkGenerate(b *testing.B) {
	for _, preset := range []string{"10m", "50m", "124m"} {
		cfg, err := Preset(preset)
		if err != nil {
			b.Fatal(err)
		}
		params := Init(cfg, wire.Sum("bench"))
		for _, n := range []Numerics{Exact, Exact8} {
			cfg.Numerics = n
			for _, workers := range []int{1, 2} {
				pool := exact.NewPool(workers)
				defer pool.Close()
				d, err := NewDecoder(cfg, params, pool, 8)
				if err != nil {
					b.Fatal(err)
				}
				for _, texts := range []int{1, 8} {
					b.Run(fmt.Sprintf("%s/%v/%d threads/%d texts", preset, n, workers, texts), func(b *testing.B) {
						parts := make([]Part, texts)
						for i := range parts {
							parts[i] = Part{Text: new(Text), Tokens: []uint32{1}, Want: 1}
						}
						for b.Loop() {
							if parts[0].Text.Len() == 128 {
								for i := range parts {
									parts[i].Text.Keep(nil, 0)
								}
							}
							if err := d.Step(parts); err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric(float64(texts*b.N)/b.Elapsed().Seconds(), "tokens/s")
					})
				}
			}
		}
	}
}
