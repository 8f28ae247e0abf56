package lp2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// gate decides which peers may connect. It implements libp2p's ConnectionGater and pubsub's
// Blacklist. (QUIC has no pre-shared keys, which would be simpler.)
type gate struct {
	open bool
	// publicOnly forbids dialing addresses that are not on the public internet, except those of
	// named, which the user named.
	publicOnly bool
	named      map[peer.ID]bool

	peersMu  sync.Mutex // guards what follows
	allowed  map[key.Public]bool
	standing p2p.Standing
}

func newGate(open bool) *gate {
	return &gate{open: open, named: make(map[peer.ID]bool), allowed: make(map[key.Public]bool)}
}

func (g *gate) allow(ks ...key.Public) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	for _, k := range ks {
		g.allowed[k] = true
	}
}

// charge calls p2p.Standing.Charge for a peer.
func (g *gate) charge(k key.Public, o p2p.Offence, now time.Time) (banned bool) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return g.standing.Charge(k, o, now)
}

func (g *gate) weight(k key.Public, now time.Time) float64 {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return g.standing.Weight(k, now)
}

func (g *gate) banned(k key.Public, now time.Time) bool {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return g.standing.Banned(k, now)
}

func (g *gate) allows(k key.Public) bool {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return (g.open || g.allowed[k]) && !g.standing.Banned(k, time.Now())
}

func (g *gate) allowsID(id peer.ID) bool {
	k, err := publicKey(id)
	return err == nil && g.allows(k)
}

// Add implements pubsub.Blacklist. It does nothing: only offences ban peers.
func (g *gate) Add(peer.ID) bool { return false }

// Contains reports whether gossip from or by a peer is dropped unseen. That holds only for banned
// peers, because messages of unconnected members arrive through others.
func (g *gate) Contains(id peer.ID) bool {
	k, err := publicKey(id)
	if err != nil {
		return true
	}
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return g.standing.Banned(k, time.Now())
}

// InterceptPeerDial allows dialing by key.
func (g *gate) InterceptPeerDial(id peer.ID) bool { return g.allowsID(id) }

// InterceptAddrDial allows the addresses of an allowed peer. They are the peer's word: with
// publicOnly it cannot direct connections to hosts that only this machine reaches. A way through a
// relay is allowed, as the relay's own addresses are looked at when it is dialed.
func (g *gate) InterceptAddrDial(id peer.ID, a ma.Multiaddr) bool {
	return !g.publicOnly || g.named[id] || viaRelay(a) || manet.IsPublicAddr(a)
}

// InterceptAccept allows every address: the peer's key shows only after the handshake.
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured allows peers by key, which the handshake has proven.
func (g *gate) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.allowsID(id)
}

// InterceptUpgraded allows everything.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
