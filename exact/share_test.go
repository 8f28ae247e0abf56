package exact

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func TestAWorkerTakesItsOwnShareFirst(t *testing.T) {
	shares := make([]share, 3)
	divide(shares, 7) // 0 1, 2 3, 4 5 6
	var got []int
	for i, ok := take(shares, 1); ok; i, ok = take(shares, 1) {
		got = append(got, i)
	}
	want := []int{2, 3, 4, 5, 6, 0, 1}
	if len(got) != len(want) {
		t.Fatalf("took %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("took %v, want %v", got, want)
		}
	}
	if i, ok := take(shares, 0); ok {
		t.Errorf("took %d, which is taken", i)
	}
}

func TestEachNumberIsTakenOnce(t *testing.T) {
	for _, n := range []int{0, 1, 3, 10000} {
		shares, taken := make([]share, 4), make([]atomic.Int32, n)
		divide(shares, n)
		var workers sync.WaitGroup
		for w := range shares {
			workers.Go(func() {
				for i, ok := take(shares, w); ok; i, ok = take(shares, w) {
					taken[i].Add(1)
				}
			})
		}
		workers.Wait()
		for i := range taken {
			if taken[i].Load() != 1 {
				t.Fatalf("%d of %d was taken %d times", i, n, taken[i].Load())
			}
		}
	}
}

// A product of several phases in both directions has the bits of one worker's, however many there
// are, and though all but one never come.
func TestAProductDoesNotDependOnItsWorkers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, size := range [][3]int{{700, 2100, 2100}, {5, 3000, 1300}, {1200, 30, 2100}} {
		m, n, k := size[0], size[1], size[2]
		a, b := random(r, m*k, 0), random(r, k*n, 0)
		for _, strides := range [][2]int{{k, 1}, {1, m}} {
			want, got := make([]float32, m*n), make([]float32, m*n)
			NewWorker(Kernels()[0]).Gemm(m, n, k, a, strides[0], strides[1], b, n, 1, want, n, false)
			for _, workers := range []int{2, 3, 7} {
				pool := NewPool(workers)
				clear(got)
				Gemm(pool, m, n, k, a, strides[0], strides[1], b, n, 1, got, n, false)
				expectSame(t, "all workers", got, want)
				p := &pool.product
				p.a, p.b, p.c = a, b, got
				clear(got)
				p.cut(workers, pool.kernel)
				p.run(pool.workers[workers-1], 0)
				expectSame(t, "the last worker alone", got, want)
				pool.Close()
			}
		}
	}
}
