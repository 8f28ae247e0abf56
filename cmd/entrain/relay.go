package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

// relaying is what `entrain relay` was asked for.
type relaying struct {
	participant.Reaching
	log       participant.Logging
	target    onchain.Target
	keyFile   string
	endpoints []string
}

func relayCommand(c console) *cobra.Command {
	var o relaying
	cmd := &cobra.Command{
		Use:   "relay RUN | RUN@HOST | TICKET",
		Short: "Relay traffic for members behind NAT",
		Long: `Relays traffic for the members of a run until Ctrl-C. It must run where others can connect to it: at
a public address, or with --public-ip and a forwarded port. It announces itself on the chain, so all
members find it, and serves only them.

Members behind NATs reserve a place at it, through which others reach them. Two such members then
try to connect directly by hole punching; if their NATs prevent that, they continue through the
relay. The relay also passes on gossip. It sees who talks with whom, but not what they say, which is
encrypted end to end. Reachable members do the same (join --no-relay turns it off), so a relay is
needed only where there are none.

After an hour, or the bytes of two models and 256 MB each way, a circuit is cut, and the members make
a new one. relay creates a key if there is none. It needs no tokens and earns nothing.`,
		Example: "  entrain relay my-run --listen 0.0.0.0:4001\n" +
			"  entrain relay my-run@chain.example.org --listen 0.0.0.0:4001 --public-ip 203.0.113.7 --key ./relay.key\n" +
			"  entrain relay my-run.ticket --listen 0.0.0.0:4001",
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
	reachFlags(cmd, &o.Reaching)
	logFlag(cmd, &o.log)
	return cmd
}

// relay serves as a relay until ctx ends.
func (c console) relay(ctx context.Context, o relaying) (err error) {
	if err := o.Reaching.Check(); err != nil {
		return err
	}
	secret, _, err := c.ownKey(o.keyFile)
	if err != nil {
		return err
	}
	o.endpoints = c.endpoints(o.endpoints)
	r, err := participant.NewRelay(ctx, participant.RelayOptions{
		Reaching: o.Reaching, Target: o.target, Endpoints: o.endpoints, Key: secret, Remember: c.remembered(), Log: o.log.Logger(c.err),
		Reached: func(addr string) { c.say("reached at %s", addr) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c.say("relay %s for run %q on chain %q; Ctrl-C ends it", secret.Public(), o.target.Run, r.Client.ChainID())
	return r.Run(ctx)
}
