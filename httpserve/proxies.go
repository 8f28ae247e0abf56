package httpserve

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of web servers before a server, whose word for the client's address is
// taken.
type Proxies map[netip.Addr]bool

// NewProxies returns the proxies of a list of IP addresses.
func NewProxies(list []string) Proxies {
	p := make(Proxies, len(list))
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			p[a.Unmap()] = true
		}
	}
	return p
}

// Client returns the address of a request's client: what the proxy nearest to it says, if all on
// the way are proxies, and else who sent the request.
func (p Proxies) Client(r *http.Request) string {
	from := Host(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, next := range slices.Backward(forwarded) {
		a, err := netip.ParseAddr(from)
		b, fault := netip.ParseAddr(strings.TrimSpace(next))
		if err != nil || fault != nil || !p[a.Unmap()] {
			break
		}
		from = b.Unmap().String()
	}
	return from
}

// Bounded returns the address of a connection by which connections are counted, "" for those of
// proxies and of this machine.
func (p Proxies) Bounded(remote string) string {
	if a, err := netip.ParseAddr(Host(remote)); err == nil && p[a.Unmap()] {
		return ""
	}
	return Stranger(remote)
}
