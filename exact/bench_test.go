package exact

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkGemm measures squares, and the products of the 10m preset's training: m, n, k and which
// of A and B are transposed in memory.
func BenchmarkGemm(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range []struct {
		name    string
		m, n, k int
		ta, tb  bool
	}{
		{"512", 512, 512, 512, false, false}, {"1024", 1024, 1024, 1024, false, false}, {"2048", 2048, 2048, 2048, false, false},
		{"qkv", 2048, 512, 256, false, true}, {"gate-up", 2048, 1536, 256, false, true}, {"gate-up-dx", 2048, 256, 1536, false, false},
		{"gate-up-dw", 1536, 256, 2048, true, false}, {"down", 2048, 256, 768, false, true}, {"head", 2048, 8192, 256, false, true},
		{"head-dx", 2048, 256, 8192, false, false}, {"head-dw", 8192, 256, 2048, true, false},
	} {
		x, y, z := random(r, s.m*s.k, 0), random(r, s.k*s.n, 0), make([]float32, s.m*s.n)
		ars, acs, brs, bcs := s.k, 1, s.n, 1
		if s.ta {
			ars, acs = 1, s.m
		}
		if s.tb {
			brs, bcs = 1, s.k
		}
		for _, kernel := range Kernels() {
			if kernel.Name() == "plain" {
				continue
			}
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/%d", s.name, kernel.Name(), workers), func(b *testing.B) {
					p := NewPoolOf(workers, kernel)
					defer p.Close()
					for b.Loop() {
						Gemm(p, s.m, s.n, s.k, x, ars, acs, y, brs, bcs, z, s.n, false)
					}
					b.ReportMetric(2*float64(s.m)*float64(s.n)*float64(s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
