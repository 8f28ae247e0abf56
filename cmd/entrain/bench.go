package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/participant"
)

// measure measures a preset, or all devices.
func (c console) measure(ctx context.Context, preset string, o bench.StepOptions, asJSON bool) error {
	m, err := bench.Measure(ctx, preset, o)
	if err != nil {
		return err
	}
	return c.print(asJSON, m, func(w io.Writer) error { _, err := fmt.Fprintln(w, m); return err })
}

// benchCommand measures this machine.
func benchCommand(c console) *cobra.Command {
	var asJSON bool
	var o bench.StepOptions
	cmd := &cobra.Command{
		Use:   "bench [PRESET]",
		Short: "Measure how fast this machine trains",
		Long: `Measures this machine's peak, in multiply-adds and bytes of memory a second, and how much of it
entrain reaches with one thread and with all: matrix products, training steps, compressing and
applying updates, and hashing parameters.

Measurements alternate, round after round, and medians are shown. Run nothing else meanwhile. It
takes a few minutes.

With a PRESET (nano, 10m, 50m, 124m, 350m, 1b) it measures only forward, backward and AdamW of that
model on a batch of random tokens, and how much memory that takes; 124m,exact8 has linear products
in 8 bits, and 124m,exact,exact8 compares both, step by step in turn. With --device it measures them
on that GPU, and counts the bytes that go there and come back.

With --device list it shows the GPUs and their drivers. It compares each one's arithmetic with the
processors', operation by operation, on ordinary and on hostile numbers, and in a training step of a
small model. The mode is the fastest way of computing in which all bits are the same: native;
guarded, where the GPU flushes subnormals; with fma in integers, where the GPU rounds it twice; or
none, and then --device auto does not use the GPU.`,
		Example: "  entrain bench\n  entrain bench --json | jq .sgemm\n  entrain bench 124m,exact8 --sequence 1024 --batch 1 --workers 1\n" +
			"  entrain bench --device list\n  entrain bench 124m --sequence 1024 --batch 4 --device vulkan:0",
		Args: between(0, 1, "one preset at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Device == bench.DeviceList || len(args) == 1 {
				return c.measure(cmd.Context(), strings.Join(args, ""), o, asJSON)
			}
			for _, name := range []string{"device", "batch", "sequence", "workers", "steps"} {
				if f := cmd.Flags().Lookup(name); f.Changed {
					return fmt.Errorf("--%s %s: name a PRESET to measure with it", name, f.Value)
				}
			}
			r, err := bench.Run(cmd.Context(), func(what string) { c.say("measuring %s", what) })
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
	f.IntVar(&o.Batch, "batch", 8, "with PRESET: `number` of sequences in a step")
	f.IntVar(&o.Sequence, "sequence", 0, "with PRESET: `tokens` of a sequence (default 256, or the model's context if that is less)")
	workersFlag(cmd, &o.Threads)
	deviceFlag(cmd, &o.Device)
	f.Lookup("device").Usage = "with PRESET: `device` that computes, cpu, vulkan:N or auto; list shows and proves all GPUs"
	f.IntVar(&o.Steps, "steps", 5, "with PRESET: `number` of steps to measure, after one to warm up")
	return cmd
}
