package lp2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// members are the peers to stay connected with.
type members struct {
	self      key.Public
	wake      chan struct{} // holds a token when the list or a connection may have changed
	processes processes

	listMu sync.Mutex // guards the list and its elements
	list   []*member  // those to stay connected with first
}

// member is one such peer.
type member struct {
	key      key.Public
	id       peer.ID
	addrs    []ma.Multiaddr
	rank     wire.Hash
	dialing  bool
	attempts int       // since the last stable connection
	next     time.Time // time of the next attempt
	since    time.Time // when it was first seen connected; zero if it is not
	mended   time.Time // when its connection was last cut to reconnect
}

func newMembers(self key.Public) *members {
	return &members{self: self, wake: make(chan struct{}, 1), processes: processes{at: map[network.Conn]string{}}}
}

func (m *members) changed() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// notifiee wakes keepConnected when a connection opens or closes.
func (m *members) notifiee() network.Notifiee {
	return &network.NotifyBundle{
		ConnectedF: func(of network.Network, c network.Conn) {
			supersede(of, c)
			m.changed()
		},
		DisconnectedF: func(_ network.Network, c network.Conn) {
			m.processes.forget(c)
			m.changed()
		},
	}
}

// supersede closes the older connections with a peer that has made a new one. The peer dials only
// if it has none: it lost those, because it was killed or its address changed. This end would learn
// so after 30 s, and until then send gossip and requests into them.
//
// It runs before the peer can open a stream on the new connection. Pubsub forgets a peer's
// subscription when an old stream ends, even if the peer has told it again on a new one.
func supersede(of network.Network, c network.Conn) {
	if now := c.Stat(); now.Direction == network.DirInbound && !now.Limited {
		for _, old := range of.ConnsToPeer(c.RemotePeer()) {
			if was := old.Stat(); !was.Limited && now.Opened.Sub(was.Opened) >= dialsTogether {
				_ = old.Close() // the peer is gone from it
			}
		}
	}
}

// Connect implements p2p.Network. It logs and ignores addresses that are invalid or another peer's.
func (n *Network) Connect(peers []p2p.Peer) {
	list := make([]*member, 0, len(peers))
	for _, p := range peers {
		if p.Key == n.self {
			continue
		}
		id, err := peerID(p.Key)
		if err != nil {
			n.log.Warn("a peer's key is not valid", "peer", p.Key, "error", err)
			continue
		}
		n.gate.allow(p.Key)
		m := &member{key: p.Key, id: id, rank: wire.Sum("entrain/p2p/neighbour", n.self[:], p.Key[:])}
		for _, s := range p.Addrs[:min(len(p.Addrs), addrsMax)] {
			a, err := parseAddr(s, id)
			if err != nil {
				n.log.Warn("a peer's address is not valid", "peer", p.Key, "error", err)
				continue
			}
			m.addrs = append(m.addrs, a)
		}
		list = append(list, m)
	}
	n.members.sort(list)
	for _, m := range n.members.replace(list) {
		n.host.Peerstore().ClearAddrs(m.id)
		n.host.Peerstore().AddAddrs(m.id, m.addrs, peerstore.PermanentAddrTTL)
	}
	n.members.changed()
}

// sort sorts members so that those to stay connected with come first, each participant's in its own
// order. Both members of a pair have each other among these, or neither, in all but few cases: else
// each would have those that chose it besides those that it chose, and the connection manager would
// close what others dial again.
func (m *members) sort(list []*member) {
	near := make(map[*member]wire.Hash, len(list))
	for _, c := range list {
		a, b := m.self, c.key
		if bytes.Compare(a[:], b[:]) > 0 {
			a, b = b, a
		}
		near[c] = wire.Sum("entrain/p2p/pair", a[:], b[:])
	}
	slices.SortFunc(list, func(a, b *member) int { return near[a].Compare(near[b]) })
	slices.SortFunc(list[:min(len(list), connectedMax)], func(a, b *member) int { return a.rank.Compare(b.rank) })
}

// Members gives what says which peers take part in the run; network goroutines call it. Until then
// all peers are treated as if they did.
func (n *Network) Members(is func(key.Public) bool) {
	n.guests.peersMu.Lock()
	defer n.guests.peersMu.Unlock()
	n.guests.member = is
}

// Connected returns the number of peers named by Connect that are connected, directly or through a
// relay.
func (n *Network) Connected() (count int) {
	n.members.listMu.Lock()
	defer n.members.listMu.Unlock()
	for _, m := range n.members.list {
		if c := n.host.Network().Connectedness(m.id); c == network.Connected || c == network.Limited {
			count++
		}
	}
	return count
}

// parseAddr parses a member's address and removes the identity at its end.
func parseAddr(s string, id peer.ID) (ma.Multiaddr, error) {
	if len(s) > addrBytesMax {
		return nil, fmt.Errorf("address of %d bytes: the limit is %d", len(s), addrBytesMax)
	}
	a, err := ma.NewMultiaddr(s)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", s, err)
	}
	transport, owner := peer.SplitAddr(a)
	switch {
	case owner != "" && owner != id:
		return nil, fmt.Errorf("address %q is another peer's, not %v's", s, id)
	case transport == nil:
		return nil, fmt.Errorf("address %q names no transport", s)
	}
	return transport, nil
}

// replace sets the list and returns the members that left. Members that stay at the same addresses
// keep their history.
func (m *members) replace(list []*member) (fresh []*member) {
	m.listMu.Lock()
	defer m.listMu.Unlock()
	before := make(map[peer.ID]*member, len(m.list))
	for _, o := range m.list {
		before[o.id] = o
	}
	now := time.Now()
	for i, c := range list {
		// If two peers dial each other at once, they get two connections and each uses one of them.
		// So one of them waits for the other.
		if m.self.Compare(c.key) > 0 {
			c.next = now.Add(yieldFor)
		}
		if o := before[c.id]; o != nil && slices.EqualFunc(o.addrs, c.addrs, func(a, b ma.Multiaddr) bool { return a.Equal(b) }) {
			list[i] = o
		} else {
			fresh = append(fresh, c)
		}
	}
	m.list = list
	return fresh
}

// keepConnected dials members until the network closes.
func (n *Network) keepConnected() {
	free := make(chan struct{}, dialsMax)
	for {
		now := time.Now()
		due, pause := n.due(now)
		n.mend(now)
		for _, m := range due {
			select {
			case free <- struct{}{}:
			case <-n.closing.Done():
				return
			}
			n.start(func() {
				n.dial(m)
				<-free
			})
		}
		timer := time.NewTimer(pause)
		select {
		case <-n.closing.Done():
		case <-n.members.wake:
		case <-timer.C:
		}
		timer.Stop()
		if n.closing.Err() != nil {
			return
		}
	}
}

// due marks the members to dial now as being dialed. It returns when to look again at the latest.
func (n *Network) due(now time.Time) (due []*member, pause time.Duration) {
	m := n.members
	m.listMu.Lock()
	defer m.listMu.Unlock()
	pause = backoffMax
	for _, c := range m.list[:min(len(m.list), connectedMax)] {
		switch n.host.Network().Connectedness(c.id) {
		case network.Limited: // through a relay: libp2p punches a hole if it can
			c.since = time.Time{}
			continue
		case network.Connected:
			if c.since.IsZero() {
				c.since = now
			}
			if d := now.Sub(c.since); d < n.times.join {
				pause = min(pause, n.times.join-d)
			}
			continue
		}
		// A peer that refuses this participant may seem connected for a moment. It must not be
		// dialed again at once.
		if !c.since.IsZero() && now.Sub(c.since) >= stableAfter {
			c.attempts, c.next = 0, now
		}
		c.since = time.Time{}
		switch {
		case c.dialing || len(c.addrs) == 0:
		case now.Before(c.next):
			pause = min(pause, c.next.Sub(now))
		default:
			c.dialing = true
			due = append(due, c)
		}
	}
	return due, pause
}

// mend cuts connections with members that stay out of the gossip, to make them again. If a
// connection ends while another one with the same peer begins, pubsub may drop the peer without
// noticing that it is still connected.
func (n *Network) mend(now time.Time) {
	m := n.members
	var silent []*member
	m.listMu.Lock()
	for _, c := range m.list[:min(len(m.list), connectedMax)] {
		if !c.since.IsZero() && now.Sub(c.since) >= n.times.join && now.Sub(c.mended) >= n.times.join {
			silent = append(silent, c)
		}
	}
	m.listMu.Unlock()
	if len(silent) == 0 {
		return
	}
	joined := make(map[peer.ID]bool)
	for _, id := range n.topic.ListPeers() {
		joined[id] = true
	}
	for _, c := range silent {
		if !joined[c.id] {
			m.listMu.Lock()
			c.mended = now
			m.listMu.Unlock()
			n.log.Debug("a peer is connected but not in the gossip", "peer", c.key)
			n.disconnect(c.id)
		}
	}
}

// dial tries to connect with a member.
func (n *Network) dial(c *member) {
	ctx, cancel := context.WithTimeout(n.closing, dialTimeout)
	defer cancel()
	// libp2p remembers failures too and would not try.
	if s, ok := n.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(c.id)
	}
	err := n.host.Connect(ctx, peer.AddrInfo{ID: c.id, Addrs: c.addrs})

	n.members.listMu.Lock()
	defer n.members.listMu.Unlock()
	c.attempts++
	wait := backoff(c.attempts, c.rank)
	c.next = time.Now().Add(wait)
	c.dialing = false
	n.members.changed()
	if err != nil && n.closing.Err() == nil {
		n.log.Debug("connecting failed", "peer", c.key, "attempt", c.attempts, "again in", wait, "error", err)
	}
}

// backoff returns the pause after a number of failed attempts. The pair's hash shortens it by up to
// a quarter, so that members do not all dial at once.
func backoff(failures int, rank wire.Hash) time.Duration {
	p := retry.Policy{Min: backoffMin, Max: backoffMax}
	return retry.Jitter(p.Pause(failures), 4, binary.LittleEndian.Uint64(rank[:]))
}
