package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// chainFlag adds --chain.
func chainFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "chain", nil, "`URL` of a replica of the chain, optionally with #HEIGHT:HASH of a trusted header; may be repeated, for when one fails (default $ENTRAIN_CHAIN, then "+defaultChain+")")
}

// defaultAPI is the address where a replica serves clients by default.
const defaultAPI = comet.DefaultAPI

// defaultChain is where chain start serves clients unless told otherwise.
const defaultChain = "http://" + defaultAPI

// endpoints are the replicas to talk to, by the flag, the environment, or by default.
func (c console) endpoints(flag []string) []string {
	switch {
	case len(flag) > 0:
		return flag
	case c.env("ENTRAIN_CHAIN") != "":
		return strings.Fields(strings.ReplaceAll(c.env("ENTRAIN_CHAIN"), ",", " "))
	}
	return []string{defaultChain}
}

// dial connects to the chain that the flag, the environment or the default names. A log of nil
// discards.
func (c console) dial(ctx context.Context, flag []string, log *slog.Logger) (ledger.Chain, error) {
	return onchain.Dial(ctx, c.endpoints(flag), onchain.DialOptions{Remember: c.remembered(), Log: log})
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
	client, on, err := onchain.Open(ctx, c.endpoints(flag), onchain.DialOptions{Remember: c.remembered()}, to)
	if err != nil {
		return err
	}
	return errors.Join(f(client, on), client.Close())
}

// remembered is the directory that keeps headers of chains, "" if there is none.
func (c console) remembered() string {
	if c.places.Data == "" {
		return ""
	}
	return filepath.Join(c.places.Data, "chains")
}
