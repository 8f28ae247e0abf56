package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/view"
)

// numericsFlags are the flags of lab numerics.
type numericsFlags struct {
	runFlags
	seeds int
}

// numericsCommand compares arithmetics.
func numericsCommand(c console) *cobra.Command {
	var o numericsFlags
	cmd := &cobra.Command{
		Use:   "numerics",
		Short: "Compare what models learn with linear products in binary32 and in 8 bits",
		Long: `Trains one model on the same tokens with numerics "exact" and "exact8", from several seeds: by
AdamW, and by the codecs distro and sparseloco with 8 members. Learning rates are those that are
best in binary32 for the first seed, or those of --rates. The table shows the mean held-out loss
after parts of the tokens, the spread of the last over the seeds, and how far means are from those
of binary32.

The numbers are the same on every machine. --results FILE keeps each run, and beside it the state
of the one in progress, every five minutes. Called again, the command continues it and does the
missing ones; with --partial, it prints the table of what there is.`,
		Example: "  lab numerics --results numerics.jsonl\n  lab numerics --model 10m --data corpus.jsonl --steps 24000 --results numerics.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.numerics(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	o.runFlags.add(cmd, "nano")
	f.IntVar(&o.seeds, "seeds", 3, "`number` of seeds")
	f.BoolVar(&o.Partial, "partial", false, "print what --results holds, and train nothing")
	return cmd
}

func (c console) numerics(ctx context.Context, o numericsFlags) error {
	if o.seeds < 1 || o.seeds > numberMax {
		return fmt.Errorf("--seeds %d: want 1 to %d", o.seeds, numberMax)
	}
	if o.Partial && o.Results == "" {
		return errors.New("--partial: which --results?")
	}
	if err := c.prepareRuns(&o.runFlags, study.LearningRows([]int{8}, false)); err != nil {
		return err
	}
	r, err := study.MeasureNumerics(ctx, study.NumericsOptions{LearningOptions: o.LearningOptions, Seeds: o.seeds})
	if err != nil {
		return err
	}
	return writeNumerics(c.out, r)
}

// writeNumerics writes a comparison for people. Columns of which a partial comparison has nothing
// are empty.
func writeNumerics(out io.Writer, r study.NumericsComparison) error {
	if len(r.Rows) == 0 {
		_, err := fmt.Fprintln(out, "No run has trained an eighth of its tokens.")
		return err
	}
	fmt.Fprintf(out, "%s parameters, %s tokens, %d seeds; loss on %s held-out tokens\n\n",
		view.Thousands(uint64(r.Params)), view.Thousands(r.Tokens), r.Seeds, view.Thousands(r.HeldOut))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "method\tmembers\tnumerics\tseeds\trate\t1/8\t1/4\t1/2\t3/4\tall\tspread\tto exact\t")
	for _, x := range r.Rows {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.2g\t", x.Method, x.Members, x.Numerics, len(x.Losses), x.Rate)
		for _, eighth := range []int{1, 2, 4, 6, 8} {
			if len(x.Mean) >= eighth {
				fmt.Fprintf(w, "%.4f", x.Mean[eighth-1])
			}
			fmt.Fprint(w, "\t")
		}
		if last := len(x.Mean) - 1; last >= 0 {
			fmt.Fprintf(w, "%.4f", x.Spread[last])
		}
		fmt.Fprint(w, "\t")
		if last := len(x.Relative) - 1; last >= 0 {
			fmt.Fprintf(w, "%+.2f %%", 100*x.Relative[last])
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}
