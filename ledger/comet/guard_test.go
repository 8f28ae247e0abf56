package comet

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// Silent connections do not use up the descriptors of a replica, nor do those of one address the
// places of others.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for limit, want := range map[uint64]int{1024: 512, 4096: 2048, 20_000: 15_904, 1 << 20: connsMax, 1 << 63: connsMax} {
		if got := connsOf(limit); got != want {
			t.Errorf("of %d descriptors clients may have %d, want %d", limit, got, want)
		}
		if streams := streamsOf(want); streams > want-want/4 || limit >= 20_000 && streams < 10_000 {
			t.Errorf("of %d connections %d may be streams", want, streams)
		}
	}
}

// The listener counts by address, but not its own machine, where a web server may be.
func TestTheListenerBoundsAnAddress(t *testing.T) {
	p := newProxies([]string{"10.0.0.9", "2001:db8::9"})
	for addr, want := range map[string]string{"127.0.0.1:80": "", "[::1]:80": "", "10.0.0.9:80": "", "10.0.0.8:80": "10.0.0.8", "[2001:db8::9]:80": "",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "2001:db8:1:2:5::6": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "[::ffff:10.0.0.9]:80": ""} {
		if got := p.bounded(addr); got != want {
			t.Errorf("%s counts as %q", addr, got)
		}
	}
}

// What a replica sends to other machines is bounded, whoever asks, and however often. This one is
// another machine at its second address.
func TestThePaceBoundsTheAPI(t *testing.T) {
	const limit, asked = 32 << 10, 6 // bytes a second, requests
	r, err := Open(replicaDir(t, Options{}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Pace(limit)
	run(t, r)
	path := r.Endpoint() + "/" + strings.Repeat("a", 8<<10) // the refusal repeats it
	elsewhere := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	defer elsewhere.CloseIdleConnections()
	client := http.Client{Transport: elsewhere}
	got, began := 0, time.Now()
	for range asked {
		answer, err := client.Get(path)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Skip("this machine has one address: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got += len(b)
	}
	if took, least := time.Since(began), time.Duration(got-limit/2)*time.Second/limit; got < limit || took < least {
		t.Errorf("%d bytes came in %v, at %d a second in %v at least", got, took, limit, least)
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

// Submissions of one address, whose bodies need not end, leave places to those of others.
func TestSubmissionsOfOneAddressLeavePlaces(t *testing.T) {
	a := &api{rates: newRates(time.Now), waiters: httpserve.NewPlaces(submittersMax, submittersMax/addrPart)}
	for range submittersMax {
		a.waiters.Take("192.0.2.1")
	}
	for remote, want := range map[string]int{"192.0.2.1:9": http.StatusServiceUnavailable, "198.51.100.7:9": http.StatusUnprocessableEntity} {
		r := httptest.NewRequest("POST", "/v1/txs", strings.NewReader("no transaction"))
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		if a.submit(w, r); w.Code != want {
			t.Errorf("%s: %d %s, want %d", remote, w.Code, w.Body, want)
		}
	}
}
