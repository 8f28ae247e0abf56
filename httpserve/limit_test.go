package httpserve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// Silent connections do not use up the descriptors of a process, nor do those of one address the places of others.
func TestPlaces(t *testing.T) {
	p := NewPlaces(8, 2)
	taken := 0
	for range 10 {
		if p.Take("203.0.113.5") {
			taken++
		}
	}
	if taken != 2 {
		t.Errorf("one address took %d places", taken)
	}
	for i := range 6 {
		if !p.Take(fmt.Sprint("198.51.100.", i)) {
			t.Errorf("address %d found no place", i)
		}
	}
	if p.Take("192.0.2.1") || p.Take("") {
		t.Error("more than all places were taken")
	}
	p.Give("203.0.113.5")
	if !p.Take("192.0.2.1") || p.Count() != 8 {
		t.Errorf("a place that was given back is not free; %d are taken", p.Count())
	}
}

// An IPv6 client is counted by its network, whatever of its addresses it uses.
func TestStranger(t *testing.T) {
	for remote, want := range map[string]string{
		"203.0.113.5:9": "203.0.113.5", "[2001:db8:1:2:3::4]:9": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::]:9": "2001:db8:1:2::/64",
		"127.0.0.1:9": "", "[::1]:9": "", "[::ffff:127.0.0.1]:9": "", "pipe": "pipe",
	} {
		if got := Stranger(remote); got != want {
			t.Errorf("%s is counted as %q, want %q", remote, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlaces(1, 1)
	l := Limit(inner, p, Stranger)
	defer l.Close()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := l.Accept()
	if err != nil || p.Count() != 1 {
		t.Fatalf("%v, %d connections", err, p.Count())
	}
	c.Close()
	c.Close()
	if n := p.Count(); n != 0 {
		t.Errorf("%d connections after it ended", n)
	}
}

// TestEveryServerLeavesDescriptors fills a server with silent connections: it takes its part of the descriptors, and closes the next one.
func TestEveryServerLeavesDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bounded(inner).(*limited)
	most := l.places.All
	if most > int(Descriptors()/connsPart) || most < 1 || l.places.Each >= most {
		t.Fatalf("of %d descriptors a server takes %d, one address %d", Descriptors(), most, l.places.Each)
	}
	for range most - 1 {
		l.places.Take("")
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, l, &http.Server{}, time.Second) }()
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	next, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := next.Read(make([]byte, 1)); err == nil {
		t.Error("a connection too many was answered")
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
