package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

func fundCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "fund RUN AMOUNT",
		Short: "Give tokens to a run's treasury",
		Long: `Gives tokens of yours to a run's treasury, which pays its members for each point, at the rate that the
run's specification says (trust.rate). They cannot be taken back, not by the run's owner either.`,
		Example: "  entrain fund my-run 1000000",
		Args:    needTokens("run"), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := parseTokens(args[1])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) {
				return host.RunMessage{Run: args[0], Value: amount, Message: coordinator.Append(nil, coordinator.Fund{})}, nil
			})
			if err != nil {
				return fmt.Errorf("fund run %q: %w", args[0], err)
			}
			c.say("gave %s to the treasury of run %q", tokens(amount), args[0])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}
