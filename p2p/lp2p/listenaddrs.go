package lp2p

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ListenAddrs returns the multiaddrs to listen on for the given names, each a multiaddr, HOST:PORT
// or HOST. The latter two mean both QUIC and TCP. No names mean all addresses of this machine,
// including loopback addresses if local, because other members may then be on this machine too.
func ListenAddrs(flag []string, local bool) ([]string, error) {
	if len(flag) == 0 {
		if !local {
			return nil, nil
		}
		return []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}, nil
	}
	var addrs []string
	for _, s := range flag {
		if strings.HasPrefix(s, "/") {
			addrs = append(addrs, s)
			continue
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			host, port = s, "0"
		}
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, fmt.Errorf("--listen %q: want IP:PORT such as 0.0.0.0:4001, or a multiaddr such as /ip4/0.0.0.0/tcp/4001", s)
		}
		family := "ip4"
		if ip.Is6() {
			family = "ip6"
		}
		addrs = append(addrs, fmt.Sprintf("/%s/%s/udp/%s/quic-v1", family, ip, port), fmt.Sprintf("/%s/%s/tcp/%s", family, ip, port))
	}
	return addrs, nil
}
