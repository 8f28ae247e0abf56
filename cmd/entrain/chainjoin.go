package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// joining is chain join's flags.
type joining struct {
	home, api, peering, public string
	peers                      []string
}

func chainJoinCommand(c console) *cobra.Command {
	var o joining
	cmd := &cobra.Command{
		Use:   "join URL...",
		Short: "Set up a replica of a chain that others run",
		Long: `Sets up a directory for one more replica of the chain that is served at the URLs: keys of its own, the
chain's genesis, and the addresses of the others. When it is started it fetches the chain's present state from
them, checked by the signatures of the chain's replicas, and goes on from there.

Name a header that you believe after the URL, as #HEIGHT:HASH: who runs the chain prints it with
"entrain chain trust". It is needed when the chain is older than five days; before, the genesis is enough,
which is believed as the URLs serve it: compare the hash that is printed with what you were told.

The new replica follows the chain and serves clients. It votes on blocks when it has a seat: put tokens behind
it with "entrain chain stake", and the others decide with "entrain chain vote".`,
		Example: "  entrain chain join https://a.example.org --peering 0.0.0.0:26656 --public me.example.org:26656\n" +
			"  entrain chain join https://a.example.org#81722:9f3c...01 https://b.example.org",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.chainJoin(cmd.Context(), o, args) },
	}
	c.homeFlag(cmd, &o.home)
	f := cmd.Flags()
	f.StringVar(&o.api, "api", comet.DefaultAPI, "`address` where clients reach the replica")
	f.StringVar(&o.peering, "peering", comet.DefaultPeering, "`address` where it listens for other replicas; the default is for one without a seat")
	f.StringVar(&o.public, "public", "", "`HOST:PORT` where other replicas reach it, if that is another address")
	f.StringArrayVar(&o.peers, "peer", nil, "another replica, as `ID@host:port`; may be repeated (default: what the URLs say)")
	return cmd
}

func (c console) chainJoin(ctx context.Context, j joining, urls []string) error {
	if j.home == "" {
		return errNoHome
	}
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
