package exact

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxWorkers is the most workers of a pool. No machine has more threads, so a larger number is a
// mistake in a configuration.
const MaxWorkers = 4096

// A Pool divides work among a fixed number of workers. The result of a piece of work does not
// depend on the worker or on the number of workers. Several goroutines may use a Pool; it serves
// one call after another. A piece of work must not use the pool that runs it. A nil *Pool is valid:
// it has one worker, which allocates its memory on each call, and is slow for small products.
type Pool struct {
	kernel  Kernel
	workers []*Worker
	helpers []helper       // one for each worker but the first, which runs in Run's caller
	ended   sync.WaitGroup // the goroutines of the pool

	running sync.Mutex // held during a Run or Gemm; guards the fields below
	closed  bool
	plain   func(i int)
	onOwn   func(w *Worker, i int)
	shares  []share        // one for each worker
	pieces  []share        // the shares used in this Run
	left    atomic.Int64   // helpers that have not finished this Run
	asleep  sync.WaitGroup // the same count, for a caller that sleeps
	product product
	gemm    func(w *Worker, i int) // product.run, bound once so that Gemm allocates nothing
}

// A Worker holds what one thread of a Pool computes with: the kernel, and memory for packing
// matrices. One goroutine at a time may use it.
type Worker struct {
	kernel Kernel
	index  int
	a, b   []float32 // packed panels of a product's matrices
	c      []float32 // one tile of results, for tiles at the edges of C
	side   sideCopy  // packs the next block of A
	lanes  lanes     // of the current sum; here so that its address does not escape to the heap
	zeros  [512]float32
	log    *Progress // nil unless it resumes
}

// NewPool starts a pool with the given number of workers and this processor's fastest kernel. It
// panics unless workers is between 1 and MaxWorkers. The caller must Close the pool.
func NewPool(workers int) *Pool { return NewPoolOf(workers, Kernels()[0]) }

// NewPoolOf is like NewPool with a given kernel, one of Kernels. All kernels give the same results.
func NewPoolOf(workers int, kernel Kernel) *Pool {
	if workers < 1 || workers > MaxWorkers {
		panic(fmt.Sprintf("exact: a pool of %d workers, want 1 to %d", workers, MaxWorkers))
	}
	p := &Pool{kernel: kernel, workers: make([]*Worker, workers), helpers: make([]helper, workers-1), shares: make([]share, workers)}
	p.gemm = p.product.run
	p.product.sleepers.awake.L = new(sync.Mutex)
	for i := range p.workers {
		p.workers[i] = NewWorker(kernel)
		p.workers[i].index = i
	}
	for i := range p.helpers {
		h := &p.helpers[i]
		h.wake = make(chan struct{}, 1)
		p.ended.Go(func() {
			for h.next() {
				p.work(p.workers[i+1])
				h.state.Store(awake)
				p.left.Add(-1)
				p.asleep.Done()
			}
		})
	}
	return p
}

// A helper is a goroutine of a pool. It stays awake for a moment between two Runs, because waking
// it costs as much as a small product, and a training step is hundreds of Runs in a row.
type helper struct {
	state atomic.Int32
	wake  chan struct{}
	_     [48]byte // keeps the states of two helpers on different cache lines
}

// States of a helper.
const (
	awake   = iota // looking for work
	asleep         // waiting for wake
	called         // has work
	retired        // must end
)

// A helper that waits for work, and a caller of Run that waits for the helpers, polls spinRounds
// times spinPolls times before it sleeps: some tens of microseconds. It yields to other goroutines
// every spinPolls times.
const (
	spinRounds = 100
	spinPolls  = 300
)

// next waits for work. It reports false when the helper must end.
func (h *helper) next() bool {
	for range spinRounds {
		for range spinPolls {
			switch h.state.Load() {
			case called:
				return true
			case retired:
				return false
			}
		}
		runtime.Gosched()
	}
	if h.state.CompareAndSwap(awake, asleep) {
		<-h.wake
	}
	return h.state.Load() == called
}

// call sets the helper's state to called or retired, and wakes it if it sleeps.
func (h *helper) call(state int32) {
	if h.state.Swap(state) == asleep {
		h.wake <- struct{}{}
	}
}

// NewWorker returns a worker that belongs to no pool, for a single thread of work.
func NewWorker(kernel Kernel) *Worker {
	return &Worker{kernel: kernel, c: make([]float32, kernel.mr*kernel.nr)}
}

// Index returns the worker's number in its pool, from 0. Work uses it to find scratch memory of its
// own.
func (w *Worker) Index() int { return w.index }

// Kernel returns the worker's kernel.
func (w *Worker) Kernel() Kernel { return w.kernel }

// Workers returns the number of workers.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return len(p.workers)
}

// Kernel returns the pool's kernel.
func (p *Pool) Kernel() Kernel {
	if p == nil {
		return Kernels()[0]
	}
	return p.kernel
}

// Memory returns the number of bytes the pool has allocated for packing matrices.
func (p *Pool) Memory() (bytes int) {
	if p == nil {
		return 0
	}
	p.running.Lock()
	defer p.running.Unlock()
	for _, w := range p.workers {
		bytes += 4 * (cap(w.a) + cap(w.b) + cap(w.c))
	}
	for _, b := range p.product.packed {
		bytes += 4 * cap(b)
	}
	counters := cap(p.product.packs) + cap(p.product.multiplies) + cap(p.product.partsDone)
	return bytes + int(unsafe.Sizeof(counter{}))*counters + int(unsafe.Sizeof(part{}))*cap(p.product.parts) + int(unsafe.Sizeof(share{}))*cap(p.product.shares)
}

// Run calls f(i) once for each i in [0, n), on the pool's workers and in no particular order. It
// returns when all calls have returned. The result of f(i) must not depend on other calls.
func (p *Pool) Run(n int, f func(i int)) {
	if p == nil {
		for i := range n {
			f(i)
		}
		return
	}
	p.running.Lock()
	defer p.running.Unlock()
	p.plain, p.onOwn = f, nil
	p.start(n)
}

// RunOn is like Run but passes the worker to f, for its kernel and memory.
func (p *Pool) RunOn(n int, f func(w *Worker, i int)) {
	if p == nil {
		w := NewWorker(Kernels()[0])
		for i := range n {
			f(w, i)
		}
		return
	}
	p.running.Lock()
	defer p.running.Unlock()
	p.runOn(n, f)
}

// runOn is RunOn for a caller that holds running.
func (p *Pool) runOn(n int, f func(w *Worker, i int)) {
	p.plain, p.onOwn = nil, f
	p.start(n)
}

// start wakes up to n-1 helpers, works itself, and waits for them.
func (p *Pool) start(n int) {
	if p.closed {
		panic("exact: use of a closed pool")
	}
	helpers := p.helpers[:max(0, min(n-1, len(p.helpers)))]
	p.pieces = p.shares[:1+len(helpers)]
	divide(p.pieces, n)
	p.left.Store(int64(len(helpers)))
	p.asleep.Add(len(helpers))
	for i := range helpers {
		helpers[i].call(called)
	}
	p.work(p.workers[0])
	p.await()
	p.plain, p.onOwn = nil, nil
}

// await waits until the helpers have finished.
func (p *Pool) await() {
	for range spinRounds {
		for range spinPolls {
			if p.left.Load() == 0 {
				p.asleep.Wait() // ends within a few instructions
				return
			}
		}
		runtime.Gosched()
	}
	p.asleep.Wait()
}

// work runs pieces until none is left.
func (p *Pool) work(w *Worker) {
	for {
		i, ok := take(p.pieces, w.index)
		if !ok {
			return
		}
		if p.plain != nil {
			p.plain(i)
		} else {
			p.onOwn(w, i)
		}
	}
}

// Close ends the pool's goroutines and waits for them. Later calls do nothing. The pool must not be
// used after Close.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.running.Lock()
	defer p.running.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	for i := range p.helpers {
		p.helpers[i].call(retired)
	}
	p.ended.Wait()
}
