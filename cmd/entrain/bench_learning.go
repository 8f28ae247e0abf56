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

// learningFlags are the flags of bench learning.
type learningFlags struct {
	bench.LearningOptions
	members []int
	vary    bool
	asJSON  bool
}

// benchLearningCommand compares ways to train together.
func benchLearningCommand(c console) *cobra.Command {
	var o learningFlags
	cmd := &cobra.Command{
		Use:   "learning",
		Short: "Compare what models learn by each way of training together",
		Long: `Trains a small model on the demo's text again and again, always on the same tokens: by AdamW on the mean of
whole gradients, and by the codecs distro and sparseloco, with several numbers of members. Each row has the
best learning rate there is for it: others, by factors of two, are tried as long as they are better. The table
shows the held-out loss along the tokens, the last one relative to AdamW's, and what a member uploads.

The numbers are the same on every machine. It takes a good while of one core: --results FILE keeps what
came of each run; called again, the command goes on with those that are missing. Use another file for another
version of the program. --vary shows how the settings of the codecs change the loss, with eight members.`,
		Example: "  entrain bench learning --results learning.jsonl\n  entrain bench learning --members 1 --members 32 --steps 300\n" +
			"  entrain bench learning --vary --results learning.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.benchLearning(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.members, "members", []int{1, 4, 8, 16}, "`numbers` of members")
	f.IntVar(&o.Steps, "steps", 1200, "`steps` that a run trains, of --batch sequences each")
	f.IntVar(&o.Batch, "batch", 16, "`sequences` of a step, of all members together")
	f.IntVar(&o.Threads, "threads", min(2, runtime.GOMAXPROCS(0)), "threads")
	f.StringVar(&o.Text, "data", "", "text `file` to train on (default: Newton's Opticks, from the Go installation)")
	f.StringVar(&o.Results, "results", "", "`file` that keeps what came of each run")
	f.BoolVar(&o.vary, "vary", false, "compare settings in place of numbers of members")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("members", "vary")
	_ = cmd.MarkFlagFilename("data")
	_ = cmd.MarkFlagFilename("results", "jsonl")
	return cmd
}

func (c console) benchLearning(ctx context.Context, o learningFlags) error {
	if o.Batch < 1 || o.Batch > benchStepMax || o.Steps < 1 || o.Steps > benchStepMax {
		return fmt.Errorf("--steps %d --batch %d: want 1 to %d of each", o.Steps, o.Batch, benchStepMax)
	}
	if o.Threads < 1 || o.Threads > exact.MaxWorkers {
		return fmt.Errorf("--threads %d: want 1 to %d", o.Threads, exact.MaxWorkers)
	}
	o.Rows = bench.LearningRows(o.members)
	if o.vary {
		o.Rows = bench.LearningVariations()
	}
	if o.Text == "" {
		var err error
		if o.Text, err = opticks(ctx); err != nil {
			return err
		}
	}
	o.Progress = func(what string) { c.say("training: %s", what) }
	r, err := bench.MeasureLearning(ctx, o.LearningOptions)
	if err != nil {
		return err
	}
	if o.asJSON {
		return c.object(r)
	}
	return writeLearning(c.out, r, o.vary)
}

// writeLearning is a comparison for people.
func writeLearning(out io.Writer, r bench.Learning, settings bool) error {
	fmt.Fprintf(out, "%s, %s parameters; %s steps of %d x %d tokens, %s in all; loss on %s held-out tokens, before %.3f\n\n",
		r.Model, thousands(uint64(r.Params)), thousands(uint64(r.Steps)), r.Batch, r.Sequence, thousands(r.Tokens), thousands(r.HeldOut), r.Start)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "method\tmembers\t")
	if settings {
		fmt.Fprint(w, "sent\tsteps\tof a round\t")
	}
	fmt.Fprintln(w, "rate\trounds\t1/8\t1/4\t1/2\t3/4\tall\tto adamw\tbytes a round\tbits a parameter and step\tbytes in all\t")
	for _, x := range r.Runs {
		fmt.Fprintf(w, "%s\t%d\t", x.Method, x.Members)
		if settings {
			sent := "all"
			if x.TopK > 0 {
				sent = fmt.Sprintf("%d of %d", x.TopK, x.Block())
			}
			fmt.Fprintf(w, "%s\t%d\t%d\t", sent, x.Steps, max(1, x.Inner))
		}
		fmt.Fprintf(w, "%.2g\t%d\t", x.Rate, x.Rounds)
		for _, eighth := range []int{1, 2, 4, 6, 8} {
			fmt.Fprintf(w, "%.3f\t", x.Losses[eighth-1])
		}
		fmt.Fprintf(w, "%.3f\t%s\t%.3f\t%s\t\n", x.Relative, thousands(uint64(x.Bytes)), x.Bits, thousands(x.Total))
	}
	return w.Flush()
}
