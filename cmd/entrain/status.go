package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

func statusCommand(c console) *cobra.Command {
	var chain []string
	var asJSON, spec bool
	var peers string
	cmd := &cobra.Command{
		Use:   "status [RUN | RUN@HOST | TICKET]",
		Short: "Show how a run stands, all runs of a chain, or a participant's peers",
		Long: `Shows how a run stands on the chain: phase, progress, the agreed hash of the parameters, each member
with its points, its stake and the tokens it can claim, the treasury, the checks, and the convictions.
Without RUN it lists the runs of the chain. --spec prints the run's specification instead, as its owner
published it and every participant checks it.

--state DIR shows the peers of a participant on this machine instead, by its state directory: how it
reaches each, directly or through a relay, the round trip, the rates and totals of bytes, and the
weight of the peer's offences. A peer whose weight reaches 100 is banned for a quarter of an hour;
five are forgiven every minute. A running participant writes the file every five seconds.`,
		Example: "  entrain status\n  entrain status my-run\n  entrain status my-run@chain.example.org\n  entrain status my-run --json | jq .members\n" +
			"  entrain status my-run --spec > copy.toml\n" +
			"  entrain status --state ~/.local/share/entrain/runs/my-run-1f0c22e2",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if peers != "" {
				if len(args) > 0 {
					return errors.New("--state shows what a state directory holds: leave out RUN")
				}
				return c.peers(peers, asJSON)
			}
			to, err := onchain.ParseTargetOrChain(args, &chain)
			if err != nil {
				return err
			}
			if spec && to.Run == "" {
				return errors.New("--spec: say of which run")
			}
			return c.status(cmd.Context(), chain, to, spec, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	stateFlag(cmd, &peers, "none; shows its peers")
	cmd.Flags().BoolVar(&spec, "spec", false, "print the run's specification, TOML")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// status shows one run, or its specification, or all runs if none is named.
func (c console) status(ctx context.Context, chain []string, to onchain.Target, spec, asJSON bool) error {
	if to.Run == "" {
		return c.connected(ctx, chain, func(client ledger.Chain) error {
			runs, err := client.Runs(ctx)
			if err != nil {
				return err
			}
			if len(runs) == 0 && !asJSON {
				c.say("chain %q has no runs yet; create one with: entrain run create -f FILE", client.ChainID())
				return nil
			}
			return printAll(c, asJSON, runs, report.Runs)
		})
	}
	return c.onRun(ctx, chain, to, func(client ledger.Chain, on onchain.Run) error {
		if spec {
			_, err := c.out.Write(on.Text)
			return err
		}
		now, err := client.Status(ctx)
		if err != nil {
			return err
		}
		r := view.Look(client.ChainID(), on.Snapshot, now.TimeMs)
		names(ctx, client).Call(r.Members)
		return c.print(asJSON, r, func(w io.Writer) error { return report.Status(w, r) })
	})
}

// peers shows the peers of a participant.
func (c console) peers(dir string, asJSON bool) error {
	r, err := participant.ReadPeers(dir)
	if err != nil {
		return err
	}
	return c.print(asJSON, r, func(w io.Writer) error { return report.Peers(w, r.Time, r.Peers) })
}
