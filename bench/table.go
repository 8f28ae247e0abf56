package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/view"
)

// Write prints the report as a table.
func (r Report) Write(out io.Writer) error {
	fmt.Fprintf(out, "%s, %d cores, %s of memory, kernels %s\n\n", view.OrDash(r.Machine.Processor), r.Machine.Cores, view.Bytes(r.Machine.Memory), r.Machine.Kernel)
	t := benchTable{out: out}
	t.row("", "1 thread", "", threadsText(r.Threads), "", "")
	t.rates("peak, multiply-adds", r.Peak, flopsText)
	t.rates("memory, read", r.Read, rateText)
	t.rates("memory, copy", r.Copy, rateText)
	for _, n := range squareSides {
		name := fmt.Sprint(n)
		t.product("sgemm "+name, r.Flops[name], Pair{One: r.SgemmOne[name], All: r.Sgemm[name]})
	}
	for _, name := range productNames() {
		t.product("product "+name, r.Flops[name], Pair{One: r.ProdOne[name], All: r.Products[name]})
	}
	t.rates("peak, products of bytes", r.Peak8, opsText)
	for _, n := range squares8 {
		p := r.Gemm8[strconv.Itoa(n)]
		t.row(fmt.Sprintf("gemm in 8 bits %d", n), opsText(p.One), shareText(p.One/r.Peak8.One), opsText(p.All), shareText(p.All/r.Peak8.All), "")
	}
	t.row("", "", "", "", "", "")
	t.row("training step", "tokens/s", "of peak", "tokens/s", "of peak", "memory")
	for _, m := range r.Training {
		t.training(m)
	}
	e := r.Exchange
	t.row("", "", "", "", "", "")
	t.row(fmt.Sprintf("bytes of parameters, %s of %s", view.Thousands(4*uint64(e.Params)), e.Model), "", "", "", "", "")
	t.rates("encode", e.Encode, rateText)
	t.rates("check a payload of "+view.Bytes(uint64(e.PayloadBytes)), e.Check, rateText)
	t.rates(fmt.Sprintf("apply %d payloads", e.Payloads), e.Apply, rateText)
	t.rates("hash", e.Hash, rateText)
	return t.err
}

// benchTable aligns the rows of the report: a name, a speed and a share with one thread, the same
// with all, and the memory.
type benchTable struct {
	out io.Writer
	err error // the first error
}

func (t *benchTable) row(name, one, oneShare, all, allShare, memory string) {
	if t.err == nil {
		line := fmt.Sprintf("%-42s %14s %8s %15s %8s %9s", name, one, oneShare, all, allShare, memory)
		_, t.err = fmt.Fprintln(t.out, strings.TrimRight(line, " "))
	}
}

func (t *benchTable) rates(name string, p Pair, text func(float64) string) {
	t.row(name, text(p.One), "", text(p.All), "", "")
}

func (t *benchTable) product(name string, flops, share Pair) {
	t.row(name, flopsText(flops.One), shareText(share.One), flopsText(flops.All), shareText(share.All), "")
}

func (t *benchTable) training(m Training) {
	name := fmt.Sprintf("%s, %s weights, %d x %d", strings.TrimSpace(m.Model+" "+m.Numerics), view.Thousands(uint64(m.Params)), m.Batch, m.Sequence)
	if m.Skipped != "" {
		t.row(name, "skipped: "+m.Skipped, "", "", "", "")
		return
	}
	t.row(name, tokensText(m.Tokens.One), shareText(m.Share.One), tokensText(m.Tokens.All), shareText(m.Share.All), view.Bytes(m.Memory))
}

func flopsText(x float64) string {
	if x < 1e9 {
		return fmt.Sprintf("%.1f MFLOP/s", x/1e6)
	}
	return fmt.Sprintf("%.1f GFLOP/s", x/1e9)
}

func opsText(x float64) string    { return fmt.Sprintf("%.1f GOP/s", x/1e9) }
func rateText(x float64) string   { return fmt.Sprintf("%.2f GB/s", x/1e9) }
func shareText(x float64) string  { return fmt.Sprintf("%.1f %%", 100*x) }
func tokensText(x float64) string { return view.Thousands(uint64(x)) }

func threadsText(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// StepOptions say which step of a model to measure.
type StepOptions struct {
	Batch, Threads, Steps int
	Sequence              int    // tokens; 0 is 256, or the model's context if that is less
	Device                string // for measureDevice
}

// settle fills in the length of a sequence for a model.
func (o *StepOptions) settle(cfg llama.Config) {
	o.Sequence = cmp.Or(o.Sequence, min(256, cfg.Context))
}

// check returns what is wrong with the numbers.
func (o StepOptions) check() error {
	if o.Threads < 1 || o.Threads > exact.MaxWorkers {
		return fmt.Errorf("--workers %d: want 1 to %d", o.Threads, exact.MaxWorkers)
	}
	if o.Sequence < 0 {
		return fmt.Errorf("--sequence %d: want at least 1, or 0 for the default", o.Sequence)
	}
	if o.Steps < 1 || o.Steps > stepsMax || o.Batch < 1 || o.Batch > stepsMax {
		return fmt.Errorf("--steps %d --batch %d: want at least 1 of each, at most %d", o.Steps, o.Batch, stepsMax)
	}
	return nil
}

// Measured is the speed of one model's training step on this machine.
type Measured struct {
	Model      string    `json:"model"`
	Numerics   string    `json:"numerics"`
	Params     int       `json:"params"`
	Batch      int       `json:"batch"`
	Sequence   int       `json:"sequence"`
	Threads    int       `json:"threads"`
	Kernel     string    `json:"kernel"`
	Operations float64   `json:"operations"` // floating-point operations of a step
	Seconds    []float64 `json:"seconds"`    // of each step
	// Processor is the time of all processors that this program took for each step, which others on
	// the machine do not lengthen. 0 is unknown.
	Processor       []float64 `json:"processor_seconds"`
	TokensPerSecond float64   `json:"tokens_per_second"`
	Memory          uint64    `json:"memory_bytes"`
	Share           float64   `json:"share_of_peak"`
	Loss            float32   `json:"loss"` // of the last step

	median float64 // seconds
}

// stepsMax bounds the numbers of StepOptions: a larger one is a mistake.
const stepsMax = 1 << 20

// presetOf returns the name and the configurations of a preset, which one or more numerics may
// follow: 124m, 124m,exact8 or 124m,exact,exact8.
func presetOf(text string) (name string, cfgs []llama.Config, err error) {
	name, rest, _ := strings.Cut(text, ",")
	for numerics := range strings.SplitSeq(rest, ",") {
		cfg, err := llama.Preset(name)
		if err == nil {
			cfg.Numerics, err = llama.ParseNumerics(numerics)
		}
		if err != nil {
			return "", nil, err
		}
		cfgs = append(cfgs, cfg)
	}
	return name, cfgs, nil
}

// measurePreset measures the training step of a preset, as presetOf reads it: a step in each
// numerics, and then the next.
func measurePreset(ctx context.Context, preset string, o StepOptions) (Compared, error) {
	preset, cfgs, err := presetOf(preset)
	if err := errors.Join(err, o.check()); err != nil {
		return nil, err
	}
	o.settle(cfgs[0])
	pool := exact.NewPool(o.Threads)
	defer pool.Close()
	all, program := make([]*Steps, len(cfgs)), usedMemory()
	for i, cfg := range cfgs {
		debug.FreeOSMemory() // so that no step's garbage is subtracted from the next one's memory
		before := usedMemory()
		if all[i], err = beginSteps(cfg, o.Batch, o.Sequence, pool); err != nil {
			return nil, err
		}
		all[i].Memory = usedMemory() - before + program
	}
	for range o.Steps {
		for _, m := range all {
			if err := m.one(ctx); err != nil {
				return nil, err
			}
		}
	}
	var c Compared
	for i, m := range all {
		c = append(c, Measured{
			Model: preset, Numerics: cfgs[i].Numerics.String(), Params: m.Params, Batch: o.Batch, Sequence: o.Sequence, Threads: o.Threads,
			Kernel: pool.Kernel().Name(), Operations: m.Operations, Seconds: m.Seconds, Processor: m.Processor,
			TokensPerSecond: float64(o.Batch*o.Sequence) / m.median(), Memory: m.Memory, Share: m.Share(), Loss: m.Loss, median: m.median(),
		})
	}
	return c, nil
}

// Compared is a step in one or more numerics, measured in turn.
type Compared []Measured

// String has a line for each numerics, and compares others with the first.
func (c Compared) String() string {
	var lines []string
	for i, m := range c {
		lines = append(lines, m.String())
		if i > 0 {
			lines = append(lines, fmt.Sprintf("%s is %.2f times as fast as %s; by the least processor time of a step, %.2f times",
				m.Numerics, c[0].median/m.median, c[0].Numerics, slices.Min(c[0].Processor)/slices.Min(m.Processor)))
		}
	}
	return strings.Join(lines, "\n")
}

// MarshalJSON writes one measurement as an object, and several as a list.
func (c Compared) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return json.Marshal(c[0])
	}
	return json.Marshal([]Measured(c))
}

// String describes the step in one line.
func (m Measured) String() string {
	return fmt.Sprintf("%s, %s, %s parameters, %d x %d tokens, %s, kernels %s: %s tokens/s, a step %.4f s, %s (%s of the peak), memory %s, loss %.3f",
		m.Model, m.Numerics, view.Thousands(uint64(m.Params)), m.Batch, m.Sequence, threadsText(m.Threads), m.Kernel, tokensText(m.TokensPerSecond), m.median,
		flopsText(m.Operations/m.median), shareText(m.Share), view.Bytes(m.Memory), m.Loss)
}
