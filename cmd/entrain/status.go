package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/view"
)

func statusCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [RUN | RUN@HOST | TICKET]",
		Short: "Show how a run stands, or all runs of a chain",
		Long: `Shows how a run stands, as the chain has it: phase, progress, the agreed hash of the parameters, and each
member with its points, its stake and what it could claim now; the treasury, how many results were checked,
and who was convicted of what. Without RUN, all runs of the chain in short.`,
		Example:           "  entrain status\n  entrain status my-run\n  entrain status my-run@chain.example.org\n  entrain status my-run --json | jq .members",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := onchain.ParseTargetOrChain(args, &chain)
			if err != nil {
				return err
			}
			return c.status(cmd.Context(), chain, to, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON objects")
	return cmd
}

// status shows one run, or all of them if none is named.
func (c console) status(ctx context.Context, chain []string, to onchain.Target, asJSON bool) (err error) {
	run := to.Run
	client, err := c.dial(ctx, chain, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if run == "" {
		runs, err := client.Runs(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			for _, r := range runs {
				if err := c.object(r); err != nil {
					return err
				}
			}
			return nil
		}
		if len(runs) == 0 {
			c.say("chain %q has no runs yet; create one with: entrain run create -f FILE", client.ChainID())
			return nil
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "run\tphase\tepoch\tstep\tmembers\n")
		for _, r := range runs {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", r.Name, r.Phase, r.Epoch, r.Step, r.Members)
		}
		return w.Flush()
	}
	p, err := onchain.GetRun(ctx, client, run)
	if err != nil {
		return err
	}
	if err := to.Check(client.ChainID(), p.Snapshot.State.ID()); err != nil {
		return err
	}
	now, err := client.Status(ctx)
	if err != nil {
		return err
	}
	report := newRunReport(client.ChainID(), p.Snapshot, now.TimeMs)
	if asJSON {
		return c.object(report)
	}
	return report.write(c.out)
}

// runReport is a run's state for people and programs.
type runReport struct {
	Run       string         `json:"run"`
	Chain     string         `json:"chain"`
	Height    uint64         `json:"height"`
	TimeMs    uint64         `json:"time_ms"`
	Phase     string         `json:"phase"`
	Pausing   bool           `json:"pausing"` // it will pause when the epoch has drained
	Epoch     uint32         `json:"epoch"`
	Round     uint32         `json:"round"`
	Step      uint32         `json:"step"`
	Steps     uint32         `json:"steps"`
	Params    string         `json:"params"`
	ParamsAt  uint32         `json:"params_round"`
	Rollbacks uint32         `json:"rollbacks"`
	Points    uint64         `json:"points"`
	Trust     trustReport    `json:"trust"`
	Windows   *windowsReport `json:"windows,omitempty"` // of a run that exchanges by buckets
	Scores    *scoresReport  `json:"scores,omitempty"`  // of a run with validators
	Members   []memberReport `json:"members"`
}

// trustReport is what the run knows of tokens and of cheats.
type trustReport struct {
	Percent     uint8             `json:"verification_percent"`
	Stake       uint64            `json:"stake"` // least of a member
	Rate        uint64            `json:"rate"`  // tokens for a point
	Treasury    uint64            `json:"treasury"`
	Escrow      uint64            `json:"escrow"` // treasury, stakes and rewards together
	Drawn       uint32            `json:"checks_drawn"`
	Passed      uint32            `json:"checks_passed"`
	Open        int               `json:"checks_open"`
	Disputes    uint32            `json:"disputes"` // ever
	Disputed    int               `json:"disputes_open"`
	Convicted   uint32            `json:"convictions"`      // ever
	Convictions []view.Conviction `json:"last_convictions"` // the newest last
}

type memberReport struct {
	Key       string `json:"key"`
	Status    string `json:"status"`
	Points    uint64 `json:"points"`
	Results   uint32 `json:"results"`
	Missed    uint8  `json:"missed"`
	Stake     uint64 `json:"stake"`
	Settled   uint64 `json:"settled"`    // points that no conviction takes any more
	Claimed   uint64 `json:"claimed"`    // of them, those that were paid
	Claimable uint64 `json:"claimable"`  // tokens, once the members before it in the list were paid
	ReleaseMs uint64 `json:"release_ms"` // when its stake is free; 0 while it is a member
	Payee     string `json:"payee"`
	Doubt     uint8  `json:"doubt"`  // 1 to 16: how likely its results are checked, against others'
	Passed    uint32 `json:"passed"` // checks
	*scoreReport
}

func newRunReport(chain string, s ledger.Snapshot, nowMs uint64) runReport {
	st := s.State
	config := st.Config()
	params, at := st.Params()
	r := runReport{
		Run: config.Name, Chain: chain, Height: s.Height, TimeMs: s.TimeMs,
		Phase: st.Phase().String(), Pausing: st.PausePending(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(), Steps: config.TotalSteps,
		Params: params.String(), ParamsAt: at, Rollbacks: st.Rollbacks(), Points: st.PointsTotal(), Members: []memberReport{},
		Trust: newTrustReport(st), Windows: newWindowsReport(st), Scores: newScoresReport(st),
	}
	owed, scores := onchain.NewClaims(s, nowMs), newScoreReports(st)
	for i := range st.Count() {
		m := st.Member(i)
		r.Members = append(r.Members, memberReport{
			Key: m.Key.String(), Status: m.Status.String(), Points: m.Points, Results: m.Results, Missed: m.Missed,
			Stake: m.Stake, Settled: m.Settled, Claimed: m.Claimed, Claimable: owed.Of(m.Key), ReleaseMs: m.ReleaseMs,
			Payee: m.Payee.String(), Doubt: m.Doubt, Passed: m.Passed, scoreReport: scores[i],
		})
	}
	return r
}

func newTrustReport(st coordinator.State) trustReport {
	config := st.Config()
	r := trustReport{
		Percent: config.VerificationPercent, Stake: config.Stake, Rate: config.Rate, Treasury: st.Treasury(), Escrow: st.Escrow(),
		Open: len(st.Checks()), Disputes: st.DisputesTotal(), Disputed: len(st.Disputes()), Convicted: st.ConvictionsTotal(),
		Convictions: []view.Conviction{},
	}
	r.Drawn, r.Passed = st.ChecksDrawn()
	for _, c := range st.Convictions() {
		r.Convictions = append(r.Convictions, view.NewConviction(c))
	}
	return r
}

func (r runReport) write(out io.Writer) error {
	fmt.Fprintf(out, "run         %s on chain %s\n", r.Run, r.Chain)
	pausing := ""
	if r.Pausing {
		pausing = "; it will pause when the epoch has drained"
	}
	fmt.Fprintf(out, "phase       %s, epoch %d, round %d%s\n", r.Phase, r.Epoch, r.Round, pausing)
	fmt.Fprintf(out, "step        %d of %d\n", r.Step, r.Steps)
	fmt.Fprintf(out, "parameters  %s, agreed at round %d\n", r.Params, r.ParamsAt)
	r.Trust.write(out)
	r.Windows.write(out)
	if r.Scores != nil {
		return r.Scores.write(out, r.Members)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nmember\tstatus\tpoints\tresults\tmissed\tchecks passed\tstake\tclaimable\n")
	for _, m := range r.Members {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n",
			short(m.Key), m.Status, m.Points, m.Results, m.Missed, m.Passed, thousands(m.Stake), thousands(m.Claimable))
	}
	return w.Flush()
}

func (r trustReport) write(out io.Writer) {
	if r.Percent > 0 {
		fmt.Fprintf(out, "checks      of %d %% of the results: %d drawn, %d passed, %d open; disputes: %d, %d open\n",
			r.Percent, r.Drawn, r.Passed, r.Open, r.Disputes, r.Disputed)
	}
	if r.Escrow > 0 || r.Stake > 0 || r.Rate > 0 {
		fmt.Fprintf(out, "tokens      treasury %s, pays %s a point; stake of a member at least %s\n", thousands(r.Treasury), thousands(r.Rate), thousands(r.Stake))
	}
	for _, c := range r.Convictions {
		fmt.Fprintf(out, "convicted   %s\n", c.Proof())
	}
}
