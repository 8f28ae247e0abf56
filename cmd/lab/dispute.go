package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/view"
)

// disputeCommand measures the cost of checking a step and of disputes about it.
func disputeCommand(c console) *cobra.Command {
	var o study.DisputeOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "dispute PRESET",
		Short: "Measure the cost of checking a step and of a dispute",
		Long: `Computes a member's step of a preset (nano, 10m, 50m, 124m, 350m, 1b) and checks it by computing
it again. Then builds the trace that a dispute needs, and plays disputes about a lie in operations
of several kinds to the end. Shows messages, bytes, the size of the evidence, and how long the
referee takes to judge it.`,
		Example: "  lab dispute nano\n  lab dispute 10m --sequences 2 --sequence 256 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Model = args[0]
			if err := checkThreads(o.Threads); err != nil {
				return err
			}
			if o.Sequences < 1 || o.Sequences > disputeSequencesMax || o.Sequence < 2 || o.Sequence > numberMax {
				return fmt.Errorf("--sequences %d --sequence %d: want 1 to %d sequences of at least 2 tokens", o.Sequences, o.Sequence, disputeSequencesMax)
			}
			o.Progress = func(what string) { c.say("measuring %s", what) }
			return c.dispute(cmd.Context(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Sequences, "sequences", 4, "`number` of sequences in the share")
	f.IntVar(&o.Sequence, "sequence", 128, "`tokens` of a sequence")
	f.IntVar(&o.Threads, "threads", runtime.GOMAXPROCS(0), "threads")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// disputeSequencesMax bounds --sequences: more take hours.
const disputeSequencesMax = 1 << 10

func (c console) dispute(ctx context.Context, o study.DisputeOptions, asJSON bool) error {
	r, err := study.MeasureDispute(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(r)
	}
	return writeDispute(c.out, r)
}

// writeDispute writes a Dispute for people.
func writeDispute(out io.Writer, r study.Dispute) error {
	fmt.Fprintf(out, "%s, %s parameters, a share of %d x %d tokens, %s: %s operations\n\n", r.Model, view.Thousands(uint64(r.Params)), r.Sequences, r.Sequence, threadsText(r.Threads),
		view.Thousands(uint64(r.Operations)))
	fmt.Fprintf(out, "%-40s %10.4f s\n", "the step", r.Step)
	fmt.Fprintf(out, "%-40s %10.4f s  %6.2f times the step\n", "checking it by doing it again", r.Verify, r.Verify/r.Step)
	fmt.Fprintf(out, "%-40s %10.4f s  %6.2f times the step, in a dispute only\n", "tracing it", r.Trace, r.Trace/r.Step)
	for _, percent := range []string{"1", "5", "10"} {
		fmt.Fprintf(out, "%-40s %10.2f %% of the run's computing\n", "verification of "+percent+" % of the results adds", 100*r.Overhead[percent])
	}
	fmt.Fprintf(out, "\n%-50s %-9s %8s %10s %10s %12s\n", "a lie in", "convicted", "messages", "bytes", "evidence", "referee")
	for _, g := range r.Games {
		if _, err := fmt.Fprintf(out, "%-50s %-9s %8d %10s %10s %9.3f ms\n", g.Operation, g.Convicted, g.Messages, view.Thousands(uint64(g.Bytes)), view.Thousands(uint64(g.Evidence)), 1e3*g.Referee); err != nil {
			return err
		}
	}
	return nil
}
