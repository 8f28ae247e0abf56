package lp2p

import (
	"context"
	"sync"
	"time"

	"github.com/entrain-network/entrain/key"
)

// guests limits the requests of peers to this participant. Its zero value is ready.
type guests struct {
	peersMu   sync.Mutex // guards what follows
	peers     map[key.Public]*guest
	member    func(key.Public) bool // nil: all peers are
	serving   int
	strangers int // of these, requests of peers that were no members
}

// guest holds a peer's requests in progress and its token bucket.
type guest struct {
	serving int
	strange int       // of these, begun while the peer was no member
	tokens  float64   // if negative, requests that wait
	at      time.Time // time of tokens
}

// admission is the decision on a request.
type admission int

const (
	admitted admission = iota
	busy               // too many requests at this participant
	flooding           // more than an honest peer sends, see askedPerPeer
)

// enter decides whether to serve a peer's request. An admitted request is served after wait, and
// leave must follow. Peers that ask often are served slowly rather than refused, because honest
// ones may have reason to.
func (g *guests) enter(k key.Public, now time.Time) (a admission, wait time.Duration) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	p := g.peers[k]
	if p == nil {
		if len(g.peers) >= guestsMax {
			g.forget(now)
		}
		if len(g.peers) >= guestsMax {
			return busy, 0
		}
		if g.peers == nil {
			g.peers = make(map[key.Public]*guest)
		}
		p = &guest{tokens: requestsBurst, at: now}
		g.peers[k] = p
	}
	strange := g.stranger(k)
	switch {
	case p.serving >= servedPerPeer:
		return flooding, 0
	case g.serving >= servedMax, strange && g.strangers >= servedMax/strangersPart:
		return busy, 0
	}
	p.tokens = min(requestsBurst, p.tokens+requestsPerSecond*now.Sub(p.at).Seconds()) - 1
	p.at = now
	p.serving++
	g.serving++
	if strange {
		p.strange++
		g.strangers++
	}
	return admitted, time.Duration(max(0, -p.tokens) / requestsPerSecond * float64(time.Second))
}

func (g *guests) leave(k key.Public) {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	p := g.peers[k]
	p.serving--
	g.serving--
	if p.strange > 0 {
		p.strange--
		g.strangers--
	}
}

// strange reports whether a peer is no member of the run.
func (g *guests) strange(k key.Public) bool {
	g.peersMu.Lock()
	defer g.peersMu.Unlock()
	return g.stranger(k)
}

func (g *guests) stranger(k key.Public) bool { return g.member != nil && !g.member(k) }

// forget removes peers whose state is the default.
func (g *guests) forget(now time.Time) {
	for k, p := range g.peers {
		if p.serving == 0 && p.tokens+requestsPerSecond*now.Sub(p.at).Seconds() >= requestsBurst {
			delete(g.peers, k)
		}
	}
}

// slots limits the requests in flight to each peer. Its zero value is ready.
type slots struct {
	peersMu sync.Mutex // guards what follows
	peers   map[key.Public]*slot
}

type slot struct {
	taken chan struct{}
	users int // requests that hold or wait for a slot
}

// acquire waits for one of a peer's slots. Unless it fails, release must follow.
func (s *slots) acquire(ctx context.Context, k key.Public) error {
	s.peersMu.Lock()
	if s.peers == nil {
		s.peers = make(map[key.Public]*slot)
	}
	p := s.peers[k]
	if p == nil {
		p = &slot{taken: make(chan struct{}, askedPerPeer)}
		s.peers[k] = p
	}
	p.users++
	s.peersMu.Unlock()
	select {
	case p.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		s.forget(k)
		return context.Cause(ctx)
	}
}

func (s *slots) release(k key.Public) {
	s.peersMu.Lock()
	<-s.peers[k].taken
	s.peersMu.Unlock()
	s.forget(k)
}

// forget drops a peer's unused slots.
func (s *slots) forget(k key.Public) {
	s.peersMu.Lock()
	defer s.peersMu.Unlock()
	if p := s.peers[k]; p.users > 1 {
		p.users--
	} else {
		delete(s.peers, k)
	}
}
