package node

import (
	"slices"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// updateMembers records which keys take part, if that may have changed.
func (n *Node) updateMembers() {
	before := n.roster
	if n.roster = n.cfg.Common.Roster(n.state, before); n.roster != before {
		n.connections.askedAt = time.Time{}
		n.commitments.SetMembers(n.roster.Index)
	}
}

// connections is to which members the exchange is connected.
type connections struct {
	askedAt time.Time
	newest  time.Time // when the question was asked whose answer was taken last
	known   bool      // the exchange has the addresses of the others
	count   int       // of those others
	linked  int       // of the connections to them
	place   int       // of this member in the ledger's list, if it is there
}

// peersEvery is how often the addresses are compared with the ledger's.
const peersEvery = 2 * time.Second

// againAfter is how soon after this member's announcement appeared it is looked at again: the first
// commitment of a new member waits for that.
const againAfter = 500 * time.Millisecond

// keepConnected announces this member's addresses and connects to the other members.
func (n *Node) keepConnected() {
	if n.untilConnecting() > 0 {
		return
	}
	asked := n.cfg.Loop.Now()
	n.connections.askedAt = asked
	n.cfg.Ledger.Peers(n.ctx, n.cfg.Run, func(peers []host.Peer, err error) {
		n.cfg.Loop.Post(func() {
			if err == nil && n.ctx.Err() == nil && !asked.Before(n.connections.newest) {
				n.connections.newest = asked
				n.connect(peers)
			}
		})
	})
}

// untilConnecting returns the time until the addresses are compared next.
func (n *Node) untilConnecting() time.Duration {
	pause := peersEvery
	if n.instance.polls == 1 {
		pause = againAfter
	}
	if n.height > 0 {
		pause -= n.cfg.Loop.Now().Sub(n.connections.askedAt)
	}
	return max(0, pause)
}

// connect gives the exchange the addresses of the others, and the ledger those of this member.
func (n *Node) connect(peers []host.Peer) {
	var registered []string
	count, own, c := len(peers), n.ownAddrs(), &n.connections
	if i := c.place; i >= len(peers) || peers[i].Key != n.self { // it seldom changes
		c.place, _ = slices.BinarySearchFunc(peers, n.self, func(p host.Peer, k key.Public) int { return p.Key.Compare(k) })
	}
	if i := c.place; i < len(peers) && peers[i].Key == n.self {
		registered = peers[i].Addrs
		count--
	}
	if n.announced(registered); n.instance.refused {
		return
	}
	linked := n.exchange.connect(peers)
	if !c.known || c.count != count || c.linked != linked {
		n.observe(event.Peers{Connected: uint32(linked), Known: uint64(count)})
	}
	c.known, c.count, c.linked = true, count, linked
	if !slices.Equal(registered, own) {
		n.send(host.Announce{Run: n.cfg.Run, Addrs: own}, func(err error) {
			if err != nil {
				n.observe(event.Refused{Text: "announce addresses: " + err.Error()})
			}
			c.askedAt = time.Time{} // others usually announced theirs meanwhile
			n.sleep()
		})
	}
	n.sleep()
}
