package lp2p

import (
	"context"
	"sync"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/entrain-network/entrain/key"
)

// Probe reports whether a process with the given key answers at one of the addresses, and at which;
// the handshake proves it. Call it before a Network with this key listens, because that would
// answer too.
func Probe(ctx context.Context, k key.Public, addrs []string) (at string, ok bool) {
	id, err := peerID(k)
	if err != nil {
		return "", false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	found := make(chan string, addrsMax)
	for _, s := range addrs[:min(len(addrs), addrsMax)] {
		if a, err := parseAddr(s, id); err == nil {
			wg.Go(func() {
				if answers(ctx, id, a) {
					found <- s
					cancel()
				}
			})
		}
	}
	wg.Wait()
	select {
	case at = <-found:
		return at, true
	default:
		return "", false
	}
}

// answers reports whether a process with the identity answers at a. A host with a temporary key
// asks it.
func answers(ctx context.Context, id peer.ID, a ma.Multiaddr) bool {
	h, err := newProber()
	if err != nil {
		return false
	}
	defer h.Close()
	h.Peerstore().AddAddr(id, a, peerstore.TempAddrTTL)
	_, err = h.Network().DialPeer(ctx, id)
	return err == nil
}

func newProber() (host.Host, error) {
	return libp2p.New(
		libp2p.UserAgent("entrain"), libp2p.NoListenAddrs, libp2p.EnableRelay(), libp2p.DisableMetrics(),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Transport(quic.NewTransport),
		libp2p.Security(tls.ID, tls.New), libp2p.Security(noise.ID, noise.New),
	)
}
