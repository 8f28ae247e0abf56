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
	From   []Source  // whose buckets have it; parts are spread over all of them
}

// blobParallel is the number of parts of a blob in transfer at once.
const blobParallel = 8

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
	c.running++
	c.stops[id] = start(func() {
		delete(c.stops, id)
		c.running--
	})
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
	c.run(func(ended func()) func() {
		return c.exchange.Put(n, body, c.left(), func(err error) {
			ended()
			if err != nil {
				c.end(err)
				return
			}
			then()
		})
	})
}

// get fetches one object from the first source that has it, starting at source number first, then
// calls then.
func (c *carrying) get(b BlobWant, first int, w Want, then func([]byte)) {
	var faults []error
	var try func(int)
	try = func(k int) {
		if k == len(b.From) {
			c.end(fmt.Errorf("none of %d buckets has %s %s of window %d: %w", len(b.From), w.Name.Kind, w.Name.Content, b.Window, errors.Join(faults...)))
			return
		}
		s := b.From[(first+k)%len(b.From)]
		w.Location, w.Name.Member = s.Location, s.Member
		within := c.left()
		if k+1 < len(b.From) { // reserve time for the other sources in case this one is slow
			within /= 3
		}
		c.run(func(ended func()) func() {
			return c.exchange.Get(w, within, func(body []byte, err error) {
				ended()
				if err != nil {
					faults = append(faults, err)
					try(k + 1)
					return
				}
				then(body)
			})
		})
	}
	try(0)
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
// from one of them, trying another if that fails. Whatever the buckets serve, done receives either
// the blob with the requested root or an error.
func (e *Exchange) Blob(b BlobWant, within time.Duration, done func([]byte, error)) (stop func()) {
	var data []byte
	c := e.carry(within, func(err error) {
		if err != nil {
			data = nil
		}
		done(data, err)
	})
	if b.Bytes > BlobBytesMax || len(b.From) == 0 {
		e.loop.Post(func() {
			c.end(fmt.Errorf("blob %s of %d bytes from %d buckets: too large, or there is no bucket to ask", b.Root, b.Bytes, len(b.From)))
		})
		return c.stop
	}
	c.last = func() { c.end(nil) }
	n := Name{Run: b.Run, Window: b.Window, Kind: KindIndex, Content: b.Root}
	c.get(b, 0, Want{Name: n, Max: Parts(b.Bytes) * len(wire.Hash{})}, func(body []byte) {
		roots, err := parseIndex(body, b.Root)
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
				c.get(b, i, w, func(body []byte) {
					copy(data[from:], body)
					c.advance()
				})
			})
		}
		c.advance()
	})
	return c.stop
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
