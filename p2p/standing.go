package p2p

import (
	"errors"
	"time"

	"github.com/entrain-network/entrain/key"
)

// An Offence is something an honest participant does not do, or seldom.
type Offence uint8

const (
	// Lied: bytes that do not match their hash. Proof of a fault.
	Lied Offence = iota
	// Garbled: bytes that are not of the protocol, or beyond its limits.
	Garbled
	// Rejected: gossip that the Handler rejected.
	Rejected
	// Stalled: no answer in time, which may be the network's fault.
	Stalled
	// Flooded: more requests than anybody needs.
	Flooded
)

// offence classifies the reasons for which a peer is blamed.
func offence(err error) (Offence, bool) {
	switch {
	case errors.Is(err, ErrLied):
		return Lied, true
	case errors.Is(err, ErrMalformed):
		return Garbled, true
	case errors.Is(err, ErrStalled):
		return Stalled, true
	}
	return 0, false
}

func (o Offence) String() string {
	switch o {
	case Lied:
		return "lied"
	case Garbled:
		return "garbled"
	case Rejected:
		return "rejected"
	case Stalled:
		return "stalled"
	case Flooded:
		return "flooded"
	}
	return "unknown offence"
}

// weight returns the weight of an offence. A peer is banned at banWeight.
func (o Offence) weight() float64 {
	switch o {
	case Lied:
		return 40
	case Garbled, Rejected:
		return 10
	case Stalled, Flooded:
		return 2
	}
	return 0
}

const (
	banWeight = 100
	// forgiveness is the weight that a peer loses per minute.
	forgivenessPerMinute = 5
	// BanTime is the duration of a ban. It ends because the peer may be a member whose fault was
	// repaired.
	BanTime = 15 * time.Minute
	// standingMax bounds the peers remembered: a run's members, and some. Beyond, the
	// one with the oldest offence is forgotten.
	standingMax = 16 << 10
)

// Standing remembers which peers misbehaved. The zero value is empty. It belongs to
// one goroutine, which passes the time.
type Standing struct {
	peers map[key.Public]*record
}

type record struct {
	weight float64
	at     time.Time // when weight was right
	banned time.Time // until when
}

// Charge records an offence. It reports whether that bans the peer.
func (s *Standing) Charge(peer key.Public, o Offence, now time.Time) (banned bool) {
	r := s.peers[peer]
	if r == nil {
		if s.peers == nil {
			s.peers = make(map[key.Public]*record)
		}
		if len(s.peers) >= standingMax {
			s.forgetOldest()
		}
		r = &record{at: now}
		s.peers[peer] = r
	}
	r.weight = r.weightAt(now) + o.weight()
	r.at = now
	if r.weight < banWeight || now.Before(r.banned) {
		return false
	}
	r.weight, r.banned = 0, now.Add(BanTime)
	return true
}

func (r *record) weightAt(now time.Time) float64 {
	return max(0, r.weight-forgivenessPerMinute*now.Sub(r.at).Minutes())
}

// Weight returns the weight of a peer's unforgiven offences: from 0, for none, to 100, when it is
// banned.
func (s *Standing) Weight(peer key.Public, now time.Time) float64 {
	r := s.peers[peer]
	switch {
	case r == nil:
		return 0
	case now.Before(r.banned):
		return banWeight
	}
	return r.weightAt(now)
}

// Banned reports whether a peer is banned at this time.
func (s *Standing) Banned(peer key.Public, now time.Time) bool {
	r := s.peers[peer]
	return r != nil && now.Before(r.banned)
}

// forgetOldest removes the record with the oldest offence, of equal ones that of
// the smallest key.
func (s *Standing) forgetOldest() {
	var oldest key.Public
	var at time.Time
	first := true
	for k, r := range s.peers {
		if first || r.at.Before(at) || (r.at.Equal(at) && string(k[:]) < string(oldest[:])) {
			oldest, at, first = k, r.at, false
		}
	}
	delete(s.peers, oldest)
}
