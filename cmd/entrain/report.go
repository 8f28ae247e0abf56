package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

func reportCommand(c console) *cobra.Command {
	var chain []string
	var out, state string
	cmd := &cobra.Command{
		Use:   "report RUN -o DIR",
		Short: "Save a run's report as HTML, charts and CSV",
		Long: `Saves a run as files that need no program: a page without scripts, each curve as SVG, and members,
rounds and curves as CSV.

The curves come from a participant's log: name its state directory with --state. The run may be long
over, and the chain gone. Without a log, the report has members, points and hashes, from the chain.`,
		Example: "  entrain report my-run -o ./report --state ~/.local/share/entrain/runs/my-run-3b6a27bc",
		Args:    needTarget, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the report goes with -o DIR")
			}
			to, err := onchain.ParseTarget(args[0], &chain)
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
	run := to.Run
	fold := view.New("")
	if state != "" {
		fold.NameOps(participant.OpNames(filepath.Join(state, participant.LogDir)))
		if err := runlog.Read(ctx, filepath.Join(state, participant.LogDir), fold.Add); err != nil {
			return fmt.Errorf("%w; --state is the state directory of a participant, which entrain join names", err)
		}
	}
	now := time.Now()
	chainID, text, err := c.foldChain(ctx, fold, to, chain)
	if err != nil {
		if state == "" {
			return err
		}
		c.say("without what the chain says now: %v", err)
		text = participant.Specification(filepath.Join(state, participant.LogDir))
	}
	r := fold.Run(now)
	switch {
	case r.Name == "":
		return fmt.Errorf("the log in %q does not tell of any run yet", state)
	case r.Name != run:
		return fmt.Errorf("the log in %q is of run %q, not of %q", state, r.Name, run)
	}
	if chainID != "" {
		r.Chain = chainID
	}
	var s *spec.Spec // nil if it is not at hand
	if parsed, err := spec.Parse(text, all.Kinds()); err == nil {
		s = &parsed
	}
	if err := report.Write(out, r, s, now); err != nil {
		return err
	}
	c.say("wrote %s, and a model card, README.md, beside it", filepath.Join(out, "index.html"))
	return nil
}

// foldChain adds what the chain says of a run now, and returns the chain's name and the run's
// specification.
func (c console) foldChain(ctx context.Context, fold *view.Fold, to onchain.Target, chain []string) (id string, text []byte, err error) {
	err = c.onRun(ctx, chain, to, func(client ledger.Chain, on onchain.Run) error {
		if log, now := fold.Run(time.Now()).ID, on.Snapshot.State.ID().String(); log != "" && log != now {
			return fmt.Errorf("the log is of run %s, but run %q of chain %q is %s", log, to.Run, client.ChainID(), now)
		}
		id, text = client.ChainID(), on.Text
		fold.NameOps(verify.OpNames(on.Text))
		fold.Called(view.NamesOn(ctx, client))
		fold.Add(runlog.Record{Time: time.Now(), Standing: runlog.Digest(on.Snapshot)})
		return nil
	})
	return id, text, err
}
