package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Devices is the table of the machine's devices.
type Devices struct {
	Devices []vulkan.Row `json:"devices"`
	Fault   string       `json:"fault,omitempty"` // why there are none
}

// findDevices proves and measures all devices. It reads no proof of an earlier time.
func findDevices() (d Devices) {
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
		if r.Matrices != "" {
			fmt.Fprintf(&text, "%s: %s\n", r.Name, r.Matrices)
		}
		for i, by := range []map[int]float64{r.Products, r.Products8} {
			for n, side := range slices.Sorted(maps.Keys(by)) {
				if n == 0 {
					fmt.Fprintf(&text, "%s, products%s:", r.Name, [2]string{"", " in 8 bits"}[i])
				}
				fmt.Fprintf(&text, "  %d² %s", side, flopsText(by[side]))
			}
			if len(by) > 0 {
				text.WriteByte('\n')
			}
		}
		if r.Fault != "" {
			fmt.Fprintf(&text, "%s: %s\n", r.Name, r.Fault)
		}
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// OnDevice is the speed of one model's training step on a device.
type OnDevice struct {
	Device     string    `json:"device"`
	Model      string    `json:"model"`
	Numerics   string    `json:"numerics"`
	Params     int       `json:"params"`
	Batch      int       `json:"batch"`
	Sequence   int       `json:"sequence"`
	Operations float64   `json:"operations"` // of the matrix products of a step
	Seconds    []float64 `json:"seconds"`    // of each step: forward, backward and AdamW
	Transfers  []float64 `json:"transfers"`  // seconds: parameters there, gradient back
	// StepBytes are those that a step moves. ShareBytes are those that a round of one gradient with
	// codec distro moves besides: picks of applied results there, state and parameters back.
	// InnerBytes are those of a share of inner steps: of parameters there, and back with moments.
	StepBytes       gpu.Traffic `json:"step_bytes"`
	ShareBytes      gpu.Traffic `json:"share_bytes"`
	InnerBytes      gpu.Traffic `json:"inner_share_bytes"`
	TokensPerSecond float64     `json:"tokens_per_second"`
	Encode          float64     `json:"encode_seconds"` // by codec distro, and hashes
	Apply           float64     `json:"apply_seconds"`  // of applied results, and a hash
	// What a round of inner steps takes besides those, with codec sparseloco.
	InnerEncode     float64     `json:"inner_encode_seconds"`
	InnerApply      float64     `json:"inner_apply_seconds"`
	InnerRoundBytes gpu.Traffic `json:"inner_round_bytes"`
	Memory          uint64      `json:"device_memory_bytes"`
	Loss            float32     `json:"loss"`
	median          float64
}

// DeviceList is the device that stands for a table of all.
const DeviceList = "list"

// Measure measures a preset on the processors or on a device, or all devices.
func Measure(ctx context.Context, preset string, o StepOptions) (fmt.Stringer, error) {
	switch o.Device {
	case DeviceList:
		return findDevices(), nil
	case vulkan.CPU:
		return measurePreset(ctx, preset, o)
	}
	return measureDevice(ctx, preset, o)
}

// measureDevice is measurePreset on a device, which o.Device names.
func measureDevice(ctx context.Context, preset string, o StepOptions) (m OnDevice, err error) {
	preset, cfgs, err := presetOf(preset)
	if err := errors.Join(err, o.check(), vulkan.Check(o.Device)); err != nil {
		return m, err
	}
	if len(cfgs) > 1 {
		return m, fmt.Errorf("--device %s: name one numerics, not %d", o.Device, len(cfgs))
	}
	cfg := cfgs[0]
	o.settle(cfg)
	devices, err := vulkan.Choose(o.Device, vulkan.Cache(), cfg.Numerics, func(string) {})
	if err != nil {
		return m, err
	}
	defer devices.Close()
	if len(devices) == 0 {
		return m, fmt.Errorf("--device %s: there is no device that is right and faster than the processors; measure those without --device", o.Device)
	}
	m = OnDevice{Device: devices.String(), Model: preset, Numerics: cfg.Numerics.String(), Batch: o.Batch, Sequence: o.Sequence,
		Operations: float64(o.Batch*o.Sequence) * StepOperations(cfg, o.Sequence)}
	seed := wire.Sum("entrain/bench")
	params := llama.Init(cfg, seed)
	m.Params = len(params)
	work, tokens, source := make([]float32, len(params)), make([]uint32, o.Batch*(o.Sequence+1)), prng.New(seed, "tokens")
	for i := range tokens {
		tokens[i] = uint32(source.Uint64n(uint64(cfg.Vocab)))
	}
	model, err := devices.NewModel(cfg, nil, o.Sequence, o.Batch, true, nil)
	if err != nil {
		return m, err
	}
	m.Memory, err = model.Memory(), m.steps(ctx, model, params, work, tokens, o)
	model.Close()
	if err == nil && len(devices) == 1 { // several leave the codec to the processors
		err = m.codecs(ctx, devices[0], cfg, params, work, tokens[:o.Sequence+1])
	}
	if err != nil {
		return m, err
	}
	m.median = Median(m.Seconds)
	m.TokensPerSecond = float64(o.Batch*o.Sequence) / m.median
	return m, nil
}

// steps measures steps on the device. grad is zeros at first.
func (m *OnDevice) steps(ctx context.Context, model vulkan.Computer, params, grad []float32, tokens []uint32, o StepOptions) error {
	if err := model.Moments(grad, grad); err != nil { // zeros
		return err
	}
	adamw := optim.DefaultAdamW()
	for i := range o.Steps + 1 { // the first one records and warms up
		if err := ctx.Err(); err != nil {
			return err
		}
		start, err := moved(model, func() error { return model.Start(params, 0, true) })
		if err != nil {
			return err
		}
		passes, err := moved(model, func() error { m.Loss, err = model.Grad(tokens, o.Batch, o.Batch); return err })
		if err != nil {
			return err
		}
		back, err := moved(model, func() error { return model.Gradient(grad) })
		if err != nil {
			return err
		}
		update, err := moved(model, func() error {
			norm, err := model.Norm()
			if err != nil {
				return err
			}
			clip, err := codec.Factor(norm, 1)
			if err != nil {
				return err
			}
			return model.Update(clip, adamw.At(uint32(i+1), 1e-4))
		})
		if err != nil {
			return err
		}
		if i > 0 {
			m.Seconds = append(m.Seconds, passes.seconds+update.seconds)
			m.Transfers = append(m.Transfers, start.seconds+back.seconds)
		}
		m.StepBytes = passes.Plus(update.Traffic)
		m.InnerBytes = start.Traffic
	}
	updated, err := moved(model, func() error { return model.Updated(grad, make([]float32, len(grad)), make([]float32, len(grad))) })
	if err != nil {
		return err
	}
	m.InnerBytes = m.InnerBytes.Plus(updated.Traffic)
	return nil
}

// applied is the number of results in the set that a round applies.
const applied = 8

// codecs measures what a round takes besides its passes, once the device has the parameters and the
// state: of one gradient with codec distro, and of one inner step with codec sparseloco.
func (m *OnDevice) codecs(ctx context.Context, device *vulkan.Device, cfg llama.Config, params, after []float32, tokens []uint32) error {
	pool := exact.NewPool(min(runtime.GOMAXPROCS(0), exact.MaxWorkers))
	defer pool.Close()
	of := distro.Config{}.Kind().Defaults.(distro.Config)
	gradient, err := distro.New(cfg.Layout(), of, pool)
	if err != nil {
		return err
	}
	inner, err := sparseloco.Options{}.Kind().Defaults.New(cfg.Layout(), pool)
	if err != nil {
		return err
	}
	encode, apply, err := round(ctx, device, cfg, gradient, of.ClipNorm, params, after, tokens)
	if err != nil {
		return err
	}
	m.Encode, m.Apply, m.ShareBytes = encode.seconds, apply.seconds, encode.Plus(apply.Traffic)
	if encode, apply, err = round(ctx, device, cfg, inner, 0, params, after, tokens); err != nil {
		return err
	}
	m.InnerEncode, m.InnerApply, m.InnerRoundBytes = encode.seconds, apply.seconds, encode.Plus(apply.Traffic)
	return nil
}

// round measures the second of two rounds of one gradient, clipped to norm clip, or of one inner
// step if clip is 0. The moments stay on the device, as between two rounds, and come back.
func round(ctx context.Context, device *vulkan.Device, cfg llama.Config, c codec.Codec, clip float32,
	params, after []float32, tokens []uint32) (encode, apply spent, err error) {
	inner := clip == 0
	model, err := device.NewModel(cfg, len(tokens)-1, 1, inner, c)
	if err != nil {
		return encode, apply, err
	}
	defer model.Close()
	state, mean, square := make([]float32, len(params)), make([]float32, len(params)), make([]float32, len(params))
	if inner {
		err = model.Moments(mean, square)
	}
	for version := range uint64(2) {
		if err == nil {
			err = errors.Join(ctx.Err(), model.Start(params, version+1, true))
		}
		if err == nil {
			_, err = model.Grad(tokens, 1, 1)
		}
		if inner && err == nil {
			err = model.Update(1, optim.DefaultAdamW().At(uint32(version+1), 1e-4))
		}
		if err != nil {
			return encode, apply, err
		}
		var payload []byte
		encode, err = moved(model, func() error {
			scale := float32(1)
			if inner {
				if err := model.Change(); err != nil {
					return err
				}
			}
			norm, err := model.Norm()
			if err == nil && !inner {
				scale, err = codec.Factor(norm, clip)
				scale *= 1e-4
			}
			if err == nil {
				payload, _, _, err = model.Encode(state, after, version+1, version+2, scale)
			}
			if inner && err == nil {
				err = model.Updated(nil, mean, square)
			}
			return err
		})
		if err != nil {
			return encode, apply, err
		}
		copy(state, after)
		apply, err = moved(model, func() error {
			_, err := model.Apply(params, after, version+2, slices.Repeat([][]byte{payload}, applied), 1e-4)
			return err
		})
		copy(params, after)
	}
	return encode, apply, err
}

// spent is what something took.
type spent struct {
	gpu.Traffic
	seconds float64
}

// moved runs do, and returns what it took and moved.
func moved(m vulkan.Computer, do func() error) (spent, error) {
	before, begin := m.Traffic(), time.Now()
	err := do()
	return spent{m.Traffic().Since(before), time.Since(begin).Seconds()}, err
}

// String describes the step.
func (m OnDevice) String() string {
	bus := func(t gpu.Traffic) string { return view.Bytes(t.To) + " there, " + view.Bytes(t.From) + " back" }
	text := fmt.Sprintf("%s, %s, %s parameters, %d x %d tokens on %s: %s tokens/s, a step %.4f s, %s, transfers %.4f s, memory %s, loss %.3f\n"+
		"moved: a step %s; besides, a share of inner steps %s",
		m.Model, m.Numerics, view.Thousands(uint64(m.Params)), m.Batch, m.Sequence, m.Device, tokensText(m.TokensPerSecond), m.median,
		flopsText(m.Operations/m.median), Median(m.Transfers), view.Bytes(m.Memory), m.Loss, bus(m.StepBytes), bus(m.InnerBytes))
	if m.Encode > 0 {
		text += fmt.Sprintf(", a round of one gradient %s\ncodec and hashes: encode %.4f s, apply of %d results %.4f s; after inner steps %.4f s and %.4f s, moved %s",
			bus(m.ShareBytes), m.Encode, applied, m.Apply, m.InnerEncode, m.InnerApply, bus(m.InnerRoundBytes))
	}
	return text
}
