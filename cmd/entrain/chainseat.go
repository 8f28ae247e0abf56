package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

func chainSeatCommand(c console) *cobra.Command {
	var a acting
	var home string
	cmd := &cobra.Command{
		Use:   "seat stake TOKENS | add REPLICA | remove REPLICA | leave REPLICA",
		Short: "Stake for a replica's seat, vote on one, or give one up",
		Long: fmt.Sprintf(`A replica with a seat votes on blocks. Operators act for their replicas.

stake puts tokens of your account behind the replica in --home. The first time, that makes you its operator
and the replica a candidate for a seat. The tokens give its votes weight once it has one, and all of them are
lost if it is shown to have voted twice for one block: never run two copies of a replica's keys.

add and remove vote, with the weight of all your replicas that have a seat, that a candidate be given one, or
that a replica lose its own. When more than two thirds of the weight want the same, it is done, two blocks
later. A vote stands until you vote otherwise.

leave gives up a replica's seat. Two blocks later it stops voting and can be stopped. Its tokens
stay locked for %d days, in which a double vote can still be proven; then the same command returns
them to your account. A candidate's tokens return at once.`, host.UnbondMs/(24*3600*1000)),
		Example: "  entrain chain seat stake 1000000 --home ./replica\n  entrain chain seat add 3f2a...9c\n" +
			"  entrain chain seat remove 3f2a...9c --chain https://a.example.org\n  entrain chain seat leave 3f2a...9c",
		Args:      between(2, 2, "what to do, and the key of a replica or an amount"),
		ValidArgs: []string{"stake", "add", "remove", "leave"}, SuggestFor: []string{"stake", "vote", "leave"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "stake" {
				return c.stakeReplica(cmd, a, home, args[1])
			}
			k, err := onchain.ParseKey(args[1])
			if err != nil {
				return fmt.Errorf("replica %w", err)
			}
			switch args[0] {
			case "add", "remove":
				return c.send(cmd.Context(), a, host.Vote{Replica: k, Seated: args[0] == "add"}, "vote", fmt.Sprintf("voted to %s the seat of replica %v", args[0], k))
			case "leave":
				return c.send(cmd.Context(), a, host.Leave{Replica: k}, "leave", fmt.Sprintf("replica %v leaves", k))
			}
			return fmt.Errorf("%q: want stake, add, remove or leave", args[0])
		},
	}
	c.homeFlag(cmd, &home)
	a.flags(cmd)
	return cmd
}

// stakeReplica puts tokens behind the replica in home.
func (c console) stakeReplica(cmd *cobra.Command, a acting, home, amount string) error {
	n, err := onchain.ParseTokens(amount)
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
		return replica.Stake(self, n), nil
	})
	if err == nil {
		c.say("%d tokens are behind replica %v; the others give it a seat with: entrain chain seat add %v", n, replica.Key, replica.Key)
	}
	return err
}
