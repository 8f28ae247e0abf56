package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// chainJoin sets up a replica of the chain that is served at URLs.
func (c console) chainJoin(ctx context.Context, j founding, urls []string) error {
	ctx, cancel := context.WithTimeout(ctx, onchain.Patience)
	defer cancel()
	o := comet.Options{API: j.api, Peering: j.peering, Public: j.public, Peers: j.peers}
	var errs []error
	for _, u := range urls {
		at, err := onchain.URL(u)
		if err != nil {
			return err
		}
		status, genesis, err := comet.FetchGenesis(ctx, at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch {
		case o.Genesis == nil:
			o.Genesis, o.Chain = genesis, status.Chain
		case string(o.Genesis) != string(genesis):
			return fmt.Errorf("%s serves another genesis than the URLs before it: one of them is not to be believed", at)
		}
		o.Sync = append(o.Sync, at)
		if p, err := peerAt(status.Peer, at); err == nil && len(j.peers) == 0 {
			o.Peers = append(o.Peers, p)
		}
	}
	if o.Genesis == nil {
		return fmt.Errorf("nobody serves the chain: %w", errors.Join(errs...))
	}
	if len(o.Peers) == 0 {
		return errors.New("the replicas at these URLs do not say where other replicas reach them: name one with --peer ID@HOST:PORT")
	}
	if err := comet.Init(j.home, o); err != nil {
		return err
	}
	c.say("set up a replica of chain %s in %s; its genesis has hash %s\nstart it with: entrain chain start --home %q",
		o.Chain, j.home, comet.GenesisHash(o.Genesis), j.home)
	return nil
}

// peerAt is where other replicas reach the one whose API is at a URL: as it says, but at the URL's host if it listens on all
// addresses of its machine.
func peerAt(says, at string) (string, error) {
	id, addr, _ := strings.Cut(says, "@")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		u, err := url.Parse(at)
		if err != nil {
			return "", err
		}
		host = u.Hostname()
	}
	return id + "@" + net.JoinHostPort(host, port), nil
}
