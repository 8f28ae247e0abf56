package network

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// streams are an lp2p.Streams in memory. What is written arrives after a delay.
type streams struct {
	delay time.Duration
	sent  atomic.Uint64  // bytes
	open  sync.WaitGroup // ends of connections

	mu        sync.Mutex // guards what follows
	listeners map[string]*listener
	lost      chan struct{} // closed when the connections that are there are lost
}

func newStreams(delay time.Duration) *streams {
	return &streams{delay: delay, listeners: map[string]*listener{}, lost: make(chan struct{})}
}

// lose has nothing arrive on the connections that are there, not even that they end, as when a
// machine loses power.
func (s *streams) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.lost)
	s.lost = make(chan struct{})
}

// listener is a net.Listener of streams.
type listener struct {
	of     *streams
	at     *net.TCPAddr
	came   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen implements lp2p.Streams.
func (s *streams) Listen(address string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[address] != nil {
		return nil, fmt.Errorf("listen on %s: it is taken", address)
	}
	l := &listener{of: s, at: at, came: make(chan net.Conn), closed: make(chan struct{})}
	s.listeners[address] = l
	return l, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.came:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		delete(l.of.listeners, l.at.String())
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.at }

// Dial implements lp2p.Streams.
func (s *streams) Dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	l, lost := s.listeners[address], s.lost
	s.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: nobody listens", address)
	}
	from := &net.TCPAddr{IP: l.at.IP, Port: 1 << 15}
	a, b := net.Pipe()
	near, far := s.newConn(a, from, l.at, lost), s.newConn(b, l.at, from, lost)
	select {
	case l.came <- far:
		return near, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	near.Close()
	far.Close()
	return nil, fmt.Errorf("dial %s: nobody answers", address)
}

// conn is one end of a connection. A writer waits for the reader while windowBytes are under way.
type conn struct {
	net.Conn
	of       *streams
	from, to *net.TCPAddr
	lost     <-chan struct{}

	mu       sync.Mutex // guards what follows
	queue    []written
	underway int // bytes written and not yet read
	closed   bool
	room     sync.Cond     // of mu: underway became less, or closed true
	wake     chan struct{} // holds a token when there is something new
}

const windowBytes = 256 << 10

type written struct {
	data []byte
	due  time.Time
}

func (s *streams) newConn(pipe net.Conn, from, to *net.TCPAddr, lost <-chan struct{}) *conn {
	c := &conn{Conn: pipe, of: s, from: from, to: to, lost: lost, wake: make(chan struct{}, 1)}
	c.room.L = &c.mu
	s.open.Go(c.deliver)
	return c
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.from }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.to }

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.underway >= windowBytes && !c.closed {
		c.room.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	c.queue = append(c.queue, written{append([]byte(nil), b...), time.Now().Add(c.of.delay)})
	c.underway += len(b)
	c.of.sent.Add(uint64(len(b)))
	c.changed()
	return len(b), nil
}

// Close implements net.Conn. What was written before still arrives. Reading ends at once: yamux
// waits for that with a lock held, and no time passes in a bubble of synctest while others wait for
// the lock.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.room.Broadcast()
	c.changed()
	c.Conn.SetWriteDeadline(time.Now().Add(time.Second)) // the other end may not read any more
	return c.Conn.SetReadDeadline(time.Unix(1, 0))
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) changed() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// deliver passes on what is written until the connection is closed.
func (c *conn) deliver() {
	defer func() {
		if !c.isLost() {
			c.Conn.Close()
		}
	}()
	for range c.wake {
		c.mu.Lock()
		queue, closed := c.queue, c.closed
		c.queue = nil
		c.mu.Unlock()
		for _, w := range queue {
			time.Sleep(time.Until(w.due))
			if c.isLost() {
				break
			}
			_, err := c.Conn.Write(w.data)
			c.arrived(len(w.data), err)
			if err != nil {
				return
			}
		}
		if closed {
			return
		}
	}
}

func (c *conn) isLost() bool {
	select {
	case <-c.lost:
		return true
	default:
		return false
	}
}

// arrived makes room for what is written next, or ends writing after an error.
func (c *conn) arrived(bytes int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underway -= bytes
	c.closed = c.closed || err != nil
	c.room.Broadcast()
}
