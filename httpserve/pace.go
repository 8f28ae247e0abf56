package httpserve

import (
	"net"
	"sync"
	"time"
)

// Paced returns l, whose connections together send at most rate bytes a second; 0 means no limit.
func Paced(l net.Listener, rate uint64) net.Listener {
	if rate == 0 {
		return l
	}
	return &pacedListener{Listener: l, rate: float64(rate)}
}

type pacedListener struct {
	net.Listener
	rate float64 // bytes a second

	mu   sync.Mutex // guards next
	next time.Time  // when what was sent so far is paid for
}

func (l *pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &pacedConn{Conn: c, l: l}, nil
}

// wait waits until size more bytes may be sent.
func (l *pacedListener) wait(size int) {
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	pause := l.next.Sub(now)
	l.next = l.next.Add(time.Duration(float64(size) / l.rate * float64(time.Second)))
	l.mu.Unlock()
	time.Sleep(pause)
}

// pacedConn hides what net.TCPConn has besides a net.Conn, such as sendfile, which would go past
// Write.
type pacedConn struct {
	net.Conn
	l *pacedListener
}

// pacedPiece is the most that a connection sends before others have their turn, in bytes.
const pacedPiece = 16 << 10

func (c *pacedConn) Write(b []byte) (sent int, err error) {
	for err == nil && sent < len(b) {
		piece := b[sent:min(len(b), sent+pacedPiece)]
		c.l.wait(len(piece))
		var n int
		n, err = c.Conn.Write(piece)
		sent += n
	}
	return sent, err
}
