package lp2p

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	circuitproto "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	circuitrelay "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/entrain-network/entrain/wire"
)

// Reach is whether others can connect to a participant.
type Reach uint8

const (
	// ReachUnknown leaves it to be found out: a machine without a public address is not reached from
	// the internet; for another one, peers try and report (libp2p's AutoNAT).
	ReachUnknown Reach = iota
	// ReachPublic: at an address that it has or is told by others.
	ReachPublic
	// ReachPrivate: only through relays, until a hole is punched.
	ReachPrivate
)

// RelayLimits bound what a participant that others can reach does for those they cannot. A circuit
// joins two peers until they have punched a hole, or for as long as it lasts if they cannot.
type RelayLimits struct {
	// CircuitBytes is the limit each way, after which a circuit is cut and must be made again; 0
	// means CircuitBytesDefault
	CircuitBytes uint64
	CircuitTime  time.Duration // likewise; 0 means CircuitTimeDefault
}

// What a circuit carries unless said otherwise: some rounds of a run of millions of parameters, and
// the model once.
const (
	CircuitBytesDefault = 256 << 20
	CircuitTimeDefault  = time.Hour
)

// resources are the limits as libp2p takes them.
func (l RelayLimits) resources() circuitrelay.Resources {
	if l.CircuitBytes == 0 {
		l.CircuitBytes = CircuitBytesDefault
	}
	if l.CircuitTime == 0 {
		l.CircuitTime = CircuitTimeDefault
	}
	return circuitrelay.Resources{
		Limit:          &circuitrelay.RelayLimit{Duration: l.CircuitTime, Data: int64(l.CircuitBytes)},
		ReservationTTL: reservationTime, MaxReservations: reservationsMax, MaxCircuits: circuitsPerPeer, BufferSize: circuitBuffer,
		MaxReservationsPerIP: connsPerIP, MaxReservationsPerASN: reservationsMax,
	}
}

// options are those of the relay's service: it serves peers whom the gate allows, and tells all of
// its addresses.
func (l RelayLimits) options(g *gate) []circuitrelay.Option {
	return []circuitrelay.Option{
		circuitrelay.WithResources(l.resources()), circuitrelay.WithACL(relayACL{g}),
		circuitrelay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }),
	}
}

// relayACL lets the run's peers use a relay, to reach each other.
type relayACL struct{ gate *gate }

// AllowReserve is part of relay.ACLFilter.
func (a relayACL) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return a.gate.allowsID(p) }

// AllowConnect is part of relay.ACLFilter.
func (a relayACL) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	return a.gate.allowsID(from) && a.gate.allowsID(to)
}

// shelter is where a participant that cannot be reached is reached: its places at relays.
type shelter struct {
	named []peer.AddrInfo // relays that were named, before all others
	reach Reach

	placesMu sync.Mutex // guards what follows
	places   map[peer.ID]place
	refusals map[peer.ID]refusal
	verdict  network.Reachability // AutoNAT's
}

// place is a reservation at a relay.
type place struct {
	addrs   []ma.Multiaddr // of the relay
	expires time.Time
}

// refusal is of a relay that had no place. One that does not know this participant yet, because it
// was announced just now, will soon.
type refusal struct {
	times int
	again time.Time // not asked before
}

func newShelter(named []peer.AddrInfo, reach Reach) *shelter {
	return &shelter{named: named, reach: reach, places: map[peer.ID]place{}, refusals: map[peer.ID]refusal{}}
}

// reached reports whether others can connect, as far as is known: if so this participant can be a
// relay, if not places at relays are of use.
func (s *shelter) reached(own []ma.Multiaddr) bool {
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	switch {
	case s.reach != ReachUnknown:
		return s.reach == ReachPublic
	case s.verdict != network.ReachabilityUnknown:
		return s.verdict == network.ReachabilityPublic
	}
	return slices.ContainsFunc(own, manet.IsPublicAddr)
}

// addrs are the addresses through relays, those of one relay after those of another.
func (s *shelter) addrs(now time.Time) (addrs []ma.Multiaddr) {
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	ids := make([]peer.ID, 0, len(s.places))
	for id, p := range s.places {
		if now.Before(p.expires) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		via := ma.StringCast("/p2p/" + id.String() + "/p2p-circuit")
		for _, a := range s.places[id].addrs {
			addrs = append(addrs, a.Encapsulate(via))
		}
	}
	return addrs
}

// due lists the relays to be asked for a place now, of those that there are, in their order.
func (s *shelter) due(relays []peer.AddrInfo, connected func(peer.ID) bool, now time.Time) (due []peer.AddrInfo) {
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	for id, p := range s.places {
		if !now.Before(p.expires) || !connected(id) { // a relay forgets who is gone
			delete(s.places, id)
		}
	}
	have := len(s.places)
	for _, r := range relays {
		p, ok := s.places[r.ID]
		switch {
		case ok && now.Add(reservationTime/2).After(p.expires):
			due = append(due, r)
		case ok, now.Before(s.refusals[r.ID].again):
		case have < placesWanted:
			have++
			due = append(due, r)
		}
	}
	return due
}

// keepPlaces is a relay for others while the participant can be reached, and asks relays for places
// while it cannot, until the network closes. To be taken for reachable by mistake does no harm: who
// cannot connect asks another one.
func (n *Network) keepPlaces() {
	var relay *circuitrelay.Relay
	defer func() {
		if relay != nil {
			relay.Close()
		}
	}()
	sub, err := n.host.EventBus().Subscribe(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		n.log.Warn("whether others can connect will not be known", "error", err)
		return
	}
	defer sub.Close()
	tick := time.NewTicker(placesEvery)
	defer tick.Stop()
	for {
		reached := n.shelter.reached(n.host.Addrs())
		switch {
		case !reached && relay != nil:
			relay.Close()
			relay = nil
		case reached && relay == nil && n.options.Relay != nil:
			if relay, err = circuitrelay.New(n.host, n.options.Relay.options(n.gate)...); err != nil {
				n.log.Warn("cannot serve as a relay", "error", err)
			}
		}
		if !reached {
			n.askForPlaces()
		}
		select {
		case e := <-sub.Out():
			if changed, ok := e.(event.EvtLocalReachabilityChanged); ok {
				n.log.Info("whether others can connect", "reachability", changed.Reachability)
				n.shelter.placesMu.Lock()
				n.shelter.verdict = changed.Reachability
				n.shelter.placesMu.Unlock()
			}
		case <-tick.C:
		case <-n.closing.Done():
			return
		}
	}
}

// askForPlaces asks the relays that are due, one after the other.
func (n *Network) askForPlaces() {
	now := time.Now()
	connected := func(id peer.ID) bool { return n.host.Network().Connectedness(id) == network.Connected }
	for _, r := range n.shelter.due(n.relays(), connected, now) {
		ctx, cancel := context.WithTimeout(n.closing, dialTimeout)
		got, err := circuit.Reserve(ctx, n.host, r)
		cancel()
		n.shelter.placesMu.Lock()
		if err != nil {
			times := n.shelter.refusals[r.ID].times
			n.shelter.refusals[r.ID] = refusal{times: times + 1, again: time.Now().Add(min(placesEvery<<min(times, 10), refusedFor))}
			delete(n.shelter.places, r.ID)
		} else {
			delete(n.shelter.refusals, r.ID)
			n.shelter.places[r.ID] = place{addrs: tellAtRelay(append(slices.Clone(r.Addrs), got.Addrs...), r.ID), expires: got.Expiration}
		}
		n.shelter.placesMu.Unlock()
		if err != nil && n.closing.Err() == nil {
			n.log.Debug("a relay has no place", "relay", r.ID, "error", err)
		} else if err == nil {
			n.log.Info("others reach this one through a relay", "relay", r.ID, "until", got.Expiration)
		}
	}
}

// tellAtRelay picks the addresses of a relay that are told to others, without its identity: public
// ones if there are any.
func tellAtRelay(addrs []ma.Multiaddr, relay peer.ID) []ma.Multiaddr {
	var plain []ma.Multiaddr
	for _, a := range addrs {
		if t, owner := peer.SplitAddr(a); t != nil && (owner == "" || owner == relay) && !viaRelay(t) {
			plain = append(plain, t)
		}
	}
	plain = ma.Unique(plain)
	if public := slices.DeleteFunc(slices.Clone(plain), func(a ma.Multiaddr) bool { return !manet.IsPublicAddr(a) }); len(public) > 0 {
		plain = public
	}
	return plain[:min(len(plain), addrsPerRelay)]
}

// relays are the peers that may have a place: those named, then connected members with a public
// address that serve as relays, in an order by hash, so that not all choose the same.
func (n *Network) relays() []peer.AddrInfo {
	list := slices.Clone(n.shelter.named)
	n.members.listMu.Lock()
	var found []*member
	for _, m := range n.members.list {
		if slices.ContainsFunc(m.addrs, func(a ma.Multiaddr) bool { return manet.IsPublicAddr(a) && !viaRelay(a) }) {
			found = append(found, m)
		}
	}
	n.members.listMu.Unlock()
	slices.SortStableFunc(found, func(a, b *member) int {
		return wire.Sum("entrain/p2p/relay", n.self[:], a.key[:]).Compare(wire.Sum("entrain/p2p/relay", n.self[:], b.key[:]))
	})
	for _, m := range found {
		if n.host.Network().Connectedness(m.id) != network.Connected {
			continue
		}
		if p, err := n.host.Peerstore().SupportsProtocols(m.id, circuitproto.ProtoIDv2Hop); err == nil && len(p) > 0 {
			list = append(list, peer.AddrInfo{ID: m.id, Addrs: slices.DeleteFunc(slices.Clone(m.addrs), viaRelay)})
		}
	}
	return list
}

// viaRelay reports whether an address leads through a relay.
func viaRelay(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}
