package participant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/participant/trainer"
)

// RelayOptions describe how a machine relays for a run.
type RelayOptions struct {
	Reaching
	Target    onchain.Target
	Endpoints []string
	Key       key.Private
	Remember  string
	Reached   func(addr string) // takes each address at which the relay is announced
	Log       *slog.Logger
}

// NewRelay makes a relay. It must be closed.
func NewRelay(ctx context.Context, o RelayOptions) (*Relay, error) {
	client, on, err := onchain.Open(ctx, o.Endpoints, onchain.DialOptions{Remember: o.Remember, Log: o.Log}, o.Target)
	if err != nil {
		return nil, err
	}
	needs, err := trainer.SizesOf(on.Spec)
	st, pub := on.Snapshot.State, o.Key.Public()
	if i, found := st.Find(pub); err == nil && found && st.Status(i).Present() {
		err = fmt.Errorf("key %s is that of a member of run %q, which stops when another process has its key: give the relay one of its own with --key FILE", pub, o.Target.Run)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	forwarder := gossip.NewForwarder(on.Snapshot.State.ID())
	options := lp2p.Options{Key: o.Key, Run: on.Snapshot.State.ID(), Handler: forwarder, Reach: lp2p.ReachPublic, Log: o.Log}
	if err := o.options(&options, o.Endpoints, needs.Model); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	options.Reach = lp2p.ReachPublic
	network, err := lp2p.New(options)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Relay{
		Client: client, name: o.Target.Run, network: network, forwarder: forwarder, reached: o.Reached,
		own: client.As(o.Key), key: o.Key.Public(), log: o.Log,
	}, nil
}

// Close ends all circuits, and the connection to the chain.
func (r *Relay) Close() error { return errors.Join(r.network.Close(), r.Client.Close()) }

// Relay passes on traffic for members of a run that cannot connect to each other. It announces
// itself on the chain, and serves only peers on the chain's list.
type Relay struct {
	Client    ledger.Chain
	name      string // the run's
	forwarder *gossip.Forwarder
	reached   func(addr string)
	network   *lp2p.Network
	own       ledger.Ledger
	key       key.Public
	log       *slog.Logger

	asking atomic.Bool
	told   []string // addresses that were announced last
}

// relayPeersEvery is the interval at which the relay reads the chain's list; a newcomer waits as
// long for it.
const relayPeersEvery = time.Second

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	r.Client.Watch(ctx, r.name, func(s ledger.Snapshot) { r.forwarder.Follow(s.State) })
	timer := time.NewTicker(relayPeersEvery)
	defer timer.Stop()
	found := make(chan []host.Peer, 1)
	for {
		if r.asking.CompareAndSwap(false, true) {
			r.Client.Peers(ctx, r.name, func(peers []host.Peer, err error) {
				r.asking.Store(false)
				if err == nil {
					select {
					case found <- peers:
					default: // the list before is still being looked at
					}
				}
			})
		}
		select {
		case peers := <-found:
			if err := r.meet(ctx, peers); err != nil && ctx.Err() == nil {
				r.log.Warn("the relay could not be announced", "error", err)
			}
		case <-timer.C:
		case <-ctx.Done():
			r.withdraw(ctx)
			return nil
		}
	}
}

// meet lets the listed peers in, and announces the relay if the list has not its present addresses.
func (r *Relay) meet(ctx context.Context, peers []host.Peer) error {
	own := r.network.Addrs()
	own = own[:min(len(own), host.AddrsMax)]
	var others []p2p.Peer
	current := false
	for _, p := range peers {
		if p.Key == r.self() {
			current = slices.Equal(p.Addrs, own)
			continue
		}
		others = append(others, p)
	}
	r.network.Connect(others)
	if current || len(own) == 0 {
		return nil
	}
	if err := onchain.Submit(ctx, r.own, host.Announce{Run: r.name, Addrs: own}); err != nil {
		return err
	}
	if !slices.Equal(r.told, own) {
		for _, a := range own {
			r.reached(a)
		}
	}
	r.told = own
	return nil
}

func (r *Relay) self() key.Public { return r.key }

// withdraw takes the relay off the list. If that fails, later announcements push it out.
func (r *Relay) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := onchain.Submit(ctx, r.own, host.Announce{Run: r.name}); err != nil {
		r.log.Info("the chain was not told that the relay is gone", "error", err)
	}
}

// farewell is the time that a leaving peer waits for the chain to accept its withdrawal.
const farewell = 2 * time.Second
