package httpserve_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// dialed is a listener of the connections in it.
type dialed chan net.Conn

func (d dialed) Accept() (net.Conn, error) { return <-d, nil }
func (dialed) Close() error                { return nil }
func (dialed) Addr() net.Addr              { return nil }

// Two connections share the rate, however much each writes at once.
func TestPacedBoundsAllConnectionsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, rate = 500_000, 100_000 // of each, in bytes; of both, in bytes a second
		d := make(dialed, 2)
		l := httpserve.Paced(d, rate)
		began := time.Now()
		var conns sync.WaitGroup
		for range cap(d) {
			ours, theirs := net.Pipe()
			d <- ours
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns.Go(func() {
				if n, err := c.Write(make([]byte, size)); n != size || err != nil {
					t.Errorf("sent %d bytes: %v", n, err)
				}
				_ = c.Close()
			})
			conns.Go(func() {
				if n, err := io.Copy(io.Discard, theirs); n != size || err != nil {
					t.Errorf("%d bytes came: %v", n, err)
				}
			})
		}
		conns.Wait()
		if took := time.Since(began); took < 9800*time.Millisecond || took > 10*time.Second {
			t.Errorf("twice %d bytes at %d a second took %v", size, rate, took)
		}
	})
	if l := make(dialed); httpserve.Paced(l, 0) != net.Listener(l) {
		t.Error("a rate of 0 changes the listener")
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	addr string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.addr), 1))
}

// here is the address that connections come to.
const here = "198.51.100.1"

func (c from) LocalAddr() net.Addr { return from{addr: here}.RemoteAddr() }

// An address with a hundred connections that read without end, all in one IPv6 network, leaves half of
// the rate to another one.
func TestPacedSharesByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, rate = 160 << 10, 160 << 10
		d := make(dialed, 1)
		l := httpserve.Paced(d, rate)
		write := func(addr string, endless bool) (c net.Conn, done chan struct{}) {
			ours, theirs := net.Pipe()
			d <- from{ours, addr}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			done = make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			go func() {
				defer close(done)
				for n := size; n == size; {
					if n, _ = c.Write(make([]byte, size)); !endless {
						return
					}
				}
			}()
			return c, done
		}
		var all []net.Conn
		for i := range 100 {
			c, _ := write(fmt.Sprintf("2001:db8::%x", i+1), true)
			all = append(all, c)
		}
		time.Sleep(3 * time.Second) // of the virtual clock: the limiter's first burst is spent
		began := time.Now()
		c, done := write("192.0.2.1", false)
		<-done
		if took := time.Since(began); took > 2300*time.Millisecond {
			t.Errorf("%d bytes at half of %d a second took %v", size, rate, took)
		}
		for _, c := range append(all, c) {
			_ = c.Close()
		}
		synctest.Wait()
	})
}

// What a machine sends to itself waits for no stranger, however many addresses wait for their turn.
func TestPacedBeyondThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make(dialed, 1)
		l := httpserve.PacedBeyond(d, 16<<10)
		accept := func(remote string) net.Conn {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			d <- from{ours, remote}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		var all []net.Conn
		for i := range 20 {
			c := accept(fmt.Sprint("192.0.2.", i+1))
			all = append(all, c)
			go func() { _, _ = c.Write(make([]byte, 1<<20)) }()
		}
		synctest.Wait()
		for remote, want := range map[string]time.Duration{here: 0, "192.0.2.200": 10 * time.Second} {
			c := accept(remote)
			all = append(all, c)
			began := time.Now()
			if _, err := c.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < want || want == 0 && took > 0 {
				t.Errorf("%s waited for %v", remote, took)
			}
		}
		for _, c := range all {
			_ = c.Close()
		}
		synctest.Wait()
	})
}

// A connection that waits for its turn ends when it is closed, as at the end of the program.
func TestPacedWritesEndWhenTheConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make(dialed, 1)
		ours, theirs := net.Pipe()
		d <- ours
		c, err := httpserve.Paced(d, 1).Accept() // a byte a second
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		began, done := time.Now(), make(chan error)
		go func() {
			_, err := c.Write(make([]byte, 1<<20))
			done <- err
		}()
		synctest.Wait()
		_ = c.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
