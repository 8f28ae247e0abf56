package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/exact"
)

// benchLearningCommand compares ways to train together.
func benchLearningCommand(c console) *cobra.Command {
	var o bench.LearningOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "learning",
		Short: "Compare what models learn by each way of training together",
		Long: `Trains the demo's model on the demo's text again and again, always for the same number of tokens: by AdamW on
whole gradients, which is what one machine with all the data would do, and by each codec with several numbers
of members. Of several learning rates the best counts. It shows the held-out loss after each quarter of the
tokens, the last one relative to AdamW's, and what a member uploads.

The numbers are the same on every machine. A run takes about a minute of one core, and there are three for
each row.`,
		Example: "  entrain bench learning\n  entrain bench learning --members 4 --members 32 --steps 600 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.benchLearning(cmd.Context(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Members, "members", []int{1, 4, 8, 16}, "`numbers` of members")
	f.IntVar(&o.Steps, "steps", 300, "`steps` that a run trains, of --batch sequences each")
	f.IntVar(&o.Batch, "batch", 16, "`sequences` of a step, of all members together")
	f.IntVar(&o.Inner, "inner", 5, "`steps` that members of sparseloco train between two rounds")
	f.IntVar(&o.RatesEach, "rates", 3, "`number` of learning rates tried of each run")
	f.IntVar(&o.Threads, "threads", min(2, runtime.GOMAXPROCS(0)), "threads")
	f.StringVar(&o.Text, "data", "", "text `file` to train on (default: Newton's Opticks, from the Go installation)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	_ = cmd.MarkFlagFilename("data")
	return cmd
}

// learningRatesMax is more than anybody waits for.
const learningRatesMax = 9

func (c console) benchLearning(ctx context.Context, o bench.LearningOptions, asJSON bool) error {
	for _, n := range o.Members {
		if n < 1 || n > o.Batch {
			return fmt.Errorf("--members %d: want 1 to as many as --batch %d has sequences", n, o.Batch)
		}
	}
	switch {
	case o.Batch > benchStepMax || o.Steps < 8 || o.Steps > benchStepMax:
		return fmt.Errorf("--steps %d --batch %d: want 8 to %d steps and at most as many sequences", o.Steps, o.Batch, benchStepMax)
	case o.Inner < 1 || o.Inner > o.Steps/8:
		return fmt.Errorf("--inner %d: want at least 1, and 8 rounds in --steps %d", o.Inner, o.Steps)
	case o.RatesEach < 1 || o.RatesEach > learningRatesMax:
		return fmt.Errorf("--rates %d: want 1 to %d", o.RatesEach, learningRatesMax)
	case o.Threads < 1 || o.Threads > exact.MaxWorkers:
		return fmt.Errorf("--threads %d: want 1 to %d", o.Threads, exact.MaxWorkers)
	}
	if o.Text == "" {
		var err error
		if o.Text, err = opticks(ctx); err != nil {
			return err
		}
	}
	o.Progress = func(what string) { c.say("training: %s", what) }
	r, err := bench.MeasureLearning(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(r)
	}
	return writeLearning(c.out, r)
}

// writeLearning is a comparison for people.
func writeLearning(out io.Writer, r bench.Learning) error {
	fmt.Fprintf(out, "%s, %s parameters, %s tokens a run; held-out loss before %.3f\n\n", r.Model, thousands(uint64(r.Params)), thousands(r.Tokens), r.Start)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "method\tmembers\trate\trounds\t1/4\t1/2\t3/4\tall\tto adamw\tbytes a round\tbits a parameter\tbytes in all\t")
	for _, x := range r.Runs {
		fmt.Fprintf(w, "%s\t%d\t%g\t%d\t", x.Method, x.Members, x.Rate, x.Rounds)
		for _, loss := range x.Losses {
			fmt.Fprintf(w, "%.3f\t", loss)
		}
		fmt.Fprintf(w, "%.3f\t%s\t%.3f\t%s\t\n", x.Relative, thousands(uint64(x.Bytes)), x.Bits, thousands(x.Total))
	}
	return w.Flush()
}
