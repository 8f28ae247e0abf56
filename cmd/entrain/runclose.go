package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

func runCloseCommand(c console) *cobra.Command {
	var a acting
	var list, asJSON bool
	var refund string
	cmd := &cobra.Command{
		Use:   "close RUN | RUN@HOST",
		Short: "End a run, and remove it once everyone can be paid",
		Long: `Ends a run; in the middle of an epoch it first drains. Call it again to remove a finished run from
the chain, a day after its end and when its members' stakes are free. Removal pays all unclaimed
stakes, rewards and points to members and validators, and the rest of the treasury and the deposit
to you. If the treasury is too small, each point gets the same part of it.

A receipt of the run remains (--list), and its name is never used again. The chain itself ends a run
that has not changed for 30 days, and removes one that has been finished for as long. Only the owner
may do so earlier.

--refund only takes tokens back from the treasury of a paused or finished run. The treasury keeps
what it needs for unpaid points and unsettled periods.`,
		Example: "  entrain run close my-run\n  entrain run close my-run --refund 1000000\n  entrain run close --list",
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return noArgs(cmd, args)
			}
			return needRun(cmd, args)
		},
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return c.listClosed(cmd.Context(), a.chain, asJSON)
			}
			run, err := a.on(args[0])
			if err != nil {
				return err
			}
			if refund != "" {
				return c.refund(cmd.Context(), a, run, refund)
			}
			over := false
			err = c.act(cmd.Context(), a, func(l ledger.Chain, _ key.Public) (body host.Body, err error) {
				body, over, err = founding.Close(cmd.Context(), l, run)
				return body, err
			})
			if err != nil {
				return fmt.Errorf("close run %q: %w", run, err)
			}
			if over {
				c.say("closed run %q; everybody is paid", run)
			} else {
				c.say("run %q ends; when it is over for a day, and stakes are free, say again: entrain run close %s", run, args[0])
			}
			return nil
		},
	}
	a.flags(cmd)
	cmd.Flags().StringVar(&refund, "refund", "", "`tokens` to take back from the treasury, and nothing else")
	cmd.Flags().BoolVar(&list, "list", false, "list the receipts of closed runs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --list: print a JSON object for each")
	return cmd
}

// listClosed prints the receipts of closed runs.
func (c console) listClosed(ctx context.Context, chain []string, asJSON bool) error {
	return c.connected(ctx, chain, func(client ledger.Chain) error {
		list, err := client.Closed(ctx)
		if err != nil {
			return err
		}
		return printAll(c, asJSON, list, report.Closed)
	})
}

// refund takes tokens back from a run's treasury.
func (c console) refund(ctx context.Context, a acting, run, text string) error {
	amount, err := onchain.ParseTokens(text)
	if err != nil {
		return err
	}
	return c.send(ctx, a, host.ToRun(run, coordinator.Refund{Amount: amount}), fmt.Sprintf("take tokens back from run %q", run),
		fmt.Sprintf("took %s back from the treasury of run %q", view.Tokens(amount), run))
}
