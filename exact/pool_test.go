package exact

import (
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunDoesEachPieceOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 4, 7} {
		p := NewPool(workers)
		for _, n := range []int{0, 1, 2, 5, 1000} {
			done := make([]atomic.Int32, n)
			p.Run(n, func(i int) { done[i].Add(1) })
			on := make([]atomic.Int32, n)
			p.RunOn(n, func(w *Worker, i int) {
				if w == nil {
					t.Error("work without a worker")
				}
				on[i].Add(1)
			})
			for i := range n {
				if done[i].Load() != 1 || on[i].Load() != 1 {
					t.Fatalf("%d workers: piece %d of %d was done %d and %d times", workers, i, n, done[i].Load(), on[i].Load())
				}
			}
		}
		p.Close()
		p.Close()
	}
}

func TestANilPoolIsOneWorker(t *testing.T) {
	var p *Pool
	sum := 0
	p.Run(4, func(i int) { sum += i })
	p.RunOn(4, func(_ *Worker, i int) { sum += i })
	if sum != 12 || p.Workers() != 1 || p.Kernel().Name() != Kernels()[0].Name() {
		t.Errorf("sum %d, want 12; %d workers", sum, p.Workers())
	}
	p.Close()
}

func TestAPoolServesSeveralGoroutines(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			var sum atomic.Int64
			for range 50 {
				p.Run(20, func(i int) { sum.Add(int64(i)) })
			}
			if sum.Load() != 50*190 {
				t.Errorf("sum %d, want %d", sum.Load(), 50*190)
			}
		})
	}
	callers.Wait()
}

func TestAClosedPoolRefusesWork(t *testing.T) {
	p := NewPool(2)
	p.Close()
	defer func() {
		if recover() == nil {
			t.Error("a closed pool took work")
		}
	}()
	p.Run(1, func(int) {})
}

func TestAWarmPoolAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	a, b, c := make([]float32, 100*100), make([]float32, 100*100), make([]float32, 100*100)
	f := func(w *Worker, i int) { w.RMSNorm(c[i*100:i*100+100], a[i*100:i*100+100], b[:100], 1e-5) }
	step := func() {
		Gemm(p, 100, 100, 100, a, 100, 1, b, 1, 100, c, 100, true)
		p.RunOn(100, f)
	}
	for range 10 {
		step() // each worker packs once and keeps the memory
	}
	if n := testing.AllocsPerRun(20, step); n != 0 {
		t.Errorf("%g allocations a step", n)
	}
}
