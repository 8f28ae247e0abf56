package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/participant"
)

// benchCommand measures this machine.
func benchCommand(c console) *cobra.Command {
	var asJSON, quick bool
	var o bench.StepOptions
	cmd := &cobra.Command{
		Use:   "bench [PRESET]",
		Short: "Measure how fast this machine trains",
		Long: `Measures this machine's peak, in multiply-adds and bytes of memory a second, and how much of it
entrain reaches with one thread and with all: matrix products, training steps, compressing and
applying updates, and hashing parameters.

Measurements alternate, round after round, and medians are shown. Run nothing else meanwhile. It
takes a few minutes; --quick takes less than one and omits the larger models.

With a PRESET (nano, 10m, 50m, 124m, 350m, 1b) it measures only forward, backward and AdamW of that model on
a batch of random tokens, and how much memory that takes.`,
		Example: "  entrain bench\n  entrain bench --quick --json | jq .sgemm\n  entrain bench 124m --sequence 1024 --batch 1 --workers 1",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				m, err := bench.MeasurePreset(cmd.Context(), args[0], o)
				if err == nil && asJSON {
					return c.object(m)
				}
				if err == nil {
					_, err = fmt.Fprintln(c.out, m)
				}
				return err
			}
			r, err := bench.Run(cmd.Context(), bench.Options{Quick: quick, Progress: func(what string) { c.say("measuring %s", what) }})
			if err != nil {
				return err
			}
			v := version()
			if asJSON {
				return c.object(struct {
					Version participant.Program `json:"version"`
					bench.Report
				}{v, r})
			}
			fmt.Fprintf(c.out, "entrain %s, commit %s, %s %s\n", v.Version, v.Built(), v.Go, v.Platform)
			return r.Write(c.out)
		},
	}
	jsonFlag(cmd, &asJSON)
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "take fewer rounds, and leave out the larger models")
	f.IntVar(&o.Batch, "batch", 8, "with PRESET: `number` of sequences in a step")
	f.IntVar(&o.Sequence, "sequence", 256, "with PRESET: `tokens` of a sequence")
	workersFlag(cmd, &o.Threads)
	f.StringVar(&o.Numerics, "numerics", "exact", "with PRESET: exact, or exact8 for linear products in 8 bits")
	f.IntVar(&o.Steps, "steps", 5, "with PRESET: `number` of steps to measure, after one to warm up")
	return cmd
}
