package httpserve

import (
	"context"
	"net"
	"sync"

	"golang.org/x/time/rate"
)

// Paced returns l, whose connections together send at most limit bytes a second; 0 means no limit.
// Addresses that want to send get equal parts, however many connections each has.
func Paced(l net.Listener, limit uint64) net.Listener { return paced(l, limit, false) }

// PacedBeyond is Paced for the connections of other machines: those of this one send at once, and
// so must not be those of a web server.
func PacedBeyond(l net.Listener, limit uint64) net.Listener { return paced(l, limit, true) }

func paced(l net.Listener, limit uint64, beyond bool) net.Listener {
	if limit == 0 {
		return l
	}
	return &pacedListener{Listener: l, beyond: beyond, limiter: rate.NewLimiter(rate.Limit(limit), pacedPiece), turns: map[string]*turn{}}
}

type pacedListener struct {
	net.Listener
	beyond  bool          // only connections of other machines
	limiter *rate.Limiter // of bytes; it serves those that wait in order

	mu    sync.Mutex // guards what follows
	turns map[string]*turn
}

// turn is what the connections of an address share: one of them waits for the limiter at a time.
type turn struct {
	taken chan struct{} // has room for one
	conns int
}

func (l *pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	remote := Host(c.RemoteAddr().String())
	if l.beyond && remote == Host(c.LocalAddr().String()) {
		return c, nil
	}
	from := Network(remote)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.turns[from]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		l.turns[from] = t
	}
	t.conns++
	ctx, cancel := context.WithCancel(context.Background())
	return &pacedConn{c, l.limiter, t, ctx, sync.OnceFunc(func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.conns--; t.conns == 0 {
			delete(l.turns, from)
		}
	})}, nil
}

// pacedConn hides what net.TCPConn has besides a net.Conn, such as sendfile, which would go past
// Write.
type pacedConn struct {
	net.Conn
	limiter *rate.Limiter
	turn    *turn
	open    context.Context // ends when the connection is closed
	end     func()
}

// pacedPiece is the most that an address sends before others have their turn, in bytes.
const pacedPiece = 16 << 10

func (c *pacedConn) Write(b []byte) (sent int, err error) {
	for err == nil && sent < len(b) {
		piece := b[sent:min(len(b), sent+pacedPiece)]
		if c.wait(len(piece)) != nil {
			return sent, net.ErrClosed
		}
		var n int
		n, err = c.Conn.Write(piece)
		sent += n
	}
	return sent, err
}

// wait returns when the connection may send n bytes, or when it is closed.
func (c *pacedConn) wait(n int) error {
	select {
	case c.turn.taken <- struct{}{}:
	case <-c.open.Done():
		return c.open.Err()
	}
	defer func() { <-c.turn.taken }()
	return c.limiter.WaitN(c.open, n)
}

func (c *pacedConn) Close() error {
	c.end()
	return c.Conn.Close()
}
