package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/view"
)

// witnessesCommand prints how safe a committee of witnesses is.
func witnessesCommand(c console) *cobra.Command {
	witnesses, rounds := uint32(32), 100_000.0
	cmd := &cobra.Command{
		Use:   "witnesses",
		Short: "Compute how likely colluding members capture the witnesses of a round",
		Long: `Computes, for runs of several sizes, how likely the members that collude are a quorum of a round's
witnesses (captured), or leave the others too few for one (blocked), and how likely they settle wrong
parameters within all rounds: if one captured committee sufficed, and if two in a row must name them, as they
must. entrain run create refuses a run in which 30 % do so with a probability above 0.001.

Then, for runs that make updates in slices, how likely enough of a slice's aggregators collude that members take
a slice of their invention within all rounds, or that in one round they keep results out of it or let in what
nobody else has (denied); and how many slices of a round each witness has to sum because of them (recounted).`,
		Example: "  lab witnesses\n  lab witnesses --witnesses 8 --rounds 1000",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "members\tcolluding\ta round is captured\tblocked\twrong parameters in %s rounds, one committee\ttwo in a row\n", view.Thousands(uint64(rounds)))
			for _, n := range []uint32{64, 256, 1024, 10_000} {
				for _, percent := range []uint32{10, 20, 30} {
					d := founding.Committee{Members: n, Colluding: n * percent / 100, Witnesses: min(witnesses, n)}
					if err := d.Fault(); err != nil {
						return err
					}
					fmt.Fprintf(w, "%s\t%d %%\t%.1g\t%.1g\t%.1g\t%.1g\n", view.Thousands(uint64(n)), percent,
						d.Captured(), d.Blocked(), d.Settled(rounds, 1), d.Settled(rounds, 2))
				}
			}
			if err := w.Flush(); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "\n")
			fmt.Fprintf(w, "members\tcolluding\taggregators\tan invented slice in %s rounds\ta round is denied\trecounted\n", view.Thousands(uint64(rounds)))
			for _, n := range []uint32{1024, 10_000} {
				for _, percent := range []uint32{10, 20, 30} {
					for _, aggregators := range []uint32{16, 32, 64, 128, 192} {
						g := founding.Groups{Members: n, Colluding: n * percent / 100, Aggregators: aggregators}
						fmt.Fprintf(w, "%s\t%d %%\t%d\t%.1g\t%.1g\t%.1g\n", view.Thousands(uint64(n)), percent, aggregators,
							g.Invented(rounds), g.Denied(), g.Recounted())
					}
				}
			}
			return w.Flush()
		},
	}
	cmd.Flags().Uint32Var(&witnesses, "witnesses", witnesses, "`number` of witnesses elected in a round")
	cmd.Flags().Float64Var(&rounds, "rounds", rounds, "`number` of rounds")
	return cmd
}
