package httpserve

import (
	"net"
	"net/netip"
	"sync"
)

// A process needs descriptors for more than its servers.
const (
	connsPart = 8       // of the descriptors, the part that a server beside others may have
	connsMax  = 1 << 12 // connections of a server at most
	addrPart  = 4       // of those, the part that one address may have
)

// Places bounds how many hold a place at once: in all, and those of one address. Its methods may be
// called from any goroutine.
type Places struct {
	All, Each int        // not to be changed
	mu        sync.Mutex // guards what follows
	taken     int
	by        map[string]int
}

// NewPlaces returns all places, of which one address may have each.
func NewPlaces(all, each int) *Places { return &Places{All: all, Each: each, by: map[string]int{}} }

// Conns returns places for connections: a part of the descriptors of this process.
func Conns(part uint64) *Places {
	all := int(min(Descriptors()/part, connsMax))
	return NewPlaces(all, all/addrPart)
}

// Take takes a place for an address, if one is free. The address "" has no bound of its own.
func (p *Places) Take(addr string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.All || addr != "" && p.by[addr] >= p.Each {
		return false
	}
	p.taken++
	p.by[addr]++
	return true
}

// Count returns how many places are taken.
func (p *Places) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Give gives a place back that was taken for an address.
func (p *Places) Give(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[addr]--; p.by[addr] == 0 {
		delete(p.by, addr)
	}
}

// Host returns an address without its port.
func Host(addr string) string {
	h, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return h
}

// Network returns the address by which a client is counted: of IPv6 its first 64 bits, since a
// client with one such address has all that begin so.
func Network(addr string) string {
	a, err := netip.ParseAddr(addr)
	if err != nil || a.Unmap().Is4() {
		return addr
	}
	return netip.PrefixFrom(a, 64).Masked().String()
}

// Stranger returns the address by which a connection is counted, or "" for one of this machine,
// where a web server may be.
func Stranger(remote string) string {
	from := Host(remote)
	if a, err := netip.ParseAddr(from); err == nil && a.Unmap().IsLoopback() {
		return ""
	}
	return Network(from)
}

// Limit returns a listener that closes connections for which there is no place as they come. By
// says for which address a connection from a remote one counts.
func Limit(l net.Listener, p *Places, by func(remote string) string) net.Listener {
	return &limited{l, p, by}
}

type limited struct {
	net.Listener
	places *Places
	by     func(string) string
}

// Accept waits for a connection for which there is a place.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if from := l.by(c.RemoteAddr().String()); l.places.Take(from) {
			return &limitedConn{Conn: c, give: sync.OnceFunc(func() { l.places.Give(from) })}, nil
		}
		c.Close()
	}
}

type limitedConn struct {
	net.Conn
	give func()
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}

// bounded returns l with a limit, unless it has one.
func bounded(l net.Listener) net.Listener {
	if _, ok := l.(*limited); ok {
		return l
	}
	return Limit(l, Conns(connsPart), Stranger)
}
