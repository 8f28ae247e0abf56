package lp2p

import (
	"context"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Streams carries connections in place of TCP: in memory, for instance, under a clock of its own.
// Addresses are those of package net.
type Streams interface {
	Listen(address string) (net.Listener, error)
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// streamTransport is a transport over Streams, with what TCP has above it: TLS or Noise, and yamux.
type streamTransport struct {
	streams  Streams
	upgrader transport.Upgrader
	limits   network.ResourceManager
}

var _ transport.Transport = (*streamTransport)(nil)

// newStreamTransport returns the constructor of a streamTransport for libp2p.Transport.
func newStreamTransport(s Streams) func(transport.Upgrader, network.ResourceManager) *streamTransport {
	return func(upgrader transport.Upgrader, limits network.ResourceManager) *streamTransport {
		return &streamTransport{s, upgrader, limits}
	}
}

// Dial implements transport.Transport.
func (t *streamTransport) Dial(ctx context.Context, to ma.Multiaddr, id peer.ID) (transport.CapableConn, error) {
	scope, err := t.limits.OpenConnection(network.DirOutbound, true, to)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, to, id, scope)
	if err != nil {
		scope.Done()
		return nil, err
	}
	return c, nil
}

func (t *streamTransport) dial(ctx context.Context, to ma.Multiaddr, id peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	if err := scope.SetPeer(id); err != nil {
		return nil, err
	}
	_, address, err := manet.DialArgs(to)
	if err != nil {
		return nil, err
	}
	plain, err := t.streams.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	wrapped, err := manet.WrapNetConn(plain)
	if err != nil {
		plain.Close()
		return nil, err
	}
	return t.upgrader.Upgrade(ctx, t, wrapped, network.DirOutbound, id, scope)
}

// Listen implements transport.Transport.
func (t *streamTransport) Listen(at ma.Multiaddr) (transport.Listener, error) {
	_, address, err := manet.DialArgs(at)
	if err != nil {
		return nil, err
	}
	l, err := t.streams.Listen(address)
	if err != nil {
		return nil, err
	}
	wrapped, err := manet.WrapNetListener(l)
	if err != nil {
		return nil, err
	}
	return t.upgrader.UpgradeGatedMaListener(t, t.upgrader.GateMaListener(wrapped)), nil
}

// CanDial implements transport.Transport.
func (t *streamTransport) CanDial(to ma.Multiaddr) bool {
	_, err := to.ValueForProtocol(ma.P_TCP)
	return err == nil && !viaRelay(to)
}

// Protocols implements transport.Transport.
func (t *streamTransport) Protocols() []int { return []int{ma.P_TCP} }

// Proxy implements transport.Transport.
func (t *streamTransport) Proxy() bool { return false }
