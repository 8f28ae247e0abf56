package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	simmarket "github.com/entrain-network/entrain/sim/market"
)

// benchRewardsCommand measures what miners are paid by what they do.
func benchRewardsCommand(c console) *cobra.Command {
	var o simmarket.RewardsOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rewards",
		Short: "Measure what miners of a bucket run are paid, by how they behave",
		Long: `Lets one miner among honest ones behave in each of several ways, each in runs of its own: with all of its
data, with less, with other data, with copies, with noise and so on. Miners, validators, engine, codec,
coordinator and buckets are the real ones, the clock, the ledger and the stores are simulated. It shows
what validators saw of the miner and what it was paid relative to the honest ones: where works are
compared, because arithmetic is exact, and where they were not, so that cosines and losses alone decided.

The numbers are the same on every machine; it takes some minutes.`,
		Example: "  entrain bench rewards\n  entrain bench rewards --seeds 1 --windows 24 --json | jq '.rows[] | {behaviour, pay}'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Honest < 2 || o.Honest > rewardsMinersMax || o.Validators < 1 || o.Validators > rewardsMinersMax || o.Seeds < 1 || o.Seeds > rewardsMinersMax {
				return fmt.Errorf("--miners %d --validators %d --seeds %d: want 2 to %d miners, and 1 to %[4]d of the others", o.Honest, o.Validators, o.Seeds, rewardsMinersMax)
			}
			if o.Steps < rewardsWindowsMin || o.Steps > benchStepMax {
				return fmt.Errorf("--windows %d: want at least %d, three periods", o.Steps, rewardsWindowsMin)
			}
			o.Progress = func(what string) { c.say("running: %s", what) }
			return c.benchRewards(cmd.Context(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Honest, "miners", 5, "`number` of honest miners beside the one that is measured")
	f.IntVar(&o.Validators, "validators", 2, "`number` of validators")
	f.IntVar(&o.Seeds, "seeds", 2, "`runs` to average over")
	f.Uint32Var(&o.Steps, "windows", 40, "`windows` of a run")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

const (
	rewardsMinersMax  = 60 // far above what a measurement needs, all being computed in turn
	rewardsWindowsMin = 24
)

func (c console) benchRewards(ctx context.Context, o simmarket.RewardsOptions, asJSON bool) error {
	r, err := simmarket.MeasureRewards(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(r)
	}
	return writeRewards(c.out, r)
}

// writeRewards shows a line for each behaviour.
func writeRewards(out io.Writer, r simmarket.Rewards) error {
	fmt.Fprintf(out, "%d honest miners and one that is not, %d validators, %d windows, runs of each: %d; %s parameters\n", r.Honest, r.Validators, r.Windows, r.Seeds, thousands(uint64(r.Params)))
	fmt.Fprintf(out, "a miner writes %s bytes a window, of which its reveal is %s; the whole update in 32 bits is %s\n\n", thousands(r.Written), thousands(r.Reveal), thousands(r.Dense))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "behaviour\tcosine\tby tensor\tnorm\tadvantage\tscore\tpay\tpay, inexact\tloss\t")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.2f\t%+.2f\t%+.3f\t%.2f\t%.2f\t%.3f\t\n",
			row.Behaviour, row.Cosine, row.TensorCosine, row.Norm, row.Advantage, row.Score, row.Pay, row.PayInexact, row.Loss)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\nscore: the mean of single evaluations, works not compared. pay: relative to the mean of the honest miners; inexact: where\n"+
		"works are not compared. loss: held out, at the end.\n")
	return err
}
