package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

// scoreOptions are score's flags.
type scoreOptions struct {
	target    onchain.Target
	endpoints []string
	period    uint32 // 0: the one settled last
	explain   string
	log       string
	asJSON    bool
}

func scoreCommand(c console) *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score RUN | RUN@HOST | TICKET",
		Short: "Show the scores and pay of a run's miners, and why",
		Long: `Shows, for a scoring period of a run with validators, the score and the pay of each member, and how
far each validator agreed with the others. All of it is from the chain, which keeps the period settled
last, the one being scored, and the running one.

--explain MEMBER goes through the calculation for one member: the score of each validator and its
weight, how these become one score, and how the score becomes tokens. The chain does not hold what a
validator saw of the member's results, window by window; if you have the validator's state directory,
name it with --state.`,
		Example: "  entrain score my-run\n  entrain score my-run --explain 3\n" +
			"  entrain score my-run --explain 7c0d84fe --state ~/.local/share/entrain/validators/my-run-1f2e3d4c --json",
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.target, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			return c.score(cmd.Context(), o)
		},
	}
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.StringVar(&o.explain, "explain", "", "`member` to explain, by its number or the beginning of its key")
	stateFlag(cmd, &o.log, "none; a validator's log tells what it saw of the member")
	f.Uint32Var(&o.period, "period", 0, "`period` to show (default: the one settled last)")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func (c console) score(ctx context.Context, o scoreOptions) error {
	if o.log != "" && o.explain == "" {
		return errors.New("--state: name a member with --explain MEMBER")
	}
	return c.onRun(ctx, o.endpoints, o.target, func(_ ledger.Chain, on onchain.Run) error {
		s := on.Snapshot.State
		p, err := view.FindPeriod(s, o.period)
		if err != nil {
			return err
		}
		if o.explain == "" {
			return c.print(o.asJSON, p, func(w io.Writer) error { return report.Period(w, *p) })
		}
		member, err := audit.FindMember(s, o.explain)
		if err != nil {
			return err
		}
		e := p.Explain(s, member)
		if o.log != "" {
			if e.Seen, err = participant.ReadScoreLog(o.log, s.Key(member), p.First, p.Last); err != nil {
				return err
			}
		}
		return c.print(o.asJSON, e, func(w io.Writer) error { return report.Explain(w, e) })
	})
}
