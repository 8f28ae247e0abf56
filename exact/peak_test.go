package exact

import "testing"

// Every vector of the loop takes part in every round: with x = 2, y = 3 and c = i each is 6n + i in
// the end.
func TestPeakDoesTheOperationsItCounts(t *testing.T) {
	const n = 1001
	for _, kernel := range Kernels() {
		loop := kernel.peakLoop()
		x, c := make([]float32, 2*loop.lanes), make([]float32, loop.vectors*loop.lanes)
		for i := range loop.lanes {
			x[i], x[loop.lanes+i] = 2, 3
		}
		for i := range c {
			c[i] = float32(i)
		}
		loop.run(n, &x[0], &c[0])
		for i, got := range c {
			if want := float32(6*n + i); got != want {
				t.Errorf("%s: number %d is %g after %d rounds, want %g", kernel.Name(), i, got, n, want)
			}
		}
		if got, want := NewWorker(kernel).Peak(n), 2*n*len(c); got != want {
			t.Errorf("%s: %d operations, want %d", kernel.Name(), got, want)
		}
	}
}

func TestPeakOfNoRoundsDoesNothing(t *testing.T) {
	for _, kernel := range Kernels() {
		if got := NewWorker(kernel).Peak(0); got != 0 {
			t.Errorf("%s: %d operations, want none", kernel.Name(), got)
		}
	}
}

func BenchmarkPeak(b *testing.B) {
	for _, kernel := range Kernels() {
		b.Run(kernel.Name(), func(b *testing.B) {
			w := NewWorker(kernel)
			var operations int
			for b.Loop() {
				operations += w.Peak(1 << 16)
			}
			b.ReportMetric(float64(operations)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
