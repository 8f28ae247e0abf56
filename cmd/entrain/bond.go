package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

func bondCommand(c console) *cobra.Command {
	var a acting
	var member, from string
	cmd := &cobra.Command{
		Use:   "bond RUN AMOUNT",
		Short: "Add to the stake of a run's member",
		Long: `Adds tokens of yours to your stake in a run, or to that of another member. A member who is convicted of
cheating loses its stake. Who leaves gets it back when the run's unbonding time is over, with: entrain
claim. It is paid to whom the member named when it joined.

With --pool the tokens come from a pool that you act for, and the member must be one that is paid there.
To join with a stake, use: entrain join RUN --stake N.`,
		Example: "  entrain bond my-run 500\n  entrain bond my-run 500 --pool our-pool",
		Args:    needTokens("run"), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := parseTokens(args[1])
			if err != nil {
				return err
			}
			var of key.Public
			if member != "" {
				if of, err = parseKey(member); err != nil {
					return fmt.Errorf("--member %w", err)
				}
			}
			err = c.act(cmd.Context(), a, func(_ ledger.Chain, self key.Public) (host.Body, error) {
				if of.IsZero() {
					of = self
				}
				return host.RunMessage{Run: args[0], Value: amount, From: from, Message: coordinator.Append(nil, coordinator.Deposit{Member: of})}, nil
			})
			if err != nil {
				return fmt.Errorf("bond %s to run %q: %w", tokens(amount), args[0], err)
			}
			c.say("%s added to the stake of %s in run %q", tokens(amount), short(of.String()), args[0])
			return nil
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&member, "member", "", "public `key` of the member (default: your own)")
	cmd.Flags().StringVar(&from, "pool", "", "`pool` that the tokens come from (default: your own account)")
	return cmd
}
