package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/runlog"
)

func reportCommand(c console) *cobra.Command {
	var chain []string
	var out, state string
	cmd := &cobra.Command{
		Use:   "report [RUN | RUN@HOST | TICKET] -o DIR",
		Short: "Save a run's report as HTML, charts and CSV",
		Long: `Saves a run as files that need no program: a page without scripts, each curve as SVG, and members,
rounds and curves as CSV.

The curves come from a participant's log: name its state directory with --state, which knows the run.
The run may be long over, and the chain gone. Without a log, the report has members, points and hashes,
from the chain.`,
		Example: "  entrain report -o ./report --state ~/.local/share/entrain/runs/my-run-3b6a27bc\n  entrain report my-run@203.0.113.5 -o ./report",
		Args: func(cmd *cobra.Command, args []string) error {
			if state != "" && len(args) == 0 {
				return nil
			}
			return needTarget(cmd, args)
		},
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the report goes with -o DIR")
			}
			var to onchain.Target
			var err error
			if len(args) == 0 {
				var head runlog.Head
				head, err = participant.LogOf("", state)
				to.Run = head.Name
			} else {
				to, err = onchain.ParseTarget(args[0], &chain)
			}
			if err != nil {
				return err
			}
			return c.report(cmd.Context(), to, chain, out, state)
		},
	}
	chainFlag(cmd, &chain)
	outputFlag(cmd, &out, "report")
	stateFlag(cmd, &state, "none")
	return cmd
}

func (c console) report(ctx context.Context, to onchain.Target, chain []string, out, state string) error {
	past, err := participant.OpenPast(ctx, state)
	if err != nil {
		return err
	}
	err = c.onRun(ctx, chain, to, func(client ledger.Chain, on onchain.Run) error { return past.Add(ctx, client, on) })
	switch {
	case err != nil && state == "":
		return err
	case err != nil:
		c.say("without what the chain says now: %v", err)
	}
	now := time.Now()
	r, s, err := past.Run(to.Run, now)
	if err != nil {
		return err
	}
	if err := report.Write(out, r, s, now); err != nil {
		return err
	}
	c.say("wrote %s, and a model card, README.md, beside it", filepath.Join(out, "index.html"))
	return nil
}
