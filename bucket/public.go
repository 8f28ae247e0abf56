package bucket

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// PublicOnly is a net.Dialer's ControlContext that refuses connections to addresses that are not on
// the public internet. It sees the resolved address, so a host name cannot hide one. A proxy could:
// a client that dials with it must use none.
func PublicOnly(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(a.Addr()) {
		return fmt.Errorf("%w: %s", ErrForbidden, address)
	}
	return nil
}

// notPublic are ranges that netip does not name: shared address space of providers (RFC 6598),
// "this network", benchmarks, protocol assignments, documentation, the reserved end of IPv4, and
// translations of IPv4 addresses.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("100::/64"),
}

// Public reports whether l can be on the public internet. It does not resolve names, which machines
// may resolve differently.
func (l Location) Public() bool {
	host := l.Endpoint
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host != "localhost" && (err != nil || isPublic(a))
}

// isPublic reports whether an address is on the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
