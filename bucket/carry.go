package bucket

import (
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// BlobWant is a blob that several members publish, such as the parameters of a window, whose root
// the chain records.
type BlobWant struct {
	Run    wire.Hash
	Window coordinator.Round
	Root   wire.Hash // merkle.BlobRoot
	Bytes  uint64    // its size
	From   []Source  // whose buckets may have it, the likeliest first
	Kept   Keeper    // has parts that came before; nil: none
}

// A Keeper keeps parts of blobs on this machine by their roots, so that a fetch continues after a
// crash. It may lose any of them, and verifies what it returns. Any goroutine calls it.
type Keeper interface {
	// Get returns the part of size bytes with this root, nil if it is not there.
	Get(root wire.Hash, size uint64) []byte

	// Put keeps a part, if it can.
	Put(root wire.Hash, part []byte)
}

const (
	// blobParallel is the number of parts of a blob in transfer at once.
	blobParallel = 8
	// indexParallel is the number of buckets that are asked for the index at once. Parts are spread
	// over those that have it.
	indexParallel = 4
	// blobTry bounds the first attempt at a part in a bucket while there are others to try: one that
	// serves nothing must not take the time of the transfer.
	blobTry = 30 * time.Second
)

// standing is what is known of a source in a transfer, the best first.
type standing uint8

const (
	serves  standing = iota // the last object came
	unknown                 // nothing
	late                    // the last object did not come in time
	fails                   // it was missing, or wrong
)

// carrying is a blob in transfer.
type carrying struct {
	exchange *Exchange
	deadline time.Time
	queue    []func() // parts still to be started
	running  int
	last     func() // runs after all parts
	stops    map[int]func()
	started  int
	over     bool
	finish   func(error)
	sources  []standing // of a blob that is fetched
}

func (e *Exchange) carry(within time.Duration, finish func(error)) *carrying {
	return &carrying{exchange: e, deadline: e.loop.Now().Add(within), stops: make(map[int]func()), finish: finish}
}

// left returns the remaining time.
func (c *carrying) left() time.Duration { return c.deadline.Sub(c.exchange.loop.Now()) }

// stop ends the transfer and everything in progress, without a result.
func (c *carrying) stop() {
	c.over = true
	for _, stop := range c.stops {
		stop()
	}
	clear(c.stops)
}

// end ends the transfer with a result.
func (c *carrying) end(err error) {
	if !c.over {
		c.stop()
		c.finish(err)
	}
}

// run starts an operation that calls ended when it is over.
func (c *carrying) run(start func(ended func()) (stop func())) {
	id := c.started
	c.started++
	c.stops[id] = start(func() { delete(c.stops, id) })
}

// advance starts parts while there is room, and runs last when none remains.
func (c *carrying) advance() {
	for !c.over && len(c.queue) > 0 && c.running < blobParallel {
		next := c.queue[0]
		c.queue = c.queue[1:]
		next()
	}
	if !c.over && len(c.queue) == 0 && c.running == 0 {
		c.last()
	}
}

// put publishes one object, then calls then.
func (c *carrying) put(n Name, body []byte, then func()) {
	c.running++
	c.run(func(ended func()) func() {
		return c.exchange.Put(n, body, c.left(), func(err error) {
			ended()
			c.running--
			if err != nil {
				c.end(err)
				return
			}
			then()
		})
	})
}

// get fetches one object: from the sources that serve, beginning with another one for each object,
// and then from the others. Then it calls then.
func (c *carrying) get(b BlobWant, object int, w Want, then func([]byte)) {
	var faults []error
	tried := map[int]bool{}
	var try func()
	try = func() {
		k := c.source(object, tried)
		if k < 0 {
			c.end(noneHas(b, w, faults))
			return
		}
		tried[k] = true
		c.ask(b, k, w, len(tried) == len(b.From), func(body []byte, err error) {
			if err != nil {
				faults = append(faults, err)
				try()
				return
			}
			c.running--
			then(body)
		})
	}
	c.running++
	try()
}

// source returns the best source that was not tried, -1 if there is none.
func (c *carrying) source(object int, tried map[int]bool) int {
	best := -1
	for i := range c.sources {
		k := (object + i) % len(c.sources)
		if !tried[k] && (best < 0 || c.sources[k] < c.sources[best]) {
			best = k
		}
	}
	return best
}

// ask fetches one object from source k.
func (c *carrying) ask(b BlobWant, k int, w Want, last bool, done func([]byte, error)) {
	w.Location, w.Name.Member = b.From[k].Location, b.From[k].Member
	within := c.left()
	if !last { // reserve time for the other sources in case this one is slow
		if within /= 3; c.sources[k] != late {
			within = min(within, blobTry)
		}
	}
	c.run(func(ended func()) func() {
		return c.exchange.Get(w, within, func(body []byte, err error) {
			ended()
			switch {
			case err == nil:
				c.sources[k] = serves
			case errors.Is(err, ErrSlow):
				c.sources[k] = late
			default:
				c.sources[k] = fails
			}
			done(body, err)
		})
	})
}

func noneHas(b BlobWant, w Want, faults []error) error {
	return fmt.Errorf("none of %d buckets has %s %s of window %d: %w", len(b.From), w.Name.Kind, w.Name.Content, b.Window, errors.Join(faults...))
}

// index fetches the index of a blob from several sources at once, and calls then with the first
// that comes.
func (c *carrying) index(b BlobWant, w Want, then func([]byte)) {
	var faults []error
	asked, found := 0, false
	var try func()
	try = func() {
		k := asked
		asked++
		c.ask(b, k, w, k+1 == len(b.From), func(body []byte, err error) {
			switch {
			case err == nil && !found:
				found = true
				then(body)
			case found: // it serves too
			case asked < len(b.From):
				faults = append(faults, err)
				try()
			default:
				if faults = append(faults, err); len(faults) == len(b.From) {
					c.end(noneHas(b, w, faults))
				}
			}
		})
	}
	for range min(indexParallel, len(b.From)) {
		try()
	}
}

// PutBlob publishes a blob: its parts first and then its index, so that a reader who finds the
// index also finds the parts. The data must not change until the transfer is done, and may be in
// use for a moment after stop.
func (e *Exchange) PutBlob(run wire.Hash, window coordinator.Round, data []byte, within time.Duration, done func(root wire.Hash, err error)) (stop func()) {
	var roots []wire.Hash
	var root wire.Hash
	c := e.carry(within, func(err error) { done(root, err) })
	e.loop.Work(0, func() { roots = index(data) }, func() {
		root = merkle.Root(roots)
		c.last = func() {
			c.put(e.Name(run, window, KindIndex, root), appendIndex(nil, roots), func() { c.end(nil) })
		}
		for i, r := range roots {
			from, to := part(uint64(len(data)), i)
			c.queue = append(c.queue, func() { c.put(e.Name(run, window, KindPart, r), data[from:to], c.advance) })
		}
		c.advance()
	})
	return c.stop
}

// Blob fetches a blob from several buckets: its index from the first that has it, and each part
// from one of them, trying another if that fails. Parts that b.Kept has are not fetched, and it
// gets the others. Whatever the buckets serve, done receives either the blob with the requested
// root and the roots of its parts, or an error.
func (e *Exchange) Blob(b BlobWant, within time.Duration, done func(data []byte, parts []wire.Hash, err error)) (stop func()) {
	var data []byte
	var roots []wire.Hash
	c := e.carry(within, func(err error) {
		if err != nil {
			data, roots = nil, nil
		}
		done(data, roots, err)
	})
	if b.Bytes > BlobBytesMax || len(b.From) == 0 {
		e.loop.Post(func() {
			c.end(fmt.Errorf("blob %s of %d bytes from %d buckets: too large, or there is no bucket to ask", b.Root, b.Bytes, len(b.From)))
		})
		return c.stop
	}
	c.last = func() { c.end(nil) }
	c.sources = make([]standing, len(b.From))
	for k := range c.sources {
		c.sources[k] = unknown
	}
	n := Name{Run: b.Run, Window: b.Window, Kind: KindIndex, Content: b.Root}
	c.index(b, Want{Name: n, Max: Parts(b.Bytes) * len(wire.Hash{})}, func(body []byte) {
		var err error
		roots, err = parseIndex(body, b.Root)
		if err != nil || len(roots) != Parts(b.Bytes) {
			c.end(fmt.Errorf("blob %s: its index has %d parts, want %d", b.Root, len(roots), Parts(b.Bytes)))
			return
		}
		data = make([]byte, b.Bytes)
		for i, root := range roots {
			from, to := part(b.Bytes, i)
			w := Want{Name: n, Max: int(to - from), Check: exactly(to - from)}
			w.Name.Kind, w.Name.Content = KindPart, root
			c.queue = append(c.queue, func() {
				c.kept(b, w, data[from:to], func() {
					c.get(b, i, w, func(body []byte) {
						copy(data[from:], body)
						c.keep(b, w, body)
						c.advance()
					})
				})
			})
		}
		c.advance()
	})
	return c.stop
}

// kept copies a part that was kept into place, or calls missing.
func (c *carrying) kept(b BlobWant, w Want, place []byte, missing func()) {
	if b.Kept == nil {
		missing()
		return
	}
	c.running++
	found := false
	c.exchange.loop.Work(0, func() {
		found = copy(place, b.Kept.Get(w.Name.Content, uint64(len(place)))) == len(place)
	}, func() {
		c.running--
		switch {
		case c.over:
		case found:
			c.advance()
		default:
			missing()
		}
	})
}

// keep keeps a part that came.
func (c *carrying) keep(b BlobWant, w Want, body []byte) {
	if b.Kept != nil {
		c.exchange.loop.Work(0, func() { b.Kept.Put(w.Name.Content, body) }, func() {})
	}
}

// exactly checks the size of a body.
func exactly(n uint64) func([]byte) error {
	return func(b []byte) error {
		if uint64(len(b)) != n {
			return fmt.Errorf("it has %d bytes, want %d", len(b), n)
		}
		return nil
	}
}
