package loop

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Real is a [Loop] under the wall clock. Its functions are called by [Real.Run].
// Make one with [NewReal].
//
// The queue has no bound, because a function on the loop that posts another must
// not wait for itself. Code that takes events from outside bounds them there.
type Real struct {
	wake chan struct{} // holds one token while the queue may be non-empty

	queueMu sync.Mutex // guards queue, ended and the beginning of work
	queue   []func()
	ended   bool

	working sync.WaitGroup
}

// NewReal returns a loop that keeps what it is given until Run is called.
func NewReal() *Real {
	return &Real{wake: make(chan struct{}, 1)}
}

// Run calls the loop's functions until ctx ends, then waits for the work in
// flight and returns ctx's error. Functions still queued, or posted later, are
// dropped; so is the done of work that ends too late. Run is called once.
func (r *Real) Run(ctx context.Context) error {
	defer r.working.Wait()
	defer r.end()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.wake:
		}
		for _, f := range r.take() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			f()
		}
	}
}

// take removes and returns everything queued, oldest first.
func (r *Real) take() []func() {
	r.queueMu.Lock()
	defer r.queueMu.Unlock()
	queue := r.queue
	r.queue = nil
	return queue
}

// end makes the loop deaf. It must come before waiting for the work in flight,
// so that no work begins while it is waited for.
func (r *Real) end() {
	r.queueMu.Lock()
	defer r.queueMu.Unlock()
	r.ended, r.queue = true, nil
}

// Now is the wall clock's time.
func (r *Real) Now() time.Time { return time.Now() }

// Post runs f on the loop. See [Loop].
func (r *Real) Post(f func()) {
	r.queueMu.Lock()
	defer r.queueMu.Unlock()
	if r.ended {
		return
	}
	r.queue = append(r.queue, f)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// After runs f on the loop once d has passed. See [Loop].
func (r *Real) After(d time.Duration, f func()) (stop func()) {
	// A timer that has fired may already have posted f when stop is called, so
	// the queued function asks once more.
	var stopped atomic.Bool
	timer := time.AfterFunc(d, func() {
		r.Post(func() {
			if !stopped.Load() {
				f()
			}
		})
	})
	return func() {
		stopped.Store(true)
		timer.Stop()
	}
}

// Work runs work in a goroutine of its own, then done on the loop; cost is
// ignored. After the end of Run it does nothing. See [Loop].
func (r *Real) Work(_ time.Duration, work, done func()) {
	r.queueMu.Lock()
	defer r.queueMu.Unlock()
	if r.ended {
		return
	}
	r.working.Go(func() {
		work()
		r.Post(done)
	})
}
