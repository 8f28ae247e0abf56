package lp2p

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// gate decides who may be connected. It is libp2p's ConnectionGater (a pre-shared
// key would be simpler, but QUIC has none) and pubsub's Blacklist.
type gate struct {
	open bool

	peersMu  sync.Mutex // guards what follows
	allowed  map[key.Public]bool
	standing p2p.Standing
}

func newGate(open bool) *gate {
	return &gate{open: open, allowed: make(map[key.Public]bool)}
}

func (g *gate) allow(ks ...key.Public) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	for _, k := range ks {
		g.allowed[k] = true
	}
}

// charge is p2p.Standing's.
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

// Add is pubsub's wish to block a peer; it has none of its own.
func (g *gate) Add(peer.ID) bool { return false }

// Contains reports whether gossip from or by a peer is to be dropped unseen: only the
// banned, since messages of members not connected with arrive by others.
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

// InterceptAddrDial allows every address of an allowed peer.
func (g *gate) InterceptAddrDial(peer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept allows every address: the peer's key shows only after the handshake.
func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured allows by key, which the handshake has proven.
func (g *gate) InterceptSecured(_ network.Direction, id peer.ID, _ network.ConnMultiaddrs) bool {
	return g.allowsID(id)
}

// InterceptUpgraded asks nothing more.
func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
