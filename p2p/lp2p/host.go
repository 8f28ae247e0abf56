package lp2p

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/entrain-network/entrain/httpserve"
)

// newHost returns a libp2p host that listens.
func newHost(o Options, g *gate) (host.Host, error) {
	listen, optional := o.Listen, false
	if listen == nil {
		// A machine may lack one of the address families.
		optional = true
		listen = []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0", "/ip6/::/udp/0/quic-v1", "/ip6/::/tcp/0"}
	}
	addrs, err := parseAddrs(listen)
	if err != nil {
		return nil, err
	}
	public, err := parsePublicIP(o.PublicIP)
	if err != nil {
		return nil, err
	}
	sk, err := privateKey(o.Key)
	if err != nil {
		return nil, err
	}
	limits, err := newLimits()
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(connsLow, connsHigh, connmgr.WithGracePeriod(time.Minute))
	if err != nil {
		return nil, err
	}
	options := []libp2p.Option{
		libp2p.Identity(sk),
		libp2p.UserAgent(agent()),
		libp2p.Security(tls.ID, tls.New), libp2p.Security(noise.ID, noise.New),
		libp2p.DefaultMuxers,
		libp2p.EnableRelay(), libp2p.EnableHolePunching(),
		libp2p.NoListenAddrs, // see listenOn
		libp2p.ConnectionGater(g), libp2p.ResourceManager(limits), libp2p.ConnectionManager(conns),
		libp2p.SwarmOpts(swarm.WithDialRanker(rankDials)),
		libp2p.AddrsFactory(announced(addrs, public)),
		libp2p.DisableMetrics(),
	}
	if o.Streams != nil {
		options = append(options, libp2p.Transport(newStreamTransport(o.Streams)))
	} else {
		options = append(options, libp2p.Transport(tcp.NewTCPTransport), libp2p.Transport(quic.NewTransport))
	}
	if o.Count != nil {
		options = append(options, libp2p.BandwidthReporter(counting(o.Count)))
	}
	if o.Relay != nil {
		options = append(options, libp2p.EnableNATService())
	}
	switch o.Reach {
	case ReachPublic:
		options = append(options, libp2p.ForceReachabilityPublic())
	case ReachPrivate:
		options = append(options, libp2p.ForceReachabilityPrivate())
	}
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, err
	}
	if err := listenOn(h, addrs, optional, o.Streams == nil); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func parseAddrs(listen []string) ([]ma.Multiaddr, error) {
	addrs := make([]ma.Multiaddr, 0, len(listen))
	for _, s := range listen {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf(`listen on %q: %w; an address looks like "/ip4/0.0.0.0/udp/4001/quic-v1" or "/ip4/0.0.0.0/tcp/4001"`, s, err)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

// parseRelays parses the relays' addresses and lets the gate allow them.
func parseRelays(relays []string, g *gate) ([]peer.AddrInfo, error) {
	var infos []peer.AddrInfo
	for _, s := range relays {
		info, err := peer.AddrInfoFromString(s)
		if err != nil {
			return nil, fmt.Errorf("relay %q: %w", s, err)
		}
		k, err := publicKey(info.ID)
		if err != nil {
			return nil, fmt.Errorf("relay %q: %w", s, err)
		}
		g.allow(k)
		g.named[info.ID] = true
		infos = append(infos, *info)
	}
	return infos, nil
}

// listenOn listens on every address, or on at least one if they are optional. The host itself would
// accept any one. ports reports whether they are ports of this machine.
func listenOn(h host.Host, addrs []ma.Multiaddr, optional, ports bool) error {
	var errs []error
	for _, a := range addrs {
		var err error
		if ports {
			err = portFree(a)
		}
		if err == nil {
			err = h.Network().Listen(a)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("listen on %v: %w", a, err))
		}
	}
	if optional && len(errs) < len(addrs) {
		return nil
	}
	return errors.Join(errs...)
}

// portFree returns an error if a TCP port is taken. libp2p shares ports (SO_REUSEPORT, which hole
// punching needs), so two participants on one port would not notice that each gets half of the
// connections.
func portFree(a ma.Multiaddr) error {
	if _, err := a.ValueForProtocol(ma.P_TCP); err != nil {
		return nil
	}
	na, err := manet.ToNetAddr(a)
	if err != nil {
		return nil // a name, which the transport checks
	}
	l, err := net.Listen(na.Network(), na.String())
	if err != nil {
		return err
	}
	return l.Close()
}

// parsePublicIP parses Options.PublicIP. It returns nil if that is empty.
func parsePublicIP(s string) (*ma.Component, error) {
	if s == "" {
		return nil, nil
	}
	ip, err := netip.ParseAddr(s)
	if err != nil {
		return nil, fmt.Errorf("the public address %q: %w", s, err)
	}
	protocol := "ip4"
	if ip.Is6() {
		protocol = "ip6"
	}
	return ma.NewComponent(protocol, ip.String())
}

// announced returns the filter of addresses announced to others. It drops loopback addresses unless
// the participant listens on them by name, and adds the public address, if there is one, with each
// port.
func announced(listen []ma.Multiaddr, public *ma.Component) func([]ma.Multiaddr) []ma.Multiaddr {
	if public != nil {
		own := announced(listen, nil)
		return func(addrs []ma.Multiaddr) []ma.Multiaddr {
			told := own(addrs)
			for _, a := range told {
				if ip, port := ma.SplitFirst(a); ip != nil && ip.Protocol().Code == public.Protocol().Code && len(port) > 0 {
					told = append(told, public.Encapsulate(port))
				}
			}
			return ma.Unique(told)
		}
	}
	loopback := false
	for _, a := range listen {
		loopback = loopback || manet.IsIPLoopback(a)
	}
	return func(addrs []ma.Multiaddr) []ma.Multiaddr {
		if loopback {
			return addrs
		}
		return ma.FilterAddrs(addrs, func(a ma.Multiaddr) bool { return !manet.IsIPLoopback(a) })
	}
}

// rankDials dials TCP before QUIC if there is no NAT between, because it takes a third of the CPU.
// Otherwise libp2p's order stands.
func rankDials(addrs []ma.Multiaddr) []network.AddrDelay {
	var near []network.AddrDelay
	var far []ma.Multiaddr
	tcpNear := false
	isNear := func(a ma.Multiaddr) bool { return manet.IsPrivateAddr(a) && !viaRelay(a) }
	for _, a := range addrs {
		if _, err := a.ValueForProtocol(ma.P_TCP); err == nil && isNear(a) {
			tcpNear = true
		}
	}
	for _, a := range addrs {
		if !isNear(a) {
			far = append(far, a)
			continue
		}
		d := network.AddrDelay{Addr: a}
		if _, err := a.ValueForProtocol(ma.P_TCP); err != nil && tcpNear {
			d.Delay = swarm.PrivateTCPDelay
		}
		near = append(near, d)
	}
	return append(near, swarm.DefaultDialRanker(far)...)
}

// newLimits returns libp2p's default resource manager with the limits of limit.go.
func newLimits() (network.ResourceManager, error) {
	defaults := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&defaults)
	streams := rcmgr.ResourceLimits{Streams: streamsMax, StreamsInbound: streamsMax, StreamsOutbound: streamsMax, Memory: memoryMax}
	limits := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Conns: connsMax, ConnsInbound: connsMax, ConnsOutbound: connsMax,
			Streams: streamsMax, StreamsInbound: streamsMax, StreamsOutbound: streamsMax,
			Memory: memoryMax, FD: rcmgr.LimitVal(httpserve.Descriptors() / fdPart),
		},
		Transient:       rcmgr.ResourceLimits{Conns: connsHigh, ConnsInbound: connsHigh, ConnsOutbound: connsHigh},
		ProtocolDefault: streams, ServiceDefault: streams,
		PeerDefault: rcmgr.ResourceLimits{
			Conns: connsPerPeer, ConnsInbound: connsPerPeer, ConnsOutbound: connsPerPeer,
			Streams: 2 * streamsPerPeer, StreamsInbound: streamsPerPeer, StreamsOutbound: streamsPerPeer,
			Memory: memoryPerPeer,
		},
		ProtocolPeerDefault: rcmgr.ResourceLimits{
			Streams: 2 * streamsPerPeer, StreamsInbound: streamsPerPeer, StreamsOutbound: streamsPerPeer,
			Memory: memoryPerPeer,
		},
	}.Build(defaults.AutoScale())
	one := rate.Limit{RPS: 2, Burst: connsPerIP}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: connsPerIP}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: connsPerIP}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{
				{Prefix: netip.MustParsePrefix("127.0.0.0/8")},
				{Prefix: netip.MustParsePrefix("::1/128")},
			},
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: one}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: one}},
				GracePeriod:      time.Minute,
			},
		}))
}
