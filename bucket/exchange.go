package bucket

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// ExchangeOptions say how much is done at once; 0 means what the comments say.
type ExchangeOptions struct {
	Parallel  int  // operations at once: 16
	PerBucket int  // of these in one bucket, so that one that is slow holds up only its own: 4
	Simulated bool // the loop is a virtual one: operations run in no time, and their results come as much later as stores make them (see Wait)
}

// Exchange is a Writer and a Reader on a participant's loop. Its methods are called on the loop and return at once; each result comes on the loop,
// later, and exactly once unless stop is called before. Operations beyond what is done at once wait, in the order in which they came.
//
// Nothing waits longer than the time it is given, counted from the call; the caller takes it from the chain's deadlines, and calls stop when the
// chain has gone on.
type Exchange struct {
	loop    loop.Loop
	writer  *Writer
	reader  *Reader
	options ExchangeOptions
	waiting []*operation
	running int
	at      map[Location]int // running in each bucket
}

// operation is one thing to be done away from the loop.
type operation struct {
	location Location // "" is the own bucket
	deadline time.Time
	do       func(ctx context.Context) // sets the result
	done     func()                    // takes the result, after do
	late     func()                    // instead of done, when the time has passed; do may go on meanwhile
	over     bool                      // one of them has been called, or none will be
	cancel   context.CancelFunc        // nil until it runs
	timer    func()
}

// NewExchange returns an exchange on l. A participant that only reads, such as a validator that publishes nothing, has no writer.
func NewExchange(l loop.Loop, w *Writer, r *Reader, o ExchangeOptions) *Exchange {
	if o.Parallel <= 0 {
		o.Parallel = parallel
	}
	if o.PerBucket <= 0 {
		o.PerBucket = 4
	}
	return &Exchange{loop: l, writer: w, reader: r, options: o, at: make(map[Location]int)}
}

// Writer returns the writer, whose Traffic says what was sent.
func (e *Exchange) Writer() *Writer { return e.writer }

// Reader returns the reader, whose Traffic says what was received.
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

// Get gets an object. See Reader.Get.
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

// DeleteBefore removes own objects of windows long over. See Writer.DeleteBefore; keep is called away from the loop.
func (e *Exchange) DeleteBefore(run wire.Hash, window uint32, keep func(Name) bool, within time.Duration, done func(deleted int, err error)) (stop func()) {
	var n int
	var err error
	return e.begin(&operation{
		do:   func(ctx context.Context) { n, err = e.writer.DeleteBefore(ctx, run, window, keep) },
		done: func() { done(n, err) },
		late: func() { done(0, e.late("delete", Location{}, RunPrefix(run))) },
	}, within)
}

// late is the error of an operation whose time has passed.
func (e *Exchange) late(op string, l Location, key string) error {
	at := "of one's own"
	if l != (Location{}) {
		at = l.String()
	}
	return &Error{Op: op, At: at, Key: key, Kind: ErrSlow}
}

// begin starts an operation, or lets it wait for its turn.
func (e *Exchange) begin(o *operation, within time.Duration) (stop func()) {
	o.deadline = e.loop.Now().Add(within)
	o.timer = e.loop.After(within, func() { e.end(o, o.late) })
	e.waiting = append(e.waiting, o)
	e.next()
	return func() { e.end(o, nil) }
}

// next starts what may be started.
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
	// An operation that was given up goes on until it notices the end of its context. Its place is free only then, and its result is dropped.
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

// Name returns the name of an own object.
func (e *Exchange) Name(run wire.Hash, window uint32, kind Kind, content wire.Hash) Name {
	return Name{Run: run, Window: window, Kind: kind, Member: e.writer.Member(), Content: content}
}

// Source is where somebody's objects are.
type Source struct {
	Location Location
	Member   key.Public
}
