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
	Parallel  int // operations at once: default 16
	PerBucket int // at once in one bucket, so that a slow one delays only itself: default 4
	// virtual loop: operations take no time, and results arrive after the stores' delays (see
	// Wait)
	Simulated bool
}

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
	running int
	at      map[Location]int // running in each bucket
}

// operation is work to be done away from the loop.
type operation struct {
	location Location // zero for the member's own bucket
	deadline time.Time
	do       func(ctx context.Context) // sets the result
	done     func()                    // takes the result, after do
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
	return &Exchange{loop: l, writer: w, reader: r, options: o, at: make(map[Location]int)}
}

// Writer returns the writer, whose Traffic counts what was sent.
func (e *Exchange) Writer() *Writer { return e.writer }

// Reader returns the reader, whose Traffic counts what was received.
func (e *Exchange) Reader() *Reader { return e.reader }

// Put publishes a body, which must not change until it is done. See Writer.Put.
func (e *Exchange) Put(n Name, body []byte, within time.Duration, done func(error)) (stop func()) {
	var err error
	return e.begin(&operation{
		do:   func(ctx context.Context) { err = e.writer.Put(ctx, n, body) },
		done: func() { done(err) },
		late: func() { done(e.late("put", Location{}, n.Path())) },
	}, within)
}

// Get fetches an object. See Reader.Get.
func (e *Exchange) Get(w Want, within time.Duration, done func([]byte, error)) (stop func()) {
	var body []byte
	var err error
	return e.begin(&operation{
		location: w.Location,
		do:       func(ctx context.Context) { body, err = e.reader.Get(ctx, w) },
		done:     func() { done(body, err) },
		late:     func() { done(nil, e.late("get", w.Location, w.Name.Path())) },
	}, within)
}

// List lists a bucket. See Reader.List.
func (e *Exchange) List(l Location, prefix string, max int, within time.Duration, done func([]Name, error)) (stop func()) {
	var names []Name
	var err error
	return e.begin(&operation{
		location: l,
		do:       func(ctx context.Context) { names, err = e.reader.List(ctx, l, prefix, max) },
		done:     func() { done(names, err) },
		late:     func() { done(nil, e.late("list", l, prefix)) },
	}, within)
}

// DeleteBefore removes the member's own objects from old windows. See Writer.DeleteBefore; keep is
// called away from the loop.
func (e *Exchange) DeleteBefore(run wire.Hash, window coordinator.Round, keep func(Name) bool, within time.Duration, done func(deleted int, err error)) (stop func()) {
	var n int
	var err error
	return e.begin(&operation{
		do:   func(ctx context.Context) { n, err = e.writer.DeleteBefore(ctx, run, window, keep) },
		done: func() { done(n, err) },
		late: func() { done(0, e.late("delete", Location{}, RunPrefix(run))) },
	}, within)
}

// late returns the error of an operation whose deadline has passed.
func (e *Exchange) late(op string, l Location, key string) error {
	at := "of one's own"
	if l != (Location{}) {
		at = l.String()
	}
	return &Error{Op: op, At: at, Key: key, Kind: ErrSlow}
}

// begin starts an operation, or queues it.
func (e *Exchange) begin(o *operation, within time.Duration) (stop func()) {
	o.deadline = e.loop.Now().Add(within)
	o.timer = e.loop.After(within, func() { e.end(o, o.late) })
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
		case e.running < e.options.Parallel && e.at[o.location] < e.options.PerBucket:
			e.start(o)
		default:
			kept = append(kept, o)
		}
	}
	clear(e.waiting[len(kept):])
	e.waiting = kept
}

func (e *Exchange) start(o *operation) {
	e.running++
	e.at[o.location]++
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
		e.running--
		if e.at[o.location]--; e.at[o.location] == 0 {
			delete(e.at, o.location)
		}
		e.end(o, o.done)
		e.next()
	}
	e.loop.Work(0, func() { o.do(ctx) }, func() {
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
