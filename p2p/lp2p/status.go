package lp2p

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// traffic measures the bytes exchanged with each peer. Its zero value is ready.
type traffic struct {
	mu    sync.Mutex // guards peers
	peers map[key.Public]*bothWays
}

type bothWays struct{ down, up p2p.Traffic }

// trafficMax is the number of peers measured. Others are served all the same.
const trafficMax = guestsMax

// change calls f with a peer's measurements.
func (t *traffic) change(k key.Public, f func(b *bothWays, now time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.peers[k]
	if b == nil {
		if len(t.peers) >= trafficMax {
			return
		}
		if t.peers == nil {
			t.peers = make(map[key.Public]*bothWays)
		}
		b = new(bothWays)
		t.peers[k] = b
	}
	f(b, time.Now())
}

// Peers returns the status of each peer that Connect named, in order of keys.
func (n *Network) Peers() []p2p.PeerStatus {
	n.members.listMu.Lock()
	members := slices.Clone(n.members.list)
	n.members.listMu.Unlock()
	list := make([]p2p.PeerStatus, 0, len(members))
	now := time.Now()
	for _, m := range members {
		s := p2p.PeerStatus{Key: m.key, RTT: n.host.Peerstore().LatencyEWMA(m.id), Weight: n.gate.weight(m.key, now), Banned: n.gate.banned(m.key, now)}
		switch n.host.Network().Connectedness(m.id) {
		case network.Connected:
			s.Way = "direct"
		case network.Limited:
			s.Way = "relay"
		}
		n.traffic.mu.Lock()
		if b := n.traffic.peers[m.key]; b != nil {
			s.Down, s.Up, s.Received, s.Sent = b.down.Rate(), b.up.Rate(), b.down.Total(), b.up.Total()
		}
		n.traffic.mu.Unlock()
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Key.Compare(list[j].Key) < 0 })
	return list
}

// keepMeasuring measures the round trips to pingsAtOnce connected peers every pingEvery, in turn,
// until the network closes. Pings to all would be most of what an idle member of a large run does.
func (n *Network) keepMeasuring() {
	next := 0
	tick := time.NewTicker(n.times.ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.closing.Done():
			return
		}
		n.members.listMu.Lock()
		members := slices.Clone(n.members.list[:min(len(n.members.list), connectedMax)])
		n.members.listMu.Unlock()
		var pings sync.WaitGroup
		for looked, open := 0, 0; looked < len(members) && open < pingsAtOnce; looked++ {
			next = (next + 1) % len(members)
			m := members[next]
			if n.host.Network().Connectedness(m.id) != network.Connected {
				continue
			}
			open++
			pings.Go(func() {
				ctx, cancel := context.WithTimeout(network.WithNoDial(n.closing, "only measures"), pingTimeout)
				defer cancel()
				<-ping.Ping(ctx, n.host, m.id) // records the result in the peerstore
			})
		}
		pings.Wait()
	}
}
