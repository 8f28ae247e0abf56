package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// chainFlag adds --chain.
func chainFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "chain", nil, "`URL` of the chain, optionally with #HEIGHT:HASH of a trusted header; may be repeated, for when one fails (default $ENTRAIN_CHAIN, then the replica that you started last, then "+defaultChain+")")
}

// defaultAPI is the address where a replica serves clients by default.
const defaultAPI = comet.DefaultAPI

// defaultChain is where chain start serves clients unless told otherwise.
const defaultChain = "http://" + defaultAPI

// endpoints are the replicas to talk to, by the flag, the environment, or by default: the replica
// that this user started last, and no other that took its port.
func (c console) endpoints(flag []string) []string {
	switch {
	case len(flag) > 0:
		return flag
	case c.env("ENTRAIN_CHAIN") != "":
		return strings.Fields(strings.ReplaceAll(c.env("ENTRAIN_CHAIN"), ",", " "))
	}
	if dir := c.remembered(); dir != "" {
		b, err := atomicfile.ReadBounded(filepath.Join(dir, ownFile), ownBytesMax)
		if own, wrong := onchain.URL(strings.TrimSpace(string(b))); err == nil && wrong == nil {
			return []string{own}
		}
	}
	return []string{defaultChain}
}

// ownFile holds the endpoint of the replica that this user started last, with its genesis.
const (
	ownFile     = "own"
	ownBytesMax = 1 << 10
)

// own makes the replica in home the one that commands talk to by default.
func (c console) own(home string) {
	endpoint, err := comet.OwnEndpoint(home)
	if err != nil || c.remembered() == "" || strings.Contains(endpoint, ":0#") {
		return // Open reports what is wrong with the replica; nobody expects one at a random port
	}
	if err = os.MkdirAll(c.remembered(), 0o700); err == nil {
		err = atomicfile.WriteBytes(filepath.Join(c.remembered(), ownFile), 0o644, []byte(endpoint+"\n"))
	}
	if err != nil {
		c.say("without --chain, commands will not know this chain: %v", err)
	}
}

// dial connects to the chain that the flag, the environment or the default names, and tells which
// it is if nothing names it. A log of nil discards.
func (c console) dial(ctx context.Context, flag []string, log *slog.Logger) (ledger.Chain, error) {
	at := c.endpoints(flag)
	client, err := onchain.Dial(ctx, at, onchain.DialOptions{Remember: c.remembered(), Log: log})
	if err == nil && at[0] == defaultChain && len(flag) == 0 && c.env("ENTRAIN_CHAIN") == "" {
		c.say("chain %q, which answers at %s; --chain names another", client.ChainID(), defaultChain)
	}
	return client, err
}

// connected calls f with a connection to the chain.
func (c console) connected(ctx context.Context, flag []string, f func(ledger.Chain) error) error {
	client, err := c.dial(ctx, flag, nil)
	if err != nil {
		return err
	}
	return errors.Join(f(client), client.Close())
}

// onRun calls f with a connection to the chain and a run on it.
func (c console) onRun(ctx context.Context, flag []string, to onchain.Target, f func(ledger.Chain, onchain.Run) error) error {
	return c.connected(ctx, flag, func(client ledger.Chain) error {
		on, err := onchain.Read(ctx, client, to)
		if err != nil {
			return err
		}
		return f(client, on)
	})
}

// remembered is the directory that keeps headers of chains, "" if there is none.
func (c console) remembered() string {
	if c.places.Data == "" {
		return ""
	}
	return filepath.Join(c.places.Data, "chains")
}
