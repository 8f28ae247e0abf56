package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
)

func statusCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show how a run stands, or all runs of a chain",
		Long: `Shows how a run stands, as the chain has it: phase, progress, the agreed hash of the parameters, and each
member with its points. Without RUN, all runs of the chain in short.`,
		Example:           "  entrain status\n  entrain status my-run\n  entrain status my-run --json | jq .members",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			run := ""
			if len(args) > 0 {
				run = args[0]
			}
			return c.status(cmd.Context(), chain, run, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON objects")
	return cmd
}

// status shows one run, or all of them if run is "".
func (c console) status(ctx context.Context, chain []string, run string, asJSON bool) (err error) {
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
	p, err := getRun(ctx, client, run)
	if err != nil {
		return err
	}
	report := newRunReport(client.ChainID(), p.snapshot)
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
	Members   []memberReport `json:"members"`
}

type memberReport struct {
	Key     string `json:"key"`
	Status  string `json:"status"`
	Points  uint64 `json:"points"`
	Results uint32 `json:"results"`
	Missed  uint8  `json:"missed"`
}

func newRunReport(chain string, s ledger.Snapshot) runReport {
	st := s.State
	config := st.Config()
	params, at := st.Params()
	r := runReport{
		Run: config.Name, Chain: chain, Height: s.Height, TimeMs: s.TimeMs,
		Phase: st.Phase().String(), Pausing: st.PausePending(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(), Steps: config.TotalSteps,
		Params: params.String(), ParamsAt: at, Rollbacks: st.Rollbacks(), Points: st.PointsTotal(), Members: []memberReport{},
	}
	for i := range st.Count() {
		m := st.Member(i)
		r.Members = append(r.Members, memberReport{m.Key.String(), m.Status.String(), m.Points, m.Results, m.Missed})
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
	fmt.Fprintf(out, "parameters  %s, agreed at round %d\n\n", r.Params, r.ParamsAt)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "member\tstatus\tpoints\tresults\tmissed\n")
	for _, m := range r.Members {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", short(m.Key), m.Status, m.Points, m.Results, m.Missed)
	}
	return w.Flush()
}
