package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
)

func chainReplicasCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replicas",
		Short: "Show who keeps the chain, and who wants to",
		Long: `Shows the chain's replicas: those with a seat, which vote on blocks with the weight shown, candidates, and
those that have left. The list is proven by their signatures.`,
		Example: "  entrain chain replicas\n  entrain chain replicas --chain https://a.example.org --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			list, err := client.Replicas(cmd.Context())
			if err := errors.Join(err, client.Close()); err != nil {
				return err
			}
			if asJSON {
				return c.object(list)
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "REPLICA\tSEAT\tWEIGHT\tSTAKE\tOPERATOR\tVOTES FOR A CHANGE")
			for _, r := range list {
				fmt.Fprintf(w, "%v\t%s\t%d\t%d\t%.8s\t%d\n", r.Key, r.Seat, r.Power, r.Stake, r.Operator.String(), len(r.Votes))
			}
			return w.Flush()
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func chainStakeCommand(c console) *cobra.Command {
	var a acting
	var home string
	cmd := &cobra.Command{
		Use:   "stake TOKENS",
		Short: "Put tokens behind a replica, as its operator",
		Long: `Puts tokens of your account behind the replica in --home. The first time, that makes you its operator and the
replica a candidate for a seat. The tokens give its votes weight once it has one, and all of them are lost if
it is shown to have voted twice for one block: never run two copies of a replica's keys.

They come back with "entrain chain leave".`,
		Example: "  entrain chain stake 1000000 --home ./replica",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := parseTokens(args[0])
			if err != nil {
				return err
			}
			if home == "" {
				return errNoHome
			}
			replica, err := comet.ReadIdentity(home)
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(client ledger.Chain, self key.Public) (host.Body, error) {
				if client.ChainID() != replica.Chain {
					return nil, fmt.Errorf("the replica in %s is of chain %q, --chain leads to %q", home, replica.Chain, client.ChainID())
				}
				return replica.Stake(self, amount), nil
			})
			if err == nil {
				c.say("%d tokens are behind replica %v; the others give it a seat with: entrain chain vote add %v", amount, replica.Key, replica.Key)
			}
			return err
		},
	}
	c.homeFlag(cmd, &home)
	a.flags(cmd)
	return cmd
}

func chainVoteCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "vote add|remove REPLICA",
		Short: "Vote on a replica's seat, as the operator of others",
		Long: `Votes, with the weight of all your replicas that have a seat, that a candidate be given one, or that a replica
lose its own. When more than two thirds of the weight want the same, it is done, two blocks later. A vote
stands until you vote otherwise.`,
		Example: "  entrain chain vote add 3f2a...9c\n  entrain chain vote remove 3f2a...9c --chain https://a.example.org",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "add" && args[0] != "remove" {
				return fmt.Errorf("vote %q: want add or remove", args[0])
			}
			k, err := parseKey(args[1])
			if err != nil {
				return fmt.Errorf("replica %w", err)
			}
			return c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) {
				return host.Vote{Replica: k, Seated: args[0] == "add"}, nil
			})
		},
	}
	a.flags(cmd)
	return cmd
}

func chainLeaveCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "leave REPLICA",
		Short: "Give up a replica's seat, and get back what is behind it",
		Long: fmt.Sprintf(`Gives up the replica's seat, as its operator: two blocks later it votes no more, and can be stopped. What is
behind it stays locked for %d days, in which it can still be shown to have voted twice; the same command then
brings it back to your account. A candidate's comes back at once.`, host.UnbondMs/(24*3600*1000)),
		Example: "  entrain chain leave 3f2a...9c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := parseKey(args[0])
			if err != nil {
				return fmt.Errorf("replica %w", err)
			}
			return c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) { return host.Leave{Replica: k}, nil })
		},
	}
	a.flags(cmd)
	return cmd
}

func chainTrustCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Print the chain's address with a header that others may believe",
		Long: `Prints the addresses of --chain, each followed by #HEIGHT:HASH, the newest header of the chain that this
machine believes. Who gets them from you in a way that nobody can tamper with, and uses them with --chain, in
ENTRAIN_CHAIN, or with "entrain chain join", cannot be shown another chain.

It is good for five days: who has not looked at the chain for longer cannot know who keeps it by now.`,
		Example: "  entrain chain trust\n  entrain chain trust --chain https://a.example.org --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			_, err = client.Replicas(cmd.Context()) // any proven answer brings the newest header
			anchor, made, ok := client.Trusted()
			if err := errors.Join(err, client.Close()); err != nil || !ok {
				return err
			}
			if asJSON {
				return c.object(map[string]any{"chain": client.ChainID(), "height": anchor.Height, "hash": anchor.Hash, "time": made.Format(time.RFC3339)})
			}
			for _, e := range client.Endpoints() {
				if _, err := fmt.Fprintf(c.out, "%s#%v\n", e, anchor); err != nil {
					return err
				}
			}
			return nil
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
