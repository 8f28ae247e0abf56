//go:build unix

package lp2p

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
)

// BenchmarkFetch fetches 64 MiB over loopback; both ends share the machine. Between two fetches it sends the same
// bytes over a TCP connection, and over one with TLS 1.3 to a receiver that hashes each chunk, which is the least
// that an encrypted and verified transfer costs. It prints what each takes of the processors, for both ends, and
// how fast a fetch is compared with each, by the clock and by the processors' time.
func BenchmarkFetch(b *testing.B) {
	data := blob(64<<20, 9)
	for _, c := range []struct {
		name    string
		listen  string
		sources int
		rate    float64 // bytes a second that a connection carries each way; 0: as many as it can
	}{
		{"tcp/1", loopbackTCP, 1, 0},
		{"tcp/3", loopbackTCP, 3, 0},
		{"tcp/1Gbps", loopbackTCP, 1, 1e9 / 8},
		{"tcp/100Mbps", loopbackTCP, 1, 1e8 / 8},
		{"quic/1", loopbackQUIC, 1, 0},
		{"quic/3", loopbackQUIC, 3, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			ps := together(b, 1+c.sources, func(o *Options) {
				if o.Listen = []string{c.listen}; c.rate > 0 {
					o.Streams = paced(c.rate)
				}
			})
			ref := put(b, data, ps[1:]...)
			var from []key.Public
			for _, p := range ps[1:] {
				from = append(from, p.Self())
			}
			raw, sealed := newPipe(b, data, c.rate, nil), newPipe(b, data, c.rate, certified(b))
			leaves := merkle.BlobLeaves(data)
			var fetched, sent, verified cost
			for b.Loop() {
				fetched.add(func() {
					if _, err := fetch(b, ps[0], p2p.Fetch{Ref: ref, From: from}); err != nil {
						b.Fatal(err)
					}
				})
				sent.add(func() { raw.receive(b, nil) })
				verified.add(func() { sealed.receive(b, leaves) })
			}
			bytes := float64(b.N) * float64(len(data))
			b.ReportMetric(float64(fetched.clock)/float64(b.N), "ns/op")
			b.ReportMetric(bytes/fetched.clock.Seconds()/1e6, "MB/s")
			b.ReportMetric(bytes/sent.clock.Seconds()/1e6, "MB/s-TCP")
			b.ReportMetric(bytes/verified.clock.Seconds()/1e6, "MB/s-TLS")
			b.ReportMetric(100*sent.clock.Seconds()/fetched.clock.Seconds(), "%of-TCP")
			b.ReportMetric(100*verified.clock.Seconds()/fetched.clock.Seconds(), "%of-TLS")
			b.ReportMetric(float64(fetched.processor)/bytes, "cpu-ns/B")
			b.ReportMetric(float64(sent.processor)/bytes, "cpu-ns/B-TCP")
			b.ReportMetric(float64(verified.processor)/bytes, "cpu-ns/B-TLS")
		})
	}
}

// paced is a TCP link by the bytes a second that it carries each way.
type paced float64

type pacedListener struct {
	net.Listener
	rate float64
}

type pacedConn struct {
	net.Conn
	rate float64
	mu   sync.Mutex // guards free
	free time.Time  // when what was written has been carried
}

func (r paced) Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	return pacedListener{l, float64(r)}, err
}

func (r paced) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &pacedConn{Conn: c, rate: float64(r)}, nil
}

func (l pacedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &pacedConn{Conn: c, rate: l.rate}, nil
}

// Write waits until all but the last ten milliseconds of what was written has been carried.
func (c *pacedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	now := time.Now()
	if c.free.Before(now) {
		c.free = now
	}
	c.free = c.free.Add(time.Duration(float64(len(b)) / c.rate * float64(time.Second)))
	wait := c.free.Sub(now) - 10*time.Millisecond
	c.mu.Unlock()
	time.Sleep(wait) // the link's own time, which the benchmark measures
	return c.Conn.Write(b)
}

// cost is time by the clock, and of the process on all processors.
type cost struct{ clock, processor time.Duration }

func (c *cost) add(f func()) {
	began, used := time.Now(), processorTime()
	f()
	c.clock += time.Since(began)
	c.processor += processorTime() - used
}

// pipe is a connection whose other end sends data for each byte that it receives.
type pipe struct {
	net.Conn
	buffer []byte
}

// newPipe makes one over TCP at a rate, and over TLS with config if that is not nil.
func newPipe(b *testing.B, data []byte, rate float64, config *tls.Config) pipe {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if rate > 0 {
			c = &pacedConn{Conn: c, rate: rate}
		}
		if config != nil {
			c = tls.Server(c, config)
		}
		var asked [1]byte
		for {
			if _, err := io.ReadFull(c, asked[:]); err != nil {
				return
			}
			for i := range merkle.BlobChunks(uint64(len(data))) {
				from, to := merkle.Chunk(uint64(len(data)), i)
				if _, err := c.Write(data[from:to]); err != nil {
					return
				}
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	if config != nil {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	}
	return pipe{c, make([]byte, len(data))}
}

// receive receives the data once, and compares the chunks' hashes with leaves unless they are nil.
func (p pipe) receive(b *testing.B, leaves []merkle.Hash) {
	if _, err := p.Write([]byte{1}); err != nil {
		b.Fatal(err)
	}
	size := uint64(len(p.buffer))
	for i := range merkle.BlobChunks(size) {
		from, to := merkle.Chunk(size, i)
		if _, err := io.ReadFull(p, p.buffer[from:to]); err != nil {
			b.Fatal(err)
		}
		if leaves != nil && merkle.Leaf(p.buffer[from:to]) != leaves[i] {
			b.Fatal("other bytes came")
		}
	}
}

// certified returns what a TLS server needs, with a certificate that it signed itself.
func certified(b *testing.B) *tls.Config {
	b.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		b.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: secret}}}
}

// BenchmarkSmallFetch fetches 64 KiB, the size of a round's payload.
func BenchmarkSmallFetch(b *testing.B) {
	ps := together(b, 2, nil)
	ref := put(b, blob(64<<10, 9), ps[1])
	b.SetBytes(64 << 10)
	for b.Loop() {
		if _, err := fetch(b, ps[0], p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime returns the time that the process has spent on all processors.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
