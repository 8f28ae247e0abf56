package blocks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/wire"
)

// atOnceMax bounds the watchers that fetch the whole state at once.
const atOnceMax = 256

// Attached is what watchers have measured.
type Attached struct {
	First     float64       `json:"first"`        // bytes of each until it had the state
	Bytes     float64       `json:"bytes"`        // of each since, all that its connection brought
	Beats     float64       `json:"beats"`        // of these, frames without news
	Frames    int           `json:"frames"`       // with news, that all have got
	Processor time.Duration `json:"processor_ns"` // of each, to receive and not to apply
	// Late is how long after the first watcher the last one had a frame, at most.
	Late time.Duration `json:"late_ns"`
}

// frameOf is the state that a frame begins with: its height and its mark.
type frameOf [16]byte

// crowd is watchers of one endpoint.
type crowd struct {
	n           int
	bytes, beat atomic.Uint64
	ready       chan struct{}

	mu     sync.Mutex // guards what follows
	begun  int        // watchers that have the state
	frames map[frameOf]*arrival
}

// arrival is when a frame came to how many.
type arrival struct {
	count       int
	first, last time.Time
}

// Attach has light watchers follow the run at an endpoint. They read frames and do not apply them.
// A line on out says that all have the state. They measure from a line of in on, and at its end
// write an Attached as JSON.
func Attach(ctx context.Context, endpoint string, n int, in io.Reader, out io.Writer) error {
	c := &crowd{n: n, ready: make(chan struct{}), frames: map[frameOf]*arrival{}}
	failed := make(chan error, n)
	places := make(chan struct{}, atOnceMax)
	go func() {
		for range n {
			places <- struct{}{}
			go func() {
				failed <- c.watch(ctx, endpoint, sync.OnceFunc(func() { <-places }))
			}()
		}
	}()
	select {
	case err := <-failed:
		return err
	case <-c.ready:
	}
	first := c.bytes.Load()
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Scan()
	c.mu.Lock()
	clear(c.frames)
	c.mu.Unlock()
	bytes, beats, processor := c.bytes.Load(), c.beat.Load(), processorTime()
	for lines.Scan() {
	}
	each := func(v uint64) float64 { return float64(v) / float64(n) }
	r := Attached{
		First: each(first), Bytes: each(c.bytes.Load() - bytes), Beats: each(c.beat.Load() - beats),
		Processor: (processorTime() - processor) / time.Duration(n),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.frames {
		if a.count == n {
			r.Frames++
			r.Late = max(r.Late, a.last.Sub(a.first))
		}
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	b, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintln(out, string(b))
	}
	return err
}

// watch reads the frames of one watcher. It calls got when it has the state.
func (c *crowd) watch(ctx context.Context, endpoint string, got func()) error {
	defer got()
	at, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/v1/runs/"+runName+"/watch?light=1", nil)
	if err != nil {
		return err
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	r := bufio.NewReader(&counted{conn, &c.bytes})
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("blocks: %s", res.Status)
	}
	var b []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(res.Body, head[:]); err != nil {
			return errors.Join(errors.New("blocks: a stream ended"), err)
		}
		l := wire.NewReader(head[:])
		n := int(l.U32())
		if cap(b) < n {
			b = make([]byte, n)
		}
		b = b[:n]
		if _, err := io.ReadFull(res.Body, b); err != nil {
			return err
		}
		c.arrived(b, got)
	}
}

// arrived counts a frame.
func (c *crowd) arrived(b []byte, got func()) {
	const beat = 0
	if b[0] == beat || len(b) < 1+len(frameOf{}) {
		c.beat.Add(uint64(4 + len(b)))
		return
	}
	now, of := time.Now(), frameOf(b[1:])
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.frames[of]
	if a == nil {
		a = &arrival{first: now}
		c.frames[of] = a
	}
	a.count, a.last = a.count+1, now
	if of == (frameOf{}) {
		got()
		if c.begun++; c.begun == c.n {
			close(c.ready)
		}
	}
}

// counted counts what is read from a connection.
type counted struct {
	io.Reader
	bytes *atomic.Uint64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytes.Add(uint64(n))
	return n, err
}
