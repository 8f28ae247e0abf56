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
	// ReachUnknown lets the network find out. A machine without a public address counts as
	// unreachable; for others, peers try to connect and report (libp2p's AutoNAT).
	ReachUnknown Reach = iota
	// ReachPublic means that others can connect at an announced address.
	ReachPublic
	// ReachPrivate means that others connect through relays until a hole is punched.
	ReachPrivate
)

// RelayLimits limit what a participant relays for peers that others cannot reach. A circuit joins
// two peers until they have punched a hole, or for as long as it lasts if they cannot.
type RelayLimits struct {
	// CircuitBytes limits each direction of a circuit, which is cut then and must be made again; 0
	// means CircuitBytesDefault.
	CircuitBytes uint64
}

// What a circuit carries by default, and how long it lasts: several rounds of a run of millions of
// parameters, and the model once.
const (
	CircuitBytesDefault = 256 << 20
	circuitTime         = time.Hour
)

// resources converts the limits to libp2p's form.
func (l RelayLimits) resources() circuitrelay.Resources {
	if l.CircuitBytes == 0 {
		l.CircuitBytes = CircuitBytesDefault
	}
	return circuitrelay.Resources{
		Limit:          &circuitrelay.RelayLimit{Duration: circuitTime, Data: int64(l.CircuitBytes)},
		ReservationTTL: reservationTime, MaxReservations: reservationsMax, MaxCircuits: circuitsPerPeer, BufferSize: circuitBuffer,
		MaxReservationsPerIP: connsPerIP, MaxReservationsPerASN: reservationsMax,
	}
}

// options returns the relay service's options. It serves peers that the gate allows and announces
// all its addresses.
func (l RelayLimits) options(g *gate) []circuitrelay.Option {
	return []circuitrelay.Option{
		circuitrelay.WithResources(l.resources()), circuitrelay.WithACL(relayACL{g}),
		circuitrelay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }),
	}
}

// relayACL lets peers of the run use a relay to reach each other.
type relayACL struct{ gate *gate }

// AllowReserve implements relay.ACLFilter.
func (a relayACL) AllowReserve(p peer.ID, _ ma.Multiaddr) bool { return a.gate.allowsID(p) }

// AllowConnect implements relay.ACLFilter.
func (a relayACL) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	return a.gate.allowsID(from) && a.gate.allowsID(to)
}

// shelter manages the places at relays of a participant that others cannot reach.
type shelter struct {
	named []peer.AddrInfo // relays of Options.Relays
	reach Reach

	placesMu sync.Mutex // guards what follows
	places   map[peer.ID]place
	refusals map[peer.ID]refusal
	verdict  network.Reachability // by AutoNAT
}

// place is a reservation at a relay.
type place struct {
	addrs   []ma.Multiaddr // the relay's addresses
	expires time.Time
}

// refusal records a relay without a free place. A relay may also refuse a participant that was
// announced just now and that it does not know yet.
type refusal struct {
	times int
	again time.Time // when to ask again
}

func newShelter(named []peer.AddrInfo, reach Reach) *shelter {
	return &shelter{named: named, reach: reach, places: map[peer.ID]place{}, refusals: map[peer.ID]refusal{}}
}

// reached reports whether others can connect, as far as is known. If so this participant can be a
// relay; otherwise it needs places at relays.
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

// addrs returns the addresses through relays, relay after relay.
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

// due returns the given relays that should be asked for a place now, in order.
func (s *shelter) due(relays []peer.AddrInfo, connected func(peer.ID) bool, now time.Time) (due []peer.AddrInfo) {
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	for id, p := range s.places {
		if !now.Before(p.expires) || !connected(id) { // a relay forgets disconnected peers
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

// keepPlaces serves as a relay while others can reach the participant, and reserves places at
// relays while they cannot, until the network closes. A participant that wrongly believes itself
// reachable does no harm: peers that cannot connect to it ask another relay.
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

// askForPlaces asks the relays that are due, one after another.
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

// tellAtRelay returns the addresses of a relay to announce, without its identity: the public ones,
// if there are any.
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

// relays returns possible relays: those of Options.Relays, then connected members with a public
// address that serve as relays. Members are in an order by hash, so participants choose different
// ones.
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

// viaRelay reports whether an address goes through a relay.
func viaRelay(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}
