package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// chainFlag adds --chain.
func chainFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "chain", nil, "`URL` of the chain, optionally with #HEIGHT:HASH of a trusted header; may be repeated, for when one fails (default $ENTRAIN_CHAIN, then the replica that you started last, then "+onchain.DefaultChain+")")
}

// endpoints are the replicas to talk to, by the flag, the environment, or by default.
func (c console) endpoints(flag []string) []string {
	return onchain.Endpoints(flag, c.env("ENTRAIN_CHAIN"), c.remembered())
}

// own makes the replica in home the one that commands talk to by default.
func (c console) own(home string) {
	if err := onchain.Own(home, c.remembered()); err != nil {
		c.say("%v", err)
	}
}

// dial connects to the chain that the flag, the environment or the default names, and tells which
// it is if nothing names it. A log of nil discards.
func (c console) dial(ctx context.Context, flag []string, log *slog.Logger) (ledger.Chain, error) {
	at := c.endpoints(flag)
	client, err := onchain.Dial(ctx, at, onchain.DialOptions{Remember: c.remembered(), Log: log})
	if err == nil && at[0] == onchain.DefaultChain && len(flag) == 0 && c.env("ENTRAIN_CHAIN") == "" {
		c.say("chain %q, which answers at %s; --chain names another", client.ChainID(), onchain.DefaultChain)
	}
	return client, err
}

// connected calls f with a connection to the chain.
func (c console) connected(ctx context.Context, flag []string, f func(ledger.Chain) error) error {
	client, err := c.dial(ctx, flag, nil)
	if err != nil {
		return err
	}
	return errors.Join(onchain.Suggest(ctx, client, f(client)), client.Close())
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
func (c console) remembered() string { return c.places.Chains() }
