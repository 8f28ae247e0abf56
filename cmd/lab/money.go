package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/money"
)

// moneyCommand hunts for tokens made from nothing.
func moneyCommand(c console) *cobra.Command {
	o := money.Options{First: 1}
	cmd := &cobra.Command{
		Use:   "fuzz-money",
		Short: "Hunt for ways to gain tokens without work",
		Long: `Plays one episode after another, each from its seed: 20 keys send random transactions to a chain with
a funded run, an honest member and an honest lender; they work, check each other's results and argue
about them. At the end everything is claimed and closed. If the 20 keys then have more tokens than they
began with, beyond the pay for accepted work less what convictions cost, if the honest member is
convicted, or if the host panics, that is a finding, which is reduced to the shortest script that still
makes it.
The exit status is 1 if there are findings.`,
		Example: "  lab fuzz-money --for 1h\n  lab fuzz-money --episodes 200 --seed 1000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Limit <= 0 && o.Episodes == 0 {
				return fmt.Errorf("give the hunt an end: --for DURATION or --episodes N")
			}
			if err := checkThreads(o.Workers); err != nil {
				return err
			}
			o.Observe = func(f money.Finding) {
				b, _ := json.MarshalIndent(f, "", "  ")
				c.say("FOUND %s", b)
			}
			start := time.Now()
			sum := money.Run(cmd.Context(), o)
			if _, err := fmt.Fprintf(c.out, "%d episodes, %d transactions, %.0f an hour with %d workers\naccepted: %v\n%d findings\n",
				sum.Episodes, sum.Transactions, float64(sum.Transactions)/time.Since(start).Hours(), o.Workers, sum.Accepted, len(sum.Findings)); err != nil {
				return err
			}
			if len(sum.Findings) > 0 {
				return fmt.Errorf("%d findings", len(sum.Findings))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.Limit, "for", 0, "`duration` of the hunt")
	f.Uint64Var(&o.Episodes, "episodes", 0, "number of episodes (default: as many as fit into --for)")
	f.Uint64Var(&o.First, "seed", o.First, "seed of the first episode")
	f.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "episodes to play at the same time")
	return cmd
}
