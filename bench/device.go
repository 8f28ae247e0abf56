package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Devices is the table of the machine's devices.
type Devices struct {
	Devices []vulkan.Row `json:"devices"`
	Fault   string       `json:"fault,omitempty"` // why there are none
}

// FindDevices proves and measures all devices. It reads no proof of an earlier time.
func FindDevices() (d Devices) {
	var err error
	if d.Devices, err = vulkan.List(); err != nil {
		d.Fault = err.Error()
	}
	return d
}

// String returns the table, and what is wrong with devices that are not right.
func (d Devices) String() string {
	if len(d.Devices) == 0 {
		return "no device but the processors: " + d.Fault
	}
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "device\tname\tkind\tmemory\tmode\tproducts\tin 8 bits\tdriver")
	for _, r := range d.Devices {
		mode, speed, eight := r.Mode, flopsText(r.OperationsSec), flopsText(r.EightSec)
		if mode == "" {
			mode, speed, eight = "none", "-", "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Is, r.Kind, view.Bytes(r.Memory), mode, speed, eight, r.Driver)
	}
	_ = t.Flush() // a Builder takes everything
	for _, r := range d.Devices {
		if r.Fault != "" {
			fmt.Fprintf(&text, "%s: %s\n", r.Name, r.Fault)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// OnDevice is the speed of one model's forward and backward pass on a device.
type OnDevice struct {
	Device          string    `json:"device"`
	Model           string    `json:"model"`
	Numerics        string    `json:"numerics"`
	Params          int       `json:"params"`
	Batch           int       `json:"batch"`
	Sequence        int       `json:"sequence"`
	Operations      float64   `json:"operations"` // of the matrix products of a step
	Seconds         []float64 `json:"seconds"`    // of each step, forward and backward
	Transfers       []float64 `json:"transfers"`  // seconds: parameters there, gradient back
	TokensPerSecond float64   `json:"tokens_per_second"`
	Memory          uint64    `json:"device_memory_bytes"`
	Loss            float32   `json:"loss"`
	median          float64
}

// MeasureDevice measures a preset's forward and backward pass on a device, which o.Device names.
// Unlike MeasurePreset it leaves out AdamW, which the processors compute.
func MeasureDevice(ctx context.Context, preset string, o StepOptions) (m OnDevice, err error) {
	cfg, err := llama.Preset(preset)
	if err != nil {
		return m, err
	}
	if cfg.Numerics, err = llama.ParseNumerics(o.Numerics); err != nil {
		return m, fmt.Errorf("--%w", err)
	}
	if err := errors.Join(o.check(), vulkan.Check(o.Device)); err != nil {
		return m, err
	}
	var cache string
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "entrain")
	}
	device, err := vulkan.Choose(o.Device, cache, cfg.Numerics, func(string) {})
	if err != nil {
		return m, err
	}
	if device == nil {
		return m, fmt.Errorf("--device %s: there is no device that is right and faster than the processors; measure those without --device", o.Device)
	}
	defer device.Close()
	model, err := device.NewModel(cfg, o.Sequence, o.Batch)
	if err != nil {
		return m, err
	}
	defer model.Close()
	m = OnDevice{Device: device.String(), Model: preset, Numerics: cfg.Numerics.String(), Batch: o.Batch, Sequence: o.Sequence, Memory: model.Memory(),
		Operations: float64(o.Batch*o.Sequence) * StepOperations(cfg, o.Sequence)}
	seed := wire.Sum("entrain/bench")
	params := llama.Init(cfg, seed)
	m.Params = len(params)
	grad, tokens, source := make([]float32, len(params)), make([]uint32, o.Batch*(o.Sequence+1)), prng.New(seed, "tokens")
	for i := range tokens {
		tokens[i] = uint32(source.Uint64n(uint64(cfg.Vocab)))
	}
	for i := range o.Steps + 1 { // the first one records and warms up
		if err := ctx.Err(); err != nil {
			return m, err
		}
		begin := time.Now()
		if err := model.Start(params, true); err != nil {
			return m, err
		}
		started := time.Now()
		if m.Loss, err = model.Grad(tokens, o.Batch, o.Batch); err != nil {
			return m, err
		}
		computed := time.Now()
		if err := model.Gradient(grad); err != nil {
			return m, err
		}
		if i > 0 {
			m.Seconds = append(m.Seconds, computed.Sub(started).Seconds())
			m.Transfers = append(m.Transfers, (time.Since(computed) + started.Sub(begin)).Seconds())
		}
	}
	m.median = Median(m.Seconds)
	m.TokensPerSecond = float64(o.Batch*o.Sequence) / m.median
	return m, nil
}

// String describes the step in one line.
func (m OnDevice) String() string {
	return fmt.Sprintf("%s, %s, %s parameters, %d x %d tokens on %s: %s tokens/s, a step %.4f s, %s, transfers %.4f s, memory %s, loss %.3f",
		m.Model, m.Numerics, view.Thousands(uint64(m.Params)), m.Batch, m.Sequence, m.Device, tokensText(m.TokensPerSecond), m.median,
		flopsText(m.Operations/m.median), Median(m.Transfers), view.Bytes(m.Memory), m.Loss)
}
