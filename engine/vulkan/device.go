// Package vulkan computes on GPUs, through Vulkan 1.2, to the bits of package llama: losses,
// gradients, inner steps, codecs distro and sparseloco, and the hashes of what these leave. A Model
// is what engine/cpu takes instead of its own; several devices share one by its layers.
//
// A device takes part only after a proof on this very machine (Open): operations on operands of
// each class, hostile products, and a step of small models, all compared with package exact. The
// fastest mode of computing that passes is taken. While it computes, random tiles are computed
// again on the processor; after the first difference the engine leaves the device for good.
package vulkan

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// Choices of a device besides vulkan:N.
const (
	CPU  = "cpu"  // the machine's processors
	Auto = "auto" // the fastest of the processors and the GPUs that pass the proof
)

// Check returns an error if choice names no device: it is not cpu, which "" is too, auto, or
// vulkan:N, of which several may follow each other with commas.
func Check(choice string) error {
	if choice == "" || choice == CPU || choice == Auto {
		return nil
	}
	if _, err := numbers(choice); err != nil {
		return fmt.Errorf("--device %q: want cpu, auto or vulkan:N, or several as vulkan:0,vulkan:1; entrain bench --device list shows the devices", choice)
	}
	return nil
}

func numbers(choice string) (all []int, err error) {
	for name := range strings.SplitSeq(choice, ",") {
		text, ok := strings.CutPrefix(name, "vulkan:")
		n, err := strconv.ParseUint(text, 10, 8)
		if !ok || err != nil {
			return nil, errors.New("no number of a device")
		}
		all = append(all, int(n))
	}
	return all, nil
}

// A Device is an open device in the mode in which it passed the proof.
type Device struct {
	Number int
	gpu.Info
	Proof Proof

	instance *gpu.Instance
	device   *gpu.Device
	k        *kernel.Kernels
}

// A Proof is what a proof of a device found.
type Proof struct {
	Mode     kernel.Mode      `json:"mode"`  // of no meaning unless Right
	Right    bool             `json:"right"` // the device computes the bits of package exact
	Findings []kernel.Finding `json:"findings,omitempty"`
	Reason   string           `json:"reason,omitempty"` // why it is not right

	cached bool
}

// Open opens a device and proves it, or takes the proof of the same device, driver and shaders that
// is in directory cache; "" keeps none.
func Open(n int, cache string) (d *Device, err error) {
	d = &Device{Number: n}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.instance, err = gpu.Open(); err != nil {
		return nil, err
	}
	if d.device, err = d.instance.Device(n); err != nil {
		return nil, err
	}
	d.Info = d.device.Info
	d.Proof = d.remembered(cache)
	if d.Proof.cached && d.Proof.Right {
		if d.k, err = kernel.New(d.device, d.Proof.Mode); err != nil {
			return nil, err
		}
		return d, nil
	}
	if d.Proof.cached {
		return nil, errors.New(d.Proof.Reason)
	}
	if err := d.prove(); err != nil {
		return nil, err
	}
	if err := d.remember(cache); err != nil {
		return nil, err
	}
	if !d.Proof.Right {
		return nil, errors.New(d.Proof.Reason)
	}
	return d, nil
}

// prove tries the modes, the fastest first. The error is that of a device that does not work.
func (d *Device) prove() error {
	least, err := kernel.Least(d.device)
	if err != nil {
		return err
	}
	for _, mode := range kernel.Modes() {
		if mode&least != least {
			continue
		}
		if d.k, err = kernel.New(d.device, mode); err != nil {
			return err
		}
		if d.Proof.Findings, err = kernel.Prove(d.k); err != nil {
			return err
		}
		for _, s := range steps {
			f, err := proveStep(d.k, s.name, s.codec, s.change)
			if err != nil {
				return err
			}
			d.Proof.Findings = append(d.Proof.Findings, f...)
		}
		if d.Proof.Mode, d.Proof.Right = mode, kernel.Proven(d.Proof.Findings); d.Proof.Right {
			return nil
		}
		d.k.Close()
		d.k = nil
	}
	for _, f := range d.Proof.Findings {
		if f.Wrong > 0 {
			d.Proof.Reason = fmt.Sprintf("%s computes other bits in every mode: %v", d.Name, f)
			break
		}
	}
	return nil
}

// steps are the kinds of models whose gradients are proven, and the codecs that encode them.
var steps = []struct {
	name   string
	codec  codec.Options
	change func(c *llama.Config)
}{
	{"biases", proven, func(c *llama.Config) { c.Bias = true }},
	{"a window, inner steps", sparseloco.Options{Chunk: 256, TopK: 16, Decay: 0.9, OuterRate: 0.9, InnerSteps: 1}, func(c *llama.Config) { c.Window = 23 }},
	{"8 bits, norms of heads", proven, func(c *llama.Config) { c.Numerics, c.HeadDim, c.FFN, c.QKNorm = llama.Exact8, 32, 96, true }},
}

var proven = distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1, VotesMax: 1}

// proveStep compares the gradient of a small model with package llama's, and then the codec.
func proveStep(k *kernel.Kernels, name string, o codec.Options, change func(c *llama.Config)) ([]kernel.Finding, error) {
	f := kernel.Finding{Operation: "gradient of a small model", Class: name}
	const seq, batch = 70, 2
	cfg := llama.Config{Vocab: 61, Hidden: 40, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 10, FFN: 88, Context: seq, Theta: 10000, Eps: 1e-5}
	change(&cfg)
	c, err := o.New(cfg.Layout(), nil)
	if err != nil {
		return nil, err
	}
	_, inner := c.(*sparseloco.Codec)
	m, err := newModel(k, cfg, seq, batch, inner, c)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	pool := exact.NewPool(1)
	defer pool.Close()
	host, err := llama.New(cfg, pool, batch, seq)
	if err != nil {
		return nil, err
	}
	params := llama.Init(cfg, wire.Sum("entrain/prove"))
	tokens := make([]uint32, batch*(seq+1))
	for i := range tokens {
		tokens[i] = uint32(i * i % cfg.Vocab)
	}
	want, got := make([]float32, len(params)), make([]float32, len(params))
	if _, err := host.Grad(params, want, tokens, batch, seq, batch); err != nil {
		return nil, err
	}
	err = m.Start(params, 1, true)
	if err == nil {
		_, err = m.Grad(tokens, batch, batch)
	}
	if err == nil {
		err = m.Gradient(got)
	}
	if errors.As(err, new(differs)) {
		f.Wrong, f.Example = 1, err.Error()
		return []kernel.Finding{f}, nil
	}
	if err != nil {
		return nil, err
	}
	f.Compared = len(got)
	for i := range got {
		f.Compare(got[i], want[i], func() string { return fmt.Sprintf("element %d", i) })
	}
	if f.Wrong > 0 {
		return []kernel.Finding{f}, nil
	}
	coded, err := proveCodec(m, want, params, name)
	return []kernel.Finding{f, coded}, err
}

// path returns where the proof of this device is kept.
func (d *Device) path(cache string) string {
	shaders := shader.Hash()
	id := wire.Sum("entrain/device", fmt.Appendf(nil, "%+v", d.Info), shaders[:])
	return filepath.Join(cache, "devices", id.String()[:32]+".json")
}

func (d *Device) remembered(cache string) (p Proof) {
	if cache == "" {
		return p
	}
	b, err := os.ReadFile(d.path(cache))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Mode > kernel.SoftFMA|kernel.Guarded {
		return Proof{}
	}
	p.cached = true
	return p
}

func (d *Device) remember(cache string) error {
	if cache == "" {
		return nil
	}
	b, err := json.MarshalIndent(d.Proof, "", "\t")
	if err != nil {
		return err
	}
	path := d.path(cache)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, 0o644, b)
}

// NewModel returns the model that computes on the device, at most most sequences of seq tokens at
// once. Only with inner can it take inner steps. It runs the codec c too, if it can; c may be nil.
func (d *Device) NewModel(cfg llama.Config, seq, most int, inner bool, c codec.Codec) (*Model, error) {
	m, err := newModel(d.k, cfg, seq, most, inner, c)
	if err == nil {
		m.name = d.String()
	}
	return m, err
}

// Close releases the device.
func (d *Device) Close() {
	if d == nil {
		return
	}
	if d.k != nil {
		d.k.Close()
	}
	if d.device != nil {
		d.device.Close()
	}
	if d.instance != nil {
		d.instance.Close()
	}
}

// Cache returns where the user's proofs are kept, as Choose takes it; "" if there is no place.
func Cache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "entrain")
}

// Choose returns the devices of a choice, or none for the processors. Auto compares products of
// numerics. Explain is told why.
func Choose(choice, cache string, n llama.Numerics, explain func(text string)) (all Devices, err error) {
	if choice == CPU || choice == "" {
		return nil, nil
	}
	if choice == Auto {
		return fastest(cache, n, explain), nil
	}
	chosen, err := numbers(choice)
	if err != nil {
		return nil, Check(choice)
	}
	for _, n := range chosen {
		d, err := Open(n, cache)
		if err != nil {
			all.Close()
			return nil, fmt.Errorf("--device vulkan:%d: %w", n, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// fastest returns the fastest of the GPUs that are right, or none if the processors are faster.
func fastest(cache string, n llama.Numerics, explain func(text string)) Devices {
	instance, err := gpu.Open()
	if err != nil {
		explain("computing on the processors: " + err.Error())
		return nil
	}
	infos := instance.Devices()
	instance.Close()
	best, most := (*Device)(nil), processors(n)
	for i, info := range infos {
		if info.Kind == gpu.Processor {
			continue
		}
		d, err := Open(i, cache)
		if err != nil {
			explain(fmt.Sprintf("vulkan:%d is not used: %v", i, err))
			continue
		}
		s, err := d.Speed(n)
		if err == nil && s <= most {
			err = fmt.Errorf("%.0f Gflop/s, and the fastest here %.0f", s/1e9, most/1e9)
		}
		if err != nil {
			explain(fmt.Sprintf("vulkan:%d is not used: %v", i, err))
			d.Close()
			continue
		}
		best.Close()
		best, most = d, s
	}
	if best == nil {
		explain("computing on the processors: no GPU is faster")
		return nil
	}
	return Devices{best}
}

// String describes the device in a line.
func (d *Device) String() string {
	mode := d.Proof.Mode.String()
	if d.k != nil && d.k.Matrices != "" {
		mode += ", " + d.k.Matrices
	}
	return fmt.Sprintf("vulkan:%d (%s, %s, %s)", d.Number, d.Name, strings.TrimSpace(d.Driver+" "+d.DriverInfo), mode)
}
