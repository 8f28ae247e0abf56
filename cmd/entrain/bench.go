package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// benchCommand measures this machine.
func benchCommand(c console) *cobra.Command {
	var quick bool
	var o stepOptions
	cmd := &cobra.Command{
		Use:   "bench [PRESET]",
		Short: "Measure how fast this machine trains",
		Long: `Measures what this machine can do at most, in multiply-adds and in bytes of memory a second, and what
entrain makes of it: matrix products and training steps as shares of that peak, the compression and
the application of updates, and the hash of parameters. All with one thread and with all.

What is compared is measured in turn, round after round, and the medians are shown. Let nothing else
run meanwhile. It takes a few minutes; --quick takes less than one, and leaves out the larger models.

With a PRESET (nano, 10m, 50m, 124m, 350m, 1b) it measures only forward, backward and AdamW of that model on
a batch of random tokens, and how much memory that takes.`,
		Example: "  entrain bench\n  entrain bench --quick --json | jq .sgemm\n  entrain bench 124m --sequence 1024 --batch 1 --workers 1",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return benchStep(cmd.Context(), c, args[0], o)
			}
			r, err := bench.Run(cmd.Context(), bench.Options{Quick: quick, Progress: func(what string) { c.say("measuring %s", what) }})
			if err != nil {
				return err
			}
			v := version()
			if o.asJSON {
				return c.object(struct {
					Version versionInfo `json:"version"`
					bench.Report
				}{v, r})
			}
			return writeReport(c.out, v, r)
		},
	}
	jsonFlag(cmd, &o.asJSON)
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "take fewer rounds, and leave out the larger models")
	f.IntVar(&o.batch, "batch", 8, "with PRESET: `number` of sequences in a step")
	f.IntVar(&o.sequence, "sequence", 256, "with PRESET: `tokens` of a sequence")
	workersFlag(cmd, &o.threads)
	f.IntVar(&o.steps, "steps", 5, "with PRESET: `number` of steps to measure, after one to warm up")
	return cmd
}

// writeReport is a Report for people.
func writeReport(out io.Writer, v versionInfo, r bench.Report) error {
	commit := v.Commit
	if v.Modified {
		commit += " with changes"
	}
	fmt.Fprintf(out, "entrain %s, commit %s, %s %s\n", v.Version, commit, v.Go, v.Platform)
	fmt.Fprintf(out, "%s, %d cores, %s of memory, kernels %s\n\n", orDash(r.Machine.Processor), r.Machine.Cores, bytesText(r.Machine.Memory), r.Machine.Kernel)
	t := benchTable{out: out}
	t.row("", "1 thread", "", threadsText(r.Threads), "", "")
	t.rates("peak, multiply-adds", r.Peak, flopsText)
	t.rates("memory, read", r.Read, rateText)
	t.rates("memory, copy", r.Copy, rateText)
	for _, n := range bench.SquareSides {
		name := fmt.Sprint(n)
		t.product("sgemm "+name, r.Flops[name], bench.Pair{One: r.SgemmOne[name], All: r.Sgemm[name]})
	}
	for _, name := range bench.ProductNames() {
		t.product("product "+name, r.Flops[name], bench.Pair{One: r.ProdOne[name], All: r.Products[name]})
	}
	t.row("", "", "", "", "", "")
	t.row("training step", "tokens/s", "of peak", "tokens/s", "of peak", "memory")
	for _, m := range r.Training {
		t.training(m)
	}
	e := r.Exchange
	t.row("", "", "", "", "", "")
	t.row(fmt.Sprintf("bytes of parameters, %s of %s", thousands(4*uint64(e.Params)), e.Model), "", "", "", "", "")
	t.rates("encode", e.Encode, rateText)
	t.rates("check a payload of "+bytesText(uint64(e.PayloadBytes)), e.Check, rateText)
	t.rates(fmt.Sprintf("apply %d payloads", e.Payloads), e.Apply, rateText)
	t.rates("hash", e.Hash, rateText)
	return t.err
}

// benchTable aligns the rows of the report: a name, and for one thread and for all a speed and a share; at last the memory.
type benchTable struct {
	out io.Writer
	err error // the first there was
}

func (t *benchTable) row(name, one, oneShare, all, allShare, memory string) {
	if t.err == nil {
		line := fmt.Sprintf("%-42s %14s %8s %15s %8s %9s", name, one, oneShare, all, allShare, memory)
		_, t.err = fmt.Fprintln(t.out, strings.TrimRight(line, " "))
	}
}

func (t *benchTable) rates(name string, p bench.Pair, text func(float64) string) {
	t.row(name, text(p.One), "", text(p.All), "", "")
}

func (t *benchTable) product(name string, flops, share bench.Pair) {
	t.row(name, flopsText(flops.One), shareText(share.One), flopsText(flops.All), shareText(share.All), "")
}

func (t *benchTable) training(m bench.Training) {
	name := fmt.Sprintf("%s, %s weights, %d x %d", m.Model, thousands(uint64(m.Params)), m.Batch, m.Sequence)
	if m.Skipped != "" {
		t.row(name, "skipped: "+m.Skipped, "", "", "", "")
		return
	}
	t.row(name, tokensText(m.Tokens.One), shareText(m.Share.One), tokensText(m.Tokens.All), shareText(m.Share.All), bytesText(m.Memory))
}

func flopsText(x float64) string  { return fmt.Sprintf("%.1f GFLOP/s", x/1e9) }
func rateText(x float64) string   { return fmt.Sprintf("%.2f GB/s", x/1e9) }
func shareText(x float64) string  { return fmt.Sprintf("%.1f %%", 100*x) }
func tokensText(x float64) string { return thousands(uint64(x)) }

func threadsText(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// stepOptions hold the flags of bench PRESET.
type stepOptions struct {
	batch, sequence, threads, steps int
	asJSON                          bool
}

// benchStepMax bounds what step is asked for: above it a flag is a mistake.
const benchStepMax = 1 << 20

// stepResult is what bench PRESET prints.
type stepResult struct {
	Model           string    `json:"model"`
	Params          int       `json:"params"`
	Batch           int       `json:"batch"`
	Sequence        int       `json:"sequence"`
	Threads         int       `json:"threads"`
	Kernel          string    `json:"kernel"`
	Operations      float64   `json:"operations"` // floating-point operations of a step
	Seconds         []float64 `json:"seconds"`    // each step took
	TokensPerSecond float64   `json:"tokens_per_second"`
	Memory          uint64    `json:"memory_bytes"`
	Share           float64   `json:"share_of_peak"`
	Loss            float32   `json:"loss"` // of the last step
}

func benchStep(ctx context.Context, c console, preset string, o stepOptions) error {
	cfg, err := llama.Preset(preset)
	if err != nil {
		return err
	}
	if o.threads < 1 || o.threads > exact.MaxWorkers {
		return fmt.Errorf("--workers %d: want 1 to %d", o.threads, exact.MaxWorkers)
	}
	if o.steps < 1 || o.steps > benchStepMax || o.batch < 1 || o.batch > benchStepMax {
		return fmt.Errorf("--steps %d --batch %d: want at least 1 of each, at most %d", o.steps, o.batch, benchStepMax)
	}
	pool := exact.NewPool(o.threads)
	defer pool.Close()
	m, err := bench.MeasureStep(ctx, cfg, o.batch, o.sequence, pool, o.steps, 0)
	if err != nil {
		return err
	}
	r := stepResult{
		Model: preset, Params: m.Params, Batch: o.batch, Sequence: o.sequence, Threads: o.threads, Kernel: pool.Kernel().Name(), Operations: m.Operations,
		Seconds: m.Seconds, TokensPerSecond: float64(o.batch*o.sequence) / m.Median(), Memory: m.Memory, Share: m.Share(), Loss: m.Loss,
	}
	if o.asJSON {
		return c.object(r)
	}
	_, err = fmt.Fprintf(c.out, "%s, %s parameters, %d x %d tokens, %s, kernels %s: %s tokens/s, a step %.4f s, %s (%s of the peak), memory %s, loss %.3f\n",
		preset, thousands(uint64(r.Params)), r.Batch, r.Sequence, threadsText(r.Threads), r.Kernel, tokensText(r.TokensPerSecond), m.Median(),
		flopsText(r.Operations/m.Median()), shareText(r.Share), bytesText(r.Memory), r.Loss)
	return err
}
