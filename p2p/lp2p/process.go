package lp2p

import (
	"crypto/rand"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
)

// A peer that is killed and starts again soon connects while this end still holds connections to
// the process before, into which it would send gossip and requests. supersede closes those that are
// old enough; younger ones could be dials of the same process. So each process names itself to
// those that it is connected with, as part of the user agent that libp2p's identify carries.

// processes are the names of the processes at the other ends of connections.
type processes struct {
	mu sync.Mutex // guards at
	at map[network.Conn]string
}

// agent returns the user agent of a new process.
func agent() string { return "entrain/" + rand.Text() }

// forget removes a connection that has ended.
func (p *processes) forget(c network.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, c)
}

// learn takes the name of the process at the other end of a connection. It reports whether one of
// the older connections with the peer leads to another process, which is gone.
func (p *processes) learn(of network.Network, c network.Conn, name string) (gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.IsClosed() {
		return false
	}
	p.at[c] = name
	for _, old := range of.ConnsToPeer(c.RemotePeer()) {
		was, known := p.at[old]
		gone = gone || known && was != name && old.Stat().Opened.Before(c.Stat().Opened)
	}
	return gone
}

// keepProcesses cuts all connections with a peer of which one leads to a process that is gone,
// until the network closes. The peer connects again. To close the old ones alone would have pubsub
// forget the subscription that the peer told on the new one.
func (n *Network) keepProcesses(named event.Subscription) {
	defer named.Close()
	for {
		select {
		case <-n.closing.Done():
			return
		case e := <-named.Out():
			if id, ok := e.(event.EvtPeerIdentificationCompleted); ok && n.members.processes.learn(n.host.Network(), id.Conn, id.AgentVersion) {
				n.start(func() { n.disconnect(id.Peer) })
			}
		}
	}
}
