package httpserve

import (
	"context"
	"net"

	"golang.org/x/time/rate"
)

// Paced returns l, whose connections together send at most limit bytes a second; 0 means no limit.
func Paced(l net.Listener, limit uint64) net.Listener {
	if limit == 0 {
		return l
	}
	return pacedListener{l, rate.NewLimiter(rate.Limit(limit), pacedPiece)}
}

type pacedListener struct {
	net.Listener
	limiter *rate.Limiter // of bytes
}

func (l pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &pacedConn{c, l.limiter, ctx, cancel}, nil
}

// pacedConn hides what net.TCPConn has besides a net.Conn, such as sendfile, which would go past
// Write.
type pacedConn struct {
	net.Conn
	limiter *rate.Limiter
	open    context.Context // ends when the connection is closed
	end     context.CancelFunc
}

// pacedPiece is the most that a connection sends before others have their turn, in bytes.
const pacedPiece = 16 << 10

func (c *pacedConn) Write(b []byte) (sent int, err error) {
	for err == nil && sent < len(b) {
		piece := b[sent:min(len(b), sent+pacedPiece)]
		if c.limiter.WaitN(c.open, len(piece)) != nil {
			return sent, net.ErrClosed
		}
		var n int
		n, err = c.Conn.Write(piece)
		sent += n
	}
	return sent, err
}

func (c *pacedConn) Close() error {
	c.end()
	return c.Conn.Close()
}
