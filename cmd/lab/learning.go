package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/view"
)

// learningFlags are the flags of lab learning.
type learningFlags struct {
	runFlags
	members  []int
	sparse   map[string]string
	numerics string
	vary     bool
	asJSON   bool
}

// learningCommand compares ways to train together.
func learningCommand(c console) *cobra.Command {
	var o learningFlags
	cmd := &cobra.Command{
		Use:   "learning",
		Short: "Compare what models learn by each way of training together",
		Long: `Trains one model on the same tokens again and again: by AdamW on the mean of whole
gradients, and by the codecs distro and sparseloco, with several numbers of members. Each row shows
the best learning rate, unless --rates says it: the command tries others, by factors of two, as long
as they improve. The table shows the held-out loss after each part of the tokens, the last one
relative to the first row's, and what a member uploads.

The numbers are the same on every machine. All rows take hours of one core. --results FILE keeps
each run, and beside it the state of the one in progress, every five minutes; called again, the
command continues it and does the missing ones. Use another file for another version of the
program. --vary shows how the settings of the codecs change the loss, with eight members.`,
		Example: "  lab learning --results learning.jsonl\n  lab learning --members 1 --members 32 --steps 300\n" +
			"  lab learning --vary --results learning.jsonl\n" +
			"  lab learning --model 10m --data corpus.jsonl --members 16 --rates adamw=0.001,distro=0.001 --results learning.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.learning(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.members, "members", []int{1, 4, 8, 16}, "`numbers` of members")
	f.StringToStringVar(&o.sparse, "sparseloco", nil, "settings of sparseloco that differ: chunk, top_k, decay, inner_steps, inner_optimizer, outer_rate, clip_chunks, and rate to try no others (`setting=value,...`)")
	o.runFlags.add(cmd, "")
	f.StringVar(&o.numerics, "numerics", "exact", "`arithmetic` of linear products: exact or exact8")
	f.StringVar(&o.Seed, "seed", "", "`seed` of the first parameters (default: that of specifications)")
	f.BoolVar(&o.vary, "vary", false, "compare settings instead of numbers of members")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	cmd.MarkFlagsMutuallyExclusive("members", "vary")
	cmd.MarkFlagsMutuallyExclusive("sparseloco", "vary")
	cmd.MarkFlagsMutuallyExclusive("rates", "vary")
	return cmd
}

func (c console) learning(ctx context.Context, o learningFlags) error {
	rows := study.LearningRows(o.members, o.sparse["inner_optimizer"] == sparseloco.InnerMuon)
	for i := range rows {
		if err := o.set(&rows[i]); err != nil {
			return err
		}
	}
	if o.vary {
		rows = study.LearningVariations()
	}
	if err := c.prepareRuns(&o.runFlags, rows); err != nil {
		return err
	}
	var err error
	if o.Model.Numerics, err = llama.ParseNumerics(o.numerics); err != nil {
		return fmt.Errorf("--numerics: %w", err)
	}
	r, err := study.MeasureLearning(ctx, o.LearningOptions)
	if err != nil {
		return err
	}
	if o.asJSON {
		return c.object(r)
	}
	return writeLearning(c.out, r, o.vary)
}

// set changes the settings of a row of sparseloco.
func (o learningFlags) set(r *study.LearningRow) error {
	if r.Method != study.MethodSparseLoCo {
		return nil
	}
	for name, text := range o.sparse {
		if name == "inner_optimizer" {
			if text != "adamw" && text != sparseloco.InnerMuon {
				return fmt.Errorf("--sparseloco %s=%s: the optimizers are adamw and %s", name, text, sparseloco.InnerMuon)
			}
			r.Muon = text == sparseloco.InnerMuon
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("--sparseloco %s=%s: want a number", name, text)
		}
		switch name {
		case "chunk":
			r.Chunk = int(x)
		case "top_k":
			r.TopK = int(x)
		case "decay":
			r.Decay = float32(x)
		case "inner_steps":
			r.Inner = int(x)
		case "outer_rate":
			r.Outer = float32(x)
		case "clip_chunks":
			r.Clip = int(x)
		case "rate":
			r.Rate, r.Fixed = x, true
		default:
			return fmt.Errorf("--sparseloco %s: the settings are chunk, top_k, decay, inner_steps, inner_optimizer, outer_rate, clip_chunks and rate", name)
		}
	}
	return nil
}

// writeLearning writes a comparison for people.
func writeLearning(out io.Writer, r study.Learning, settings bool) error {
	shape := r.Model
	if r.Numerics != llama.Exact.String() {
		shape += " in " + r.Numerics
	}
	fmt.Fprintf(out, "%s, %s parameters; %s steps of %d x %d tokens, %s in all; loss on %s held-out tokens, before %.3f\n\n",
		shape, view.Thousands(uint64(r.Params)), view.Thousands(uint64(r.Steps)), r.Batch, r.Sequence, view.Thousands(r.Tokens), view.Thousands(r.HeldOut), r.Start)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "method\tmembers\t")
	if settings {
		fmt.Fprint(w, "sent\tsteps\tof a round\t")
	}
	fmt.Fprintf(w, "rate\trounds\t1/8\t1/4\t1/2\t3/4\tall\tto %s\tbytes a round\tbits a parameter and step\tbytes in all\t\n", r.Runs[0].Method)
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
		fmt.Fprintf(w, "%.3f\t%s\t%.3f\t%s\t\n", x.Relative, view.Thousands(uint64(x.Bytes)), x.Bits, view.Thousands(x.Total))
	}
	return w.Flush()
}
