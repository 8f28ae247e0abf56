package comet

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

// Silent connections do not use up the descriptors of a replica, nor do those of one address the
// places of others.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for limit, want := range map[uint64]int{1024: 512, 4096: 2048, 1 << 20: connsMax, 1 << 63: connsMax} {
		if got := connsOf(limit); got != want {
			t.Errorf("of %d descriptors clients may have %d, want %d", limit, got, want)
		}
	}
	p := newPlaces(8, 2)
	taken := 0
	for range 10 {
		if p.take("203.0.113.5") {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("one address took %d places", taken)
	}
	for i := range 6 {
		if !p.take(fmt.Sprint("198.51.100.", i)) {
			t.Errorf("address %d found no place", i)
		}
	}
	if p.take("192.0.2.1") || p.take("") {
		t.Error("more than all places were taken")
	}
	p.give("203.0.113.5")
	if !p.take("192.0.2.1") || p.count() != 8 {
		t.Errorf("a place that was given back is not free; %d are taken", p.count())
	}
}

// The listener counts by address, but not its own machine, where a web server may be.
func TestTheListenerBoundsAnAddress(t *testing.T) {
	p := newProxies([]string{"10.0.0.9"})
	for addr, want := range map[string]string{"127.0.0.1:80": "", "[::1]:80": "", "10.0.0.9:80": "", "10.0.0.8:80": "10.0.0.8", "[::ffff:10.0.0.9]:80": ""} {
		if got := p.bounded(addr); got != want {
			t.Errorf("%s counts as %q", addr, got)
		}
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &limitListener{inner, newPlaces(1, 1), nil}
	defer l.Close()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := l.Accept()
	if err != nil || l.places.count() != 1 {
		t.Fatalf("%v, %d connections", err, l.places.count())
	}
	c.Close()
	c.Close()
	if n := l.places.count(); n != 0 {
		t.Errorf("%d connections after it ended", n)
	}
}

// Behind a web server every client has its own limits, and none can choose who it is.
func TestOnlyATrustedProxySaysWhoItsClientIs(t *testing.T) {
	p := newProxies([]string{"127.0.0.1", "10.0.0.9"})
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"203.0.113.5:999", nil, "203.0.113.5"},
		{"203.0.113.5:999", []string{"198.51.100.1"}, "203.0.113.5"},
		{"127.0.0.1:999", nil, "127.0.0.1"},
		{"127.0.0.1:999", []string{"198.51.100.1"}, "198.51.100.1"},
		{"127.0.0.1:999", []string{"192.0.2.1, 198.51.100.1"}, "198.51.100.1"},
		{"127.0.0.1:999", []string{"192.0.2.1", "198.51.100.1, 10.0.0.9"}, "198.51.100.1"},
		{"127.0.0.1:999", []string{"192.0.2.1, rubbish"}, "127.0.0.1"},
		{"127.0.0.1:999", []string{"2001:db8::5"}, "2001:db8::5"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := p.client(r); got != c.want {
			t.Errorf("%s with %q: the client is %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}
