package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

// statusOptions are status's flags.
type statusOptions struct {
	target       onchain.Target
	chain        []string
	state        string
	spec, scores bool
	period       uint32 // 0: the one settled last
	explain      string
	asJSON       bool
}

func statusCommand(c console) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [RUN | RUN@HOST | TICKET]",
		Short: "Show how a run stands, its scores, all runs of a chain, or a participant's peers",
		Long: `Shows how a run stands on the chain: phase, progress, the agreed hash of the parameters, each member
with its points, its stake and the tokens it can claim, the treasury, the checks, and the convictions.
Without RUN it lists the runs of the chain. --spec prints the run's specification instead, as its owner
published it and every participant checks it.

--scores shows, for a scoring period of a run with validators, the score and the pay of each member, and how
far each validator agreed with the others. All of it is from the chain, which keeps the period settled last,
the one being scored, and the running one. --explain MEMBER goes through the calculation for one member: the
score of each validator and its weight, how these become one score, and how the score becomes tokens. The
chain does not hold what a validator saw of the member's results, window by window; if you have the
validator's state directory, name it with --state.

--state DIR alone shows the peers of a participant on this machine instead, by its state directory: how it
reaches each, directly or through a relay, the round trip, the rates and totals of bytes, and the
weight of the peer's offences. A peer whose weight reaches 100 is banned for a quarter of an hour;
five are forgiven every minute. A running participant writes the file every five seconds.`,
		Example: "  entrain status\n  entrain status my-run\n  entrain status my-run@chain.example.org\n  entrain status my-run --json | jq .members\n" +
			"  entrain status my-run --spec > copy.toml\n" +
			"  entrain status my-run --scores\n  entrain status my-run --explain 3\n" +
			"  entrain status my-run --explain 7c0d84fe --state ~/.local/share/entrain/validators/my-run-1f2e3d4c --json\n" +
			"  entrain status --state ~/.local/share/entrain/runs/my-run-1f0c22e2",
		Args:              between(0, 1, "one run at most"),
		ValidArgsFunction: c.completeRuns, SuggestFor: []string{"score", "scores", "peers"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.scores = o.scores || o.explain != ""
			switch {
			case o.period != 0 && !o.scores:
				return errors.New("--period is for --scores and --explain")
			case o.state != "" && o.explain == "" && len(args) > 0:
				return errors.New("--state shows what a state directory holds: leave out RUN, or name a member with --explain MEMBER")
			case o.state != "" && o.explain == "":
				return c.peers(o.state, o.asJSON)
			}
			if o.target, err = onchain.ParseTargetOrChain(args, &o.chain); err != nil {
				return err
			}
			if (o.spec || o.scores) && o.target.Run == "" {
				return errors.New("--spec, --scores and --explain need the name of a run")
			}
			return c.status(cmd.Context(), o)
		},
	}
	chainFlag(cmd, &o.chain)
	stateFlag(cmd, &o.state, "none; shows its peers, or with --explain what a validator saw of the member")
	f := cmd.Flags()
	f.BoolVar(&o.spec, "spec", false, "print the run's specification, TOML")
	f.BoolVar(&o.scores, "scores", false, "show the scores and the pay of a period")
	f.Uint32Var(&o.period, "period", 0, "`period` to show (default: the one settled last)")
	f.StringVar(&o.explain, "explain", "", "`member` whose score to explain, by its number or the beginning of its key")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// status shows one run, what the flags ask of it, or all runs if none is named.
func (c console) status(ctx context.Context, o statusOptions) error {
	if o.target.Run == "" {
		return c.connected(ctx, o.chain, func(client ledger.Chain) error {
			runs, err := client.Runs(ctx)
			if err != nil {
				return err
			}
			if len(runs) == 0 && !o.asJSON {
				c.say("chain %q has no runs yet; create one with: entrain run create -f FILE", client.ChainID())
				return nil
			}
			return printAll(c, o.asJSON, runs, report.Runs)
		})
	}
	return c.onRun(ctx, o.chain, o.target, func(client ledger.Chain, on onchain.Run) error {
		switch {
		case o.spec:
			_, err := c.out.Write(on.Text)
			return err
		case o.scores:
			return c.scores(on.Snapshot.State, o)
		}
		now, err := client.Status(ctx)
		if err != nil {
			return err
		}
		r := view.Look(client.ChainID(), on.Snapshot, now.TimeMs)
		view.NamesOn(ctx, client).Call(r.Members)
		return c.print(o.asJSON, r, func(w io.Writer) error { return report.Status(w, r) })
	})
}

// scores shows a scoring period, or explains the score of a member in it.
func (c console) scores(s coordinator.State, o statusOptions) error {
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
	if o.state != "" {
		if e.Seen, err = participant.ReadScoreLog(o.state, s.Key(member), p.First, p.Last); err != nil {
			return err
		}
	}
	return c.print(o.asJSON, e, func(w io.Writer) error { return report.Explain(w, e) })
}

// peers shows the peers of a participant.
func (c console) peers(dir string, asJSON bool) error {
	r, err := participant.ReadPeers(dir)
	if err != nil {
		return err
	}
	return c.print(asJSON, r, func(w io.Writer) error { return report.Peers(w, r.Time, r.Peers) })
}
