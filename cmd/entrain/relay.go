package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// relaying is what `entrain relay` was asked for.
type relaying struct {
	reaching
	observing
	target    onchain.Target
	keyFile   string
	endpoints []string
	bytes     byteCount
	time      time.Duration
}

func relayCommand(c console) *cobra.Command {
	var o relaying
	cmd := &cobra.Command{
		Use:   "relay RUN | RUN@HOST | TICKET",
		Short: "Let a run's members meet who cannot connect to each other",
		Long: `Serves as a relay for a run, until Ctrl-C. It must run where others can connect to it: with an address of its
own on the internet, or with --public-ip and a forwarded port. It announces itself on the chain, so that all
members find it without being told, and serves nobody but them.

Members behind NATs take a place at it, at which others reach them. Two that have met so try to connect to
each other directly, by punching a hole; where the NATs do not let them they go on through the relay. It also
passes on what members gossip. It sees who talks with whom, and none of what they say: that is encrypted
between the two. Members that can be reached do the same without being asked (join --no-relay); a relay is of
use where there are none.

A circuit is cut after --circuit-bytes or --circuit-time, and made anew by the members. A key is made if
there is none; a relay needs no tokens and earns nothing.`,
		Example: "  entrain relay my-run --listen 0.0.0.0:4001\n" +
			"  entrain relay my-run@chain.example.org --listen 0.0.0.0:4001 --public-ip 203.0.113.7 --key ./relay.key\n" +
			"  entrain relay my-run.ticket --listen 0.0.0.0:4001 --circuit-bytes 10GB",
		Args: needTarget, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.target, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			return c.relay(cmd.Context(), o)
		},
	}
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.endpoints)
	o.reaching.flags(cmd)
	f := cmd.Flags()
	f.Var(&o.bytes, "circuit-bytes", "cut a circuit after so many `bytes` each way, such as 10GB (default: twice the model's, and 256MB)")
	f.DurationVar(&o.time, "circuit-time", lp2p.CircuitTimeDefault, "cut a circuit after this `time`")
	f.StringVar(&o.level, "log-level", "warn", "least `level` of the structured log on standard error: debug, info, warn or error")
	f.StringVar(&o.format, "log-format", "text", "`format` of that log: text or json")
	return cmd
}

// relay serves as a relay until ctx ends.
func (c console) relay(ctx context.Context, o relaying) (err error) {
	if err := o.reaching.check(); err != nil {
		return err
	}
	if o.time <= 0 {
		return fmt.Errorf("--circuit-time %s: want more than nothing", o.time)
	}
	log, err := o.logger(c.err)
	if err != nil {
		return err
	}
	path, err := c.keyPath(o.keyFile)
	if err != nil {
		return err
	}
	secret, _, err := c.ensureKey(path)
	if err != nil {
		return err
	}
	o.endpoints = c.endpoints(o.endpoints)
	client, err := c.dial(ctx, o.endpoints, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	on, err := onchain.GetRun(ctx, client, o.target.Run)
	if err == nil {
		err = o.target.Check(client.ChainID(), on.Snapshot.State.ID())
	}
	if err != nil {
		return err
	}
	needs, err := sizesOf(on.Spec)
	if err != nil {
		return err
	}
	forwarder := node.NewForwarder(on.Snapshot.State.ID())
	options := lp2p.Options{Key: secret, Run: on.Snapshot.State.ID(), Handler: forwarder, Reach: lp2p.ReachPublic, Log: log}
	if err := o.options(&options, o.endpoints, needs.Model); err != nil {
		return err
	}
	options.Reach = lp2p.ReachPublic
	options.Relay.CircuitTime = o.time
	if o.bytes > 0 {
		options.Relay.CircuitBytes = uint64(o.bytes)
	}
	network, err := lp2p.New(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	r := &relayOffice{console: c, client: client, run: o.target.Run, network: network, own: client.As(secret), key: secret.Public(), log: log}
	client.Watch(ctx, o.target.Run, func(s ledger.Snapshot) { forwarder.Follow(s.State) })
	c.say("relay %s for run %q on chain %q; Ctrl-C ends it", secret.Public(), o.target.Run, client.ChainID())
	return r.serve(ctx)
}

// relayOffice keeps a relay and the chain's list of peers informed of each other.
type relayOffice struct {
	console
	client  ledger.Chain
	run     string
	network *lp2p.Network
	own     ledger.Ledger
	key     key.Public
	log     *slog.Logger

	asking atomic.Bool
	told   []string // addresses that were announced last
}

// relayPeersEvery is how often the chain's list is looked up: a newcomer waits as long before the relay lets it in.
const relayPeersEvery = time.Second

// serve goes on until ctx ends.
func (r *relayOffice) serve(ctx context.Context) error {
	timer := time.NewTicker(relayPeersEvery)
	defer timer.Stop()
	found := make(chan []host.Peer, 1)
	for {
		if r.asking.CompareAndSwap(false, true) {
			r.client.Peers(ctx, r.run, func(peers []host.Peer, err error) {
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

// meet lets the listed peers in, and announces the relay if the list lacks it or has other addresses of it.
func (r *relayOffice) meet(ctx context.Context, peers []host.Peer) error {
	own := r.network.Addrs()
	own = own[:min(len(own), host.AddrsMax)]
	var others []p2p.Peer
	current := false
	for _, p := range peers {
		if p.Key == r.self() {
			current = slices.Equal(p.Addrs, own)
			continue
		}
		others = append(others, p2p.Peer{Key: p.Key, Addrs: p.Addrs})
	}
	r.network.Connect(others)
	if current || len(own) == 0 {
		return nil
	}
	if err := onchain.Submit(ctx, r.own, host.Announce{Run: r.run, Addrs: own}); err != nil {
		return err
	}
	if !slices.Equal(r.told, own) {
		for _, a := range own {
			r.say("reached at %s", a)
		}
	}
	r.told = own
	return nil
}

func (r *relayOffice) self() key.Public { return r.key }

// withdraw takes the relay off the list. If the chain does not hear of it, others' announcements push it out in time.
func (r *relayOffice) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := onchain.Submit(ctx, r.own, host.Announce{Run: r.run}); err != nil {
		r.log.Info("the chain was not told that the relay is gone", "error", err)
	}
}
