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

// BenchmarkGenerate reads a token after the other, in both Numerics.
func BenchmarkGenerate(b *testing.B) {
	for _, preset := range []string{"10m", "50m", "124m"} {
		cfg, err := Preset(preset)
		if err != nil {
			b.Fatal(err)
		}
		params := Init(cfg, wire.Sum("bench"))
		for _, n := range []Numerics{Exact, Exact8} {
			cfg.Numerics = n
			b.Run(fmt.Sprintf("%s/%v", preset, n), func(b *testing.B) {
				g := newGenerator(b, cfg, params)
				for b.Loop() {
					if len(g.read) == 64 {
						g.Reset()
					}
					if _, err := g.Read(1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
