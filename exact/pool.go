package exact

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxWorkers bounds NewPool: more workers than any machine has threads are a mistake in a
// configuration.
const MaxWorkers = 4096

// A Pool shares work among a fixed number of workers. What a piece of work computes never depends
// on which worker does it, nor on how many there are. A Pool may be used by several goroutines,
// whose calls are served one after another; a piece of work must not use the pool it runs on. A nil
// *Pool is one worker without memory of its own: right everywhere, slow for small products.
type Pool struct {
	kernel  Kernel
	workers []*Worker
	helpers []helper       // one for each worker but the first, which is the caller of Run
	ended   sync.WaitGroup // the goroutines of the pool

	running sync.Mutex // held during one Run or Gemm; guards all below
	closed  bool
	plain   func(i int)
	onOwn   func(w *Worker, i int)
	shares  []share        // one for each worker
	pieces  []share        // of this Run: those of the workers that take part
	left    atomic.Int64   // helpers still busy with this Run
	asleep  sync.WaitGroup // the same, for whoever has waited long enough to sleep
	product product
	gemm    func(w *Worker, i int) // product.run, bound once so that Gemm allocates nothing
}

// A Worker is what one thread of a Pool computes with: the kernels of its processor and memory for
// packing matrices. It is for one goroutine at a time.
type Worker struct {
	kernel Kernel
	index  int
	a, b   []float32 // packed panels of the matrices of a product
	c      []float32 // one tile of results, for the edges
	side   sideCopy  // of the next block of A
	lanes  lanes     // of the sum being taken; here because a kernel gets its address
}

// NewPool starts a pool of that many workers with the best kernels this processor has. Close ends
// it.
func NewPool(workers int) *Pool { return NewPoolOf(workers, Kernels()[0]) }

// NewPoolOf is NewPool with a given kernel, one of Kernels. All kernels give the same results.
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

// A helper is a goroutine of a pool. Between two Runs it stays awake for a moment, because waking
// costs as much as a small product does: a training step is hundreds of Runs, one after another.
type helper struct {
	state atomic.Int32
	wake  chan struct{}
	_     [48]byte // keeps the states of two helpers on different cache lines
}

// States of a helper.
const (
	awake   = iota // looking for work
	asleep         // until something is sent to wake
	called         // there is work
	retired        // there will be none
)

// Before it sleeps, a helper looks for work, and the caller of Run for its end, patience times
// looks times, some tens of microseconds, letting other goroutines run every so many looks.
const (
	patience = 100
	looks    = 300
)

// next waits for work and reports whether there is any.
func (h *helper) next() bool {
	for range patience {
		for range looks {
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

// call gives the helper a new state, called or retired.
func (h *helper) call(state int32) {
	if h.state.Swap(state) == asleep {
		h.wake <- struct{}{}
	}
}

// NewWorker returns a worker that belongs to no pool, for code that is not shared out.
func NewWorker(kernel Kernel) *Worker {
	return &Worker{kernel: kernel, c: make([]float32, kernel.mr*kernel.nr)}
}

// Index is the worker's number in its pool, from 0: where work finds scratch memory that is nobody
// else's meanwhile.
func (w *Worker) Index() int { return w.index }

// Workers is the number of workers.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return len(p.workers)
}

// Kernel is the kernel the pool computes with.
func (p *Pool) Kernel() Kernel {
	if p == nil {
		return Kernels()[0]
	}
	return p.kernel
}

// Memory is how many bytes the pool has allocated for packing matrices.
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

// Run calls f(i) for each i in [0, n), each once, on the workers of the pool, in no particular
// order, and returns when all have returned. f must give the same result for an i whatever runs
// beside or before it.
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

// RunOn is Run for work that wants its worker's kernels.
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

// runOn is RunOn while running is held.
func (p *Pool) runOn(n int, f func(w *Worker, i int)) {
	p.plain, p.onOwn = nil, f
	p.start(n)
}

// start wakes as many workers as there is work for, works itself, and waits for them.
func (p *Pool) start(n int) {
	if p.closed {
		panic("exact: work for a pool that is closed")
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

// await waits for the helpers.
func (p *Pool) await() {
	for range patience {
		for range looks {
			if p.left.Load() == 0 {
				p.asleep.Wait() // a few instructions more
				return
			}
		}
		runtime.Gosched()
	}
	p.asleep.Wait()
}

// work takes pieces until there is none.
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

// Close ends the pool's goroutines and waits for them. The pool must not be used afterwards;
// closing it again does nothing.
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
