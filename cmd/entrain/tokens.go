package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// acting holds the flags of every command that sends a transaction: who signs, and where it goes.
type acting struct {
	keyFile string
	chain   []string
}

func (a *acting) flags(cmd *cobra.Command) {
	keyFlag(cmd, &a.keyFile)
	chainFlag(cmd, &a.chain)
}

// on returns the run that an argument RUN or RUN@HOST names, and acts on its chain.
func (a *acting) on(arg string) (run string, err error) { return onchain.LocatedOne(arg, &a.chain) }

// act signs what make returns with the key, and waits until it is in a block.
func (c console) act(ctx context.Context, a acting, make func(ledger.Chain, key.Public) (host.Body, error)) error {
	k, err := c.loadKey(a.keyFile)
	if err != nil {
		return err
	}
	return c.connected(ctx, a.chain, func(client ledger.Chain) error {
		body, err := make(client, k.Public())
		if err != nil {
			return err
		}
		return onchain.Submit(ctx, client.As(k), body)
	})
}

// send is act with a body that depends on neither chain nor key. An error begins with what failed;
// otherwise the user is told what was done.
func (c console) send(ctx context.Context, a acting, body host.Body, failed, done string) error {
	err := c.act(ctx, a, func(ledger.Chain, key.Public) (host.Body, error) { return body, nil })
	if err != nil {
		return fmt.Errorf("%s: %w", failed, err)
	}
	c.say("%s", done)
	return nil
}

// optionalKey reads the public key of a flag; "" is not a key.
func optionalKey(flag, s string) (k key.Public, err error) {
	if s == "" {
		return k, nil
	}
	if k, err = onchain.ParseKey(s); err != nil {
		err = fmt.Errorf("--%s %w", flag, err)
	}
	return k, err
}

// needAmount checks the arguments of a command that wants a name and an amount.
func needAmount(what string) cobra.PositionalArgs {
	return cobra.MatchAll(between(2, 2, what+" and how many tokens"), func(_ *cobra.Command, args []string) error {
		_, err := onchain.ParseTokens(args[1])
		return err
	})
}

// needRun wants one run, needPool the name of one pool.
var (
	needRun  = between(1, 1, "one run (entrain status lists those of a chain)")
	needPool = cobra.MatchAll(between(1, 1, "the name of one pool (entrain wallet show pool: lists those of a chain)"), named)
)

// named refuses a first argument that cannot be the name of a pool.
func named(_ *cobra.Command, args []string) error { return onchain.CheckPoolName(args[0]) }
