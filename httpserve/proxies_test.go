package httpserve

import (
	"net/http"
	"testing"
)

// The listener counts by address, but not its own machine, where a web server may be.
func TestTheListenerBoundsAnAddress(t *testing.T) {
	p := NewProxies([]string{"10.0.0.9", "2001:db8::9"})
	for addr, want := range map[string]string{"127.0.0.1:80": "", "[::1]:80": "", "10.0.0.9:80": "", "10.0.0.8:80": "10.0.0.8", "[2001:db8::9]:80": "",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "2001:db8:1:2:5::6": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "[::ffff:10.0.0.9]:80": ""} {
		if got := p.Bounded(addr); got != want {
			t.Errorf("%s counts as %q", addr, got)
		}
	}
}

// Behind a web server every client has its own limits, and none can choose who it is.
func TestOnlyATrustedProxySaysWhoItsClientIs(t *testing.T) {
	p := NewProxies([]string{"127.0.0.1", "10.0.0.9"})
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
		if got := p.Client(r); got != c.want {
			t.Errorf("%s with %q: the client is %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}
