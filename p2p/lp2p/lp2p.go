// Package lp2p implements p2p.Network on libp2p, for strangers on the internet.
//
// Transports are QUIC, for reach (one round trip, hole punching), and TCP with TLS 1.3 or Noise and
// yamux, for bulk (a third of QUIC's cost). Within a machine or a private network TCP is tried
// first, across the internet QUIC.
//
// A participant's libp2p identity is its ed25519 key, which also signs on the chain. The handshake
// shows the key, which decides whether a peer may connect: one that Connect ever named, or any if
// the run is open. A peer that misbehaves is banned for a while (see p2p.Standing).
//
// # # Protocols
//
//	/entrain/blob/1          leaf lists and chunks, as package p2p defines them
//	/entrain/ask/1           a question and an answer, likewise
//	/meshsub/1.x.0           gossipsub, topic "/entrain/gossip/1/" + the run's hash in hex
//	/ipfs/id/1.0.0, /ipfs/ping/1.0.0, /libp2p/dcutr,
//	/libp2p/circuit/relay/0.2.0/stop    libp2p's own
//
// Authors sign gossip messages, and every participant verifies the signature first. A message is
// remembered for two minutes; the Handler must recognise older ones.
//
// # # Addresses
//
// An address is a multiaddr such as "/ip4/192.0.2.7/udp/4001/quic-v1/p2p/12D3Koo...". The last part
// is optional, and must be the peer's identity. Loopback addresses are announced only if Listen
// names them.
//
// # # Behind a NAT
//
// A participant that others cannot reach reserves places at two relays, taken from Options.Relays
// and from members with a public address that serve as relays (Options.Relay). It announces
// addresses through them. Two peers that meet through a relay try to punch a hole (libp2p's DCUtR);
// if that fails they continue through the relay, within its limits. Gossip does not pass relays: it
// reaches such peers through those that they can connect to.
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
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Options configure a Network.
type Options struct {
	// Key is the participant's secret key. Others know it by the public key.
	Key key.Private

	// Run is the hash of the participant's run. Peers of other runs are refused.
	Run wire.Hash

	// Handler judges gossip, answers questions and serves blobs.
	Handler p2p.Handler

	// Listen are the multiaddrs to listen on, all of which must be free; port 0 means any. nil
	// means any port of all addresses of the machine, over QUIC and TCP.
	Listen []string

	// Open lets any peer connect, not only those that Connect names.
	Open bool

	// Relays are multiaddrs, ending in /p2p/..., of libp2p relays through which peers behind a NAT
	// can be reached until a hole is punched. They may connect. Further relays are found among the
	// peers that Connect names.
	Relays []string

	// PublicOnly keeps this participant from dialing addresses of others that are not on the public
	// internet. Relays may have such addresses.
	PublicOnly bool

	// Reach reports whether others can connect to this participant, if that is known.
	Reach Reach

	// PublicIP, if not "", is an address whose ports are forwarded to this machine. It is announced
	// with the ports of Listen.
	PublicIP string

	// Relay, if not nil, makes this participant a relay as soon as others can connect to it.
	Relay *RelayLimits

	// Upload limits the bytes a second of blobs and answers served to all peers together, at least
	// UploadMin; 0 means no limit. Gossip is not limited, because a member that is late with it
	// misses the round.
	Upload uint64

	// Allot, if not nil, reports whether a peer may get the given number of bytes of blobs, in
	// addition to those before. Network goroutines call it.
	Allot func(to key.Public, bytes int) bool

	// Streams, if not nil, carries connections in place of TCP and QUIC. Listen names its addresses.
	Streams Streams

	// Count, if not nil, is told of all that is sent: of each write to a stream, by the stream's
	// protocol ("" while that is negotiated), and of each gossip message to each neighbour, as
	// CountGossip, whose bytes are among those of the stream. Network goroutines call it.
	Count func(what string, bytes int)

	// Log receives messages for people; nil discards them.
	Log *slog.Logger
}

// CountGossip is what Options.Count gets for a gossip message.
const CountGossip = "gossip"

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
	source  *p2p.Underway // blobs held and being fetched
	outward slots
	upload  *bucket
	fetches chan struct{} // one slot for each running fetch
	waiting atomic.Int64  // fetches that wait for a slot

	times times

	// closing ends when Close is called. It is a field because requests outlive the call that
	// starts them.
	closing context.Context
	close   context.CancelCauseFunc

	runningMu sync.Mutex // guards closed and the start of goroutines
	closed    bool
	running   sync.WaitGroup
}

var _ p2p.Network = (*Network)(nil)

// New listens and joins the run's gossip. It returns an error if an option is invalid or an address
// is taken.
func New(o Options) (*Network, error) {
	return newNetwork(o, times{late: lateAfter, stall: stallAfter, join: joinPatience, ping: pingEvery})
}

// times are limits of limit.go that tests shorten.
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
	n.gate.publicOnly = o.PublicOnly
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
	named, err := h.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("start the peer-to-peer network: %w", err)
	}
	h.Network().Notify(n.members.notifiee())
	n.start(func() { n.keepProcesses(named) })
	n.start(n.keepConnected)
	n.start(n.keepPlaces)
	n.start(n.keepMeasuring)
	return n, nil
}

// Self returns the participant's key.
func (n *Network) Self() key.Public { return n.self }

// Addrs returns multiaddrs for others, ending in /p2p/ and the participant's libp2p identity, the
// most useful first, because a ledger may not take all.
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

// Close ends all connections and goroutines and waits for them. A callback or the Handler must not
// call it, because it waits for them too.
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

// start runs f in a goroutine that Close waits for. It reports false if the network is closed.
func (n *Network) start(f func()) bool {
	n.runningMu.Lock()
	defer n.runningMu.Unlock()
	if n.closed {
		return false
	}
	n.running.Go(f)
	return true
}

// enter is like start for the current goroutine, which must call leave at its end.
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

// within returns a context that ends with ctx or with Close. Its cause is the error for done.
func (n *Network) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(n.closing, func() { cancel(p2p.ErrClosed) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// charge records an offence of a peer, and disconnects and bans the peer after too many.
func (n *Network) charge(k key.Public, o p2p.Offence) {
	if k == n.self || !n.gate.charge(k, o, time.Now()) {
		return
	}
	n.log.Warn("banned a peer", "peer", k, "offence", o, "for", p2p.BanTime)
	id, err := peerID(k)
	if err != nil {
		return // it was never connected
	}
	// In a goroutine, because closing may wait for the caller.
	n.start(func() { n.disconnect(id) })
}

func (n *Network) disconnect(id peer.ID) {
	if err := n.host.Network().ClosePeer(id); err != nil {
		n.log.Debug("disconnecting failed", "peer", id, "error", err)
	}
}
