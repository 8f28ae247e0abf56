package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

func claimCommand(c console) *cobra.Command {
	var a acting
	var member string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "claim RUN",
		Short: "Have a run pay out what it owes you",
		Long: `Has a run pay out what it owes you: tokens for your settled points, at the run's rate and as far as its
treasury goes, your rewards, and your stake when you have left and it is free. Points settle when the
epoch ends in which they were made. What the treasury lacks can be claimed when it has been funded.

With --member anybody can have a member paid whose payee is a pool; the pool's lenders then collect.`,
		Example: "  entrain claim my-run\n  entrain claim my-run --member 1f0c...e2",
		Args:    needRun, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var of key.Public
			if member != "" {
				var err error
				if of, err = parseKey(member); err != nil {
					return fmt.Errorf("--member %w", err)
				}
			}
			var expected uint64
			var to key.Public
			err := c.act(cmd.Context(), a, func(client ledger.Chain, self key.Public) (body host.Body, err error) {
				body = host.ClaimFor{Run: args[0], Member: of}
				if of.IsZero() {
					of = self
					body = host.RunMessage{Run: args[0], Message: coordinator.Append(nil, coordinator.Claim{})}
				}
				s, err := onchain.GetSnapshot(cmd.Context(), client, args[0])
				if err != nil {
					return nil, err
				}
				chain, err := client.Status(cmd.Context())
				if err != nil {
					return nil, err
				}
				i, ok := s.State.Find(of)
				if !ok {
					return nil, fmt.Errorf("%s was never a member", of)
				}
				m := s.State.Member(i)
				if to = m.Payee; to.IsZero() {
					to = of
				}
				expected = onchain.NewClaims(s, chain.TimeMs).Of(of)
				return body, nil
			})
			if err != nil {
				return fmt.Errorf("claim from run %q: %w", args[0], err)
			}
			if asJSON {
				return c.object(struct {
					Run    string     `json:"run"`
					Member key.Public `json:"member"`
					Payee  key.Public `json:"payee"`
					Tokens uint64     `json:"tokens"` // that were owed when it was asked
				}{args[0], of, to, expected})
			}
			c.say("run %q paid %s to %s", args[0], tokens(expected), to)
			return nil
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&member, "member", "", "public `key` of a member whose payee is a pool, or you (default: your own)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}
