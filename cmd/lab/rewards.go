package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/market"
	"github.com/entrain-network/entrain/view"
)

// rewardsCommand measures what miners earn by what they do.
func rewardsCommand(c console) *cobra.Command {
	var o market.RewardsOptions
	cmd := &cobra.Command{
		Use:   "rewards",
		Short: "Measure what miners earn, by how they behave",
		Long: `Runs simulations in which one miner behaves differently from the honest others: it trains on all
of its data, on less, or on other data, or sends copies, noise and so on. Miners, validators, engine,
codec and coordinator are the real ones; the clock, the ledger and the stores are simulated. Shows
what validators measured of the miner, and what it earned relative to the honest ones: first where
validators compare gradient hashes, because arithmetic is exact, then where only cosines and losses
decide (inexact).

The numbers are the same on every machine. It takes about ten minutes.`,
		Example: "  lab rewards\n  lab rewards --seeds 1 --windows 24",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Honest < 2 || o.Honest > rewardsMinersMax || o.Validators < 1 || o.Validators > rewardsMinersMax || o.Seeds < 1 || o.Seeds > rewardsMinersMax {
				return fmt.Errorf("--miners %d --validators %d --seeds %d: want 2 to %d miners, and 1 to %[4]d of the others", o.Honest, o.Validators, o.Seeds, rewardsMinersMax)
			}
			if o.Steps < rewardsWindowsMin || o.Steps > numberMax {
				return fmt.Errorf("--windows %d: want at least %d, three periods", o.Steps, rewardsWindowsMin)
			}
			o.Progress = func(what string) { c.say("running: %s", what) }
			r, err := market.MeasureRewards(cmd.Context(), o)
			if err != nil {
				return err
			}
			return writeRewards(c.out, r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Honest, "miners", 5, "`number` of honest miners beside the one that is measured")
	f.IntVar(&o.Validators, "validators", 2, "`number` of validators")
	f.IntVar(&o.Seeds, "seeds", 2, "`runs` to average over")
	f.Uint32Var(&o.Steps, "windows", 40, "`windows` of a run")
	return cmd
}

const (
	rewardsMinersMax  = 60 // far above what a measurement needs, all being computed in turn
	rewardsWindowsMin = 24
)

// writeRewards shows a line for each behaviour.
func writeRewards(out io.Writer, r market.Rewards) error {
	fmt.Fprintf(out, "%d honest miners and one that is not, %d validators, %d windows, runs of each: %d; %s parameters\n", r.Honest, r.Validators, r.Windows, r.Seeds, view.Thousands(uint64(r.Params)))
	fmt.Fprintf(out, "a miner writes %s bytes a window, of which its reveal is %s; the whole update in 32 bits is %s\n\n", view.Thousands(r.Written), view.Thousands(r.Reveal), view.Thousands(r.Dense))
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
