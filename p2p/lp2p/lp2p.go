// Package lp2p is a p2p.Network on libp2p, for strangers on the internet.
//
// Transports are QUIC (reach: one round trip, hole punching) and TCP with TLS 1.3 or Noise and
// yamux (bulk: about a third of QUIC's cost). Within one machine or a private network TCP is tried
// first, across the internet QUIC.
//
// A participant's libp2p identity is its ed25519 key, so that the other end of a connection is
// known by the key that signs on the chain. The handshake shows the key, which decides whether a
// peer may connect: those that Connect ever named, or any if the run is open. A peer that
// misbehaves is banned for a while (see p2p.Standing).
//
// # Protocols
//
//	/entrain/blob/1          leaf lists and chunks, as package p2p draws them
//	/entrain/ask/1           a question and an answer, likewise
//	/meshsub/1.x.0           gossipsub, topic "/entrain/gossip/1/" + the run's hash in hex
//	/ipfs/id/1.0.0, /ipfs/ping/1.0.0, /libp2p/dcutr,
//	/libp2p/circuit/relay/0.2.0/stop    libp2p's own
//
// Gossip messages are signed by their authors and verified before anything else looks at them. A
// message is remembered for two minutes; the Handler must know older ones by itself.
//
// # Addresses
//
// An address is a multiaddr such as "/ip4/192.0.2.7/udp/4001/quic-v1/p2p/12D3Koo..."; the last part
// may be left out, and if present must be the peer's. Loopback addresses are told to others only if
// Listen names them.
//
// # Behind a NAT
//
// A participant that others cannot connect to reserves places at two relays: those of
// Options.Relays, and members with a public address that serve as such (Options.Relay), who are
// found by their announced addresses. It tells the others addresses that lead through them. Two
// peers that have met through a relay try to punch a hole (libp2p's DCUtR), and where that fails go
// on through the relay, within its limits. Gossip does not go through relays: it reaches such peers
// by way of those they can connect to.
package lp2p

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Options are what a Network is made of.
type Options struct {
	// Key is the participant's secret; its public half is what others know it by.
	Key key.Private

	// Run is the hash of the run whose participants this is one of. Peers of
	// another run are refused.
	Run wire.Hash

	// Handler judges gossip, answers questions and serves blobs.
	Handler p2p.Handler

	// Listen are the multiaddrs to listen on, all of which must be free; port 0
	// means any. Nil means any port of all addresses the machine has, over QUIC and
	// TCP.
	Listen []string

	// Open lets anybody connect, not only those Connect names.
	Open bool

	// Relays are multiaddrs, ending in /p2p/..., of libp2p relays through which
	// peers behind a NAT can be reached until a hole is punched. They are allowed to
	// connect. Others are found among the peers that Connect names.
	Relays []string

	// Reach reports whether others can connect to this participant, if that is known.
	Reach Reach

	// PublicIP, if not "", is an address of which the machine's ports are forwarded to
	// it; it is told to others with the ports of Listen.
	PublicIP string

	// Relay, if not nil, makes this participant a relay for the others as soon as
	// it is known that they can connect to it.
	Relay *RelayLimits

	// Upload is how many bytes a second of blobs and answers are served to peers, all
	// together, at least UploadMin; 0 sets no limit. Gossip is not limited: a member
	// that is late with it misses the round.
	Upload uint64

	// Log gets what a person may want to know; nil discards it.
	Log *slog.Logger
}

// Network is a p2p.Network on libp2p. Make one with [New].
type Network struct {
	options Options
	self    key.Public
	log     *slog.Logger
	gate    *gate
	host    host.Host
	topic   *pubsub.Topic
	members *members
	shelter *shelter
	guests  guests
	traffic traffic
	source  *p2p.Underway // what is held, and what is being fetched
	outward slots
	upload  *bucket
	fetches chan struct{} // a slot for each fetch that runs
	waiting atomic.Int64  // fetches without one

	times times

	// closing ends when Close is called. It is a field because requests outlive the
	// call that makes them.
	closing context.Context
	close   context.CancelCauseFunc

	runningMu sync.Mutex // guards closed and the beginning of goroutines
	closed    bool
	running   sync.WaitGroup
}

var _ p2p.Network = (*Network)(nil)

// New listens and joins the run's gossip. It fails if an option is not valid or an
// address is taken.
func New(o Options) (*Network, error) {
	return newNetwork(o, times{late: lateAfter, stall: stallAfter, join: joinPatience, ping: pingEvery})
}

// times are what tests set shorter than limit.go has them.
type times struct{ late, stall, join, ping time.Duration }

func newNetwork(o Options, t times) (*Network, error) {
	if o.Key.IsZero() || o.Handler == nil {
		return nil, errors.New("start the peer-to-peer network: a key and a handler are needed")
	}
	if o.Upload > 0 && o.Upload < UploadMin {
		return nil, fmt.Errorf("start the peer-to-peer network: %d bytes a second are too few to serve anybody, at least %d", o.Upload, UploadMin)
	}
	if t.ping == 0 {
		t.ping = pingEvery
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	n := &Network{
		options: o, self: o.Key.Public(), log: o.Log,
		gate: newGate(o.Open), source: p2p.NewUnderway(o.Handler),
		fetches: make(chan struct{}, fetchesMax),
		times:   t, upload: newBucket(o.Upload),
	}
	n.closing, n.close = context.WithCancelCause(context.Background())
	relays, err := parseRelays(o.Relays, n.gate)
	if err != nil {
		return nil, fmt.Errorf("start the peer-to-peer network: %w", err)
	}
	n.shelter = newShelter(relays, o.Reach)
	h, err := newHost(o, n.gate)
	if err != nil {
		return nil, fmt.Errorf("start the peer-to-peer network: %w", err)
	}
	n.host = h
	n.members = newMembers(n.self)
	if err := n.joinGossip(); err != nil {
		n.Close()
		return nil, fmt.Errorf("start the peer-to-peer network: %w", err)
	}
	h.SetStreamHandler(blobProtocol, n.serveBlob)
	h.SetStreamHandler(askProtocol, n.serveAsk)
	h.Network().Notify(n.members.notifiee())
	n.start(n.keepConnected)
	n.start(n.keepPlaces)
	n.start(n.keepMeasuring)
	return n, nil
}

// Self is the participant's key.
func (n *Network) Self() key.Public { return n.self }

// Addrs are multiaddrs others may use, ending in /p2p/ and the participant's libp2p
// identity: the most useful first, since a ledger may not take them all.
func (n *Network) Addrs() []string {
	suffix := "/p2p/" + n.host.ID().String()
	var public, private []ma.Multiaddr
	for _, a := range n.host.Addrs() {
		switch {
		case viaRelay(a):
		case manet.IsPublicAddr(a):
			public = append(public, a)
		default:
			private = append(private, a)
		}
	}
	var addrs []string
	for _, a := range slices.Concat(public[:min(len(public), publicAddrsMax)], n.shelter.addrs(time.Now()), private) {
		addrs = append(addrs, a.String()+suffix)
	}
	return addrs
}

// Close ends everything and waits for it. It must not be called from a callback or
// the Handler, which it waits for too.
func (n *Network) Close() error {
	n.runningMu.Lock()
	if n.closed {
		n.runningMu.Unlock()
		n.running.Wait()
		return nil
	}
	n.closed = true
	n.runningMu.Unlock()
	n.close(p2p.ErrClosed)
	err := n.host.Close()
	n.running.Wait()
	return err
}

// start runs f in a goroutine that Close waits for, or not at all if the network is
// closed.
func (n *Network) start(f func()) bool {
	n.runningMu.Lock()
	defer n.runningMu.Unlock()
	if n.closed {
		return false
	}
	n.running.Go(f)
	return true
}

// enter is start for a goroutine that is already there and calls leave in the end.
func (n *Network) enter() bool {
	n.runningMu.Lock()
	defer n.runningMu.Unlock()
	if n.closed {
		return false
	}
	n.running.Add(1)
	return true
}

func (n *Network) leave() { n.running.Done() }

// within is ctx, ended also by Close. The cause of its end is what done is told.
func (n *Network) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(n.closing, func() { cancel(p2p.ErrClosed) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// charge holds an offence against a peer and, when it is one too many, disconnects
// and bans it.
func (n *Network) charge(k key.Public, o p2p.Offence) {
	if k == n.self || !n.gate.charge(k, o, time.Now()) {
		return
	}
	n.log.Warn("banned a peer", "peer", k, "offence", o, "for", p2p.BanTime)
	id, err := peerID(k)
	if err != nil {
		return // it was never connected
	}
	// In a goroutine, since the caller may be what the closing waits for.
	n.start(func() { n.disconnect(id) })
}

func (n *Network) disconnect(id peer.ID) {
	if err := n.host.Network().ClosePeer(id); err != nil {
		n.log.Debug("disconnecting failed", "peer", id, "error", err)
	}
}
