package bucket

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// ExchangeOptions bound concurrency; 0 selects the default given for each field.
type ExchangeOptions struct {
	Parallel  int // operations at once in others' buckets: default 16; see slowAfter
	PerBucket int // at once in one bucket, so that a slow one delays only itself: default 4
	// virtual loop: operations take no time, and results arrive after the stores' delays (see
	// Wait)
	Simulated bool
}

// Members whose buckets accept connections and serve nothing must not hold up the objects of all
// others. So an operation that has run for slowAfter, and slowPerByte more for each byte that it
// may bring, no longer counts against Parallel, though at most slowFactor times as many may be
// under way. Buckets that ran into time limits share half of the places, each until lateOps
// operations in it have ended in time.
const (
	slowAfter   = 2 * time.Second
	slowPerByte = time.Microsecond
	slowFactor  = 8
	lateOps     = 8
	lateMax     = 1 << 12 // buckets remembered
)

// Exchange is a Writer and a Reader on a participant's loop. Its methods are called on the loop and
// return at once. Each result arrives later on the loop, exactly once, unless stop is called first.
// Operations beyond the concurrency limit wait in the order of their calls.
//
// No operation waits longer than its time limit, counted from the call. The caller derives the
// limit from the chain's deadlines, and calls stop when the chain has moved past them.
type Exchange struct {
	loop    loop.Loop
	writer  *Writer
	reader  *Reader
	options ExchangeOptions
	waiting []*operation
	at      map[Location]int // running in each bucket
	// Running in others' buckets: all, those that count against Parallel, and those in late buckets.
	running, recent, delayed int
	// Of each late bucket, how many operations must end in time before it is not late any more.
	late map[Location]int
}

// operation is work to be done away from the loop.
type operation struct {
	location Location      // zero for the member's own bucket
	slow     time.Duration // after which it is: see slowAfter
	within   time.Duration
	deadline time.Time
	started  time.Time
	recent   bool                            // it counts against Parallel
	delayed  bool                            // it counts as one in a late bucket
	do       func(ctx context.Context) error // sets the result
	done     func()                          // takes the result, after do
	failed   bool                            // do did
	// called instead of done after the deadline; do may still be running
	late   func()
	over   bool               // one of them has been called, or none will be
	cancel context.CancelFunc // nil until it runs
	timer  func()
}

// NewExchange returns an exchange on l. A participant that only reads, such as a validator that
// publishes nothing, has no writer.
func NewExchange(l loop.Loop, w *Writer, r *Reader, o ExchangeOptions) *Exchange {
	if o.Parallel <= 0 {
		o.Parallel = parallel
	}
	if o.PerBucket <= 0 {
		o.PerBucket = 4
	}
	return &Exchange{loop: l, writer: w, reader: r, options: o, at: make(map[Location]int), late: make(map[Location]int)}
}

// Writer returns the writer, whose Traffic counts what was sent.
func (e *Exchange) Writer() *Writer { return e.writer }

// Put publishes a body, which must not change until it is done. See Writer.Put.
func (e *Exchange) Put(n Name, body []byte, within time.Duration, done func(error)) (stop func()) {
	var err error
	return e.begin(&operation{
		do: func(ctx context.Context) error {
			err = e.writer.Put(ctx, n, body)
			return err
		},
		done: func() { done(err) },
		late: func() { done(e.slow("put", Location{}, n.Path())) },
	}, within)
}

// Get fetches an object. See Reader.Get.
func (e *Exchange) Get(w Want, within time.Duration, done func([]byte, error)) (stop func()) {
	var body []byte
	var err error
	return e.begin(&operation{
		location: w.Location,
		slow:     slowAfter + slowPerByte*time.Duration(w.most()),
		do: func(ctx context.Context) error {
			body, err = e.reader.Get(ctx, w)
			return err
		},
		done: func() { done(body, err) },
		late: func() { done(nil, e.slow("get", w.Location, w.Name.Path())) },
	}, within)
}

// List lists a bucket. See Reader.List.
func (e *Exchange) List(l Location, prefix string, max int, within time.Duration, done func([]Name, error)) (stop func()) {
	var names []Name
	var err error
	return e.begin(&operation{
		location: l,
		slow:     slowAfter,
		do: func(ctx context.Context) error {
			names, err = e.reader.List(ctx, l, prefix, max)
			return err
		},
		done: func() { done(names, err) },
		late: func() { done(nil, e.slow("list", l, prefix)) },
	}, within)
}

// DeleteBefore removes the member's own objects from old windows. See Writer.DeleteBefore; keep is
// called away from the loop.
func (e *Exchange) DeleteBefore(run wire.Hash, window coordinator.Round, keep func(Name) bool, within time.Duration, done func(deleted int, err error)) (stop func()) {
	var n int
	var err error
	return e.begin(&operation{
		do: func(ctx context.Context) error {
			n, err = e.writer.DeleteBefore(ctx, run, window, keep)
			return err
		},
		done: func() { done(n, err) },
		late: func() { done(0, e.slow("delete", Location{}, RunPrefix(run))) },
	}, within)
}

// slow returns the error of an operation whose deadline has passed.
func (e *Exchange) slow(op string, l Location, key string) error {
	at := "of one's own"
	if l != (Location{}) {
		at = l.String()
	}
	return &Error{Op: op, At: at, Key: key, Kind: ErrSlow}
}

// begin starts an operation, or queues it.
func (e *Exchange) begin(o *operation, within time.Duration) (stop func()) {
	o.within, o.deadline = within, e.loop.Now().Add(within)
	o.timer = e.loop.After(within, func() {
		e.judge(o)
		e.end(o, o.late)
	})
	e.waiting = append(e.waiting, o)
	e.next()
	return func() { e.end(o, nil) }
}

// next starts queued operations while there is room.
func (e *Exchange) next() {
	kept := e.waiting[:0]
	for _, o := range e.waiting {
		switch {
		case o.over:
		case e.at[o.location] < e.options.PerBucket && e.room(o.location):
			e.start(o)
		default:
			kept = append(kept, o)
		}
	}
	clear(e.waiting[len(kept):])
	e.waiting = kept
}

// room reports whether another operation in a bucket may run. Our own bucket needs no room.
func (e *Exchange) room(l Location) bool {
	most := e.options.Parallel
	return l == Location{} || e.recent < most && e.running < slowFactor*most && (e.late[l] == 0 || e.delayed < max(1, most/2))
}

// judge notes whether a bucket is late: whether an operation in it ran into its time limit, or
// failed after slowAfter. One that began shortly before its time limit says nothing.
func (e *Exchange) judge(o *operation) {
	if o.over || o.started.IsZero() || o.location == (Location{}) {
		return
	}
	now := e.loop.Now()
	ran, timed := now.Sub(o.started), !now.Before(o.deadline)
	if timed && ran >= min(o.slow, o.within/2) || !timed && o.failed && ran >= slowAfter {
		if len(e.late) >= lateMax {
			clear(e.late)
		}
		e.late[o.location] = lateOps
	} else if !timed {
		if e.late[o.location]--; e.late[o.location] <= 0 {
			delete(e.late, o.location)
		}
	}
}

// pass notes that an operation no longer counts against Parallel.
func (e *Exchange) pass(o *operation) {
	if o.recent {
		o.recent = false
		e.recent--
	}
}

func (e *Exchange) start(o *operation) {
	e.at[o.location]++
	o.started = e.loop.Now()
	settled := func() {}
	if (o.location != Location{}) {
		e.running, e.recent, o.recent = e.running+1, e.recent+1, true
		if o.delayed = e.late[o.location] > 0; o.delayed {
			e.delayed++
		}
		settled = e.loop.After(o.slow, func() {
			e.pass(o)
			e.next()
		})
	}
	var ctx context.Context
	if e.options.Simulated {
		ctx, o.cancel = context.WithCancel(context.Background())
		ctx = retry.Simulate(ctx, o.deadline.Sub(e.loop.Now()))
	} else {
		ctx, o.cancel = context.WithDeadline(context.Background(), o.deadline)
	}
	// An abandoned operation runs until it notices that its context has ended. Only then is its
	// slot free; its result is dropped.
	finish := func() {
		settled()
		if e.at[o.location]--; e.at[o.location] == 0 {
			delete(e.at, o.location)
		}
		if (o.location != Location{}) {
			e.running--
			e.pass(o)
		}
		if o.delayed {
			e.delayed--
		}
		e.judge(o)
		e.end(o, o.done)
		e.next()
	}
	e.loop.Work(0, func() { o.failed = o.do(ctx) != nil }, func() {
		if took := retry.Spent(ctx); took > 0 {
			e.loop.After(took, finish)
			return
		}
		finish()
	})
}

// end ends an operation, once, and then calls then.
func (e *Exchange) end(o *operation, then func()) {
	if o.over {
		return
	}
	o.over = true
	o.timer()
	if o.cancel != nil {
		o.cancel()
	}
	if then != nil {
		then()
	}
}

// Name returns the name of one of the member's own objects.
func (e *Exchange) Name(run wire.Hash, window coordinator.Round, kind Kind, content wire.Hash) Name {
	return Name{Run: run, Window: window, Kind: kind, Member: e.writer.Member(), Content: content}
}

// Source is a member's bucket to read from.
type Source struct {
	Location Location
	Member   key.Public
}
