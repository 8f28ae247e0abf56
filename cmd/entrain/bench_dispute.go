package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/exact"
)

// benchDisputeCommand measures what checking a step costs, and what a dispute about it does.
func benchDisputeCommand(c console) *cobra.Command {
	var o bench.DisputeOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "dispute PRESET",
		Short: "Measure what checking a step costs, and what a dispute does",
		Long: `Does a member's step of a preset (nano, 10m, 50m, 124m, 350m, 1b) and checks it by doing it again; makes the
trace that a dispute argues by; and plays disputes about a lie in operations of several kinds to their end:
messages, bytes, the evidence, and how long the referee needs to judge it, in plain Go.`,
		Example: "  entrain bench dispute nano\n  entrain bench dispute 10m --sequences 2 --sequence 256 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Model = args[0]
			if o.Threads < 1 || o.Threads > exact.MaxWorkers {
				return fmt.Errorf("--threads %d: want 1 to %d", o.Threads, exact.MaxWorkers)
			}
			if o.Sequences < 1 || o.Sequences > disputeSequencesMax || o.Sequence < 2 || o.Sequence > benchStepMax {
				return fmt.Errorf("--sequences %d --sequence %d: want 1 to %d sequences of at least 2 tokens", o.Sequences, o.Sequence, disputeSequencesMax)
			}
			o.Progress = func(what string) { c.say("measuring %s", what) }
			return c.benchDispute(cmd.Context(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Sequences, "sequences", 4, "`number` of sequences in the share")
	f.IntVar(&o.Sequence, "sequence", 128, "`tokens` of a sequence")
	f.IntVar(&o.Threads, "threads", runtime.GOMAXPROCS(0), "threads")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// disputeSequencesMax is as much as anybody waits for.
const disputeSequencesMax = 1 << 10

func (c console) benchDispute(ctx context.Context, o bench.DisputeOptions, asJSON bool) error {
	r, err := bench.MeasureDispute(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(r)
	}
	return writeDispute(c.out, r)
}

// writeDispute is a Dispute for people.
func writeDispute(out io.Writer, r bench.Dispute) error {
	fmt.Fprintf(out, "%s, %s parameters, a share of %d x %d tokens, %s: %s operations\n\n", r.Model, thousands(uint64(r.Params)), r.Sequences, r.Sequence, threadsText(r.Threads),
		thousands(uint64(r.Operations)))
	fmt.Fprintf(out, "%-40s %10.4f s\n", "the step", r.Step)
	fmt.Fprintf(out, "%-40s %10.4f s  %6.2f times the step\n", "checking it by doing it again", r.Verify, r.Verify/r.Step)
	fmt.Fprintf(out, "%-40s %10.4f s  %6.2f times the step, in a dispute only\n", "tracing it", r.Trace, r.Trace/r.Step)
	for _, percent := range []string{"1", "5", "10"} {
		fmt.Fprintf(out, "%-40s %10.2f %% of the run's computing\n", "verification of "+percent+" % of the results adds", 100*r.Overhead[percent])
	}
	fmt.Fprintf(out, "\n%-50s %-9s %8s %10s %10s %12s\n", "a lie in", "convicted", "messages", "bytes", "evidence", "referee")
	for _, g := range r.Games {
		if _, err := fmt.Fprintf(out, "%-50s %-9s %8d %10s %10s %9.3f ms\n", g.Operation, g.Convicted, g.Messages, thousands(uint64(g.Bytes)), thousands(uint64(g.Evidence)), 1e3*g.Referee); err != nil {
			return err
		}
	}
	return nil
}
