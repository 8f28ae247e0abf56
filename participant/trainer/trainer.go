// Package trainer prepares what computes for a run: it opens the data, finds the checkpoint that
// the run continues, makes the engine, and tests and measures this machine.
package trainer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// Trainer is all that computes for a run, made from its specification and its data.
type Trainer struct {
	Spec      spec.Spec
	Model     llama.Config
	Tokenizer tokenizer.Tokenizer
	Set       *data.Set
	Run       engine.Run // what the engine was made for
	Engine    engine.Engine
	Computing cpu.Options
	devices   vulkan.Devices  // none: the processors
	model     vulkan.Computer // on the devices
	From      string          // checkpoint of model.from, if it is on this machine
	HeldOut   uint64          // sequences that a measurement of the held-out loss reads
}

// A Machine says what of this machine computes. It changes the speed, never the result.
type Machine struct {
	Workers int               // goroutines
	Device  string            // as vulkan.Choose takes it; "" is cpu
	Tell    func(text string) // told why a device is not used; may be nil
	// From is the directory of the checkpoint that the specification's model.from names
	// (FindOrigin); "" if it is not on this machine.
	From string
	// Frozen gets the n parameters of the frozen model, if From is "", by their hash; nil if nobody
	// is to be asked.
	Frozen func(ctx context.Context, root wire.Hash, n int) ([]float32, error)
}

// New is Open, and allocates what training takes. A measurement of the held-out loss reads at most
// heldOutMost sequences.
func New(ctx context.Context, s spec.Spec, at data.Place, m Machine, heldOutMost uint64) (*Trainer, error) {
	t, err := Open(ctx, s, at, m.From)
	if err != nil {
		return nil, err
	}
	if m.Tell == nil {
		m.Tell = func(string) {}
	}
	if err := t.make(ctx, m, heldOutMost); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Open opens the run's data in a directory, or at the addresses of a place, for a trainer that
// computes nothing. from is as Machine.From. The trainer must be closed.
func Open(ctx context.Context, s spec.Spec, at data.Place, from string) (_ *Trainer, err error) {
	manifest, err := wire.ParseHash(s.Data.Manifest)
	if err != nil {
		return nil, fmt.Errorf("the run's data.manifest %q: %w", s.Data.Manifest, err)
	}
	t := &Trainer{Spec: s, From: from}
	if t.Model, err = s.Llama(); err != nil {
		return nil, err
	}
	t.Set, err = OpenData(ctx, at, manifest, data.Options{SequenceTokens: uint32(s.Data.Sequence), Seed: s.DataSeed(), First: s.First()})
	if err != nil {
		return nil, err
	}
	m := t.Set.Manifest()
	if int(m.Vocab) > t.Model.Vocab {
		err = fmt.Errorf("data set %q has a vocabulary of %d, the model one of %d", m.Name, m.Vocab, t.Model.Vocab)
	} else if t.Tokenizer, err = t.Set.Tokenizer(); err == nil {
		err = SameTokenizer(s, m, t.Tokenizer, nil)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// make makes all but the data.
func (t *Trainer) make(ctx context.Context, m Machine, heldOutMost uint64) (err error) {
	t.Computing = cpu.Options{Workers: m.Workers, Micro: MicroBatch}
	if t.Run, err = t.Spec.Engine(); err != nil {
		return err
	}
	if t.Run.Base, err = t.base(ctx, m.Frozen); err != nil {
		return err
	}
	t.HeldOut = min(heldOutMost, t.Set.HeldOut().Len())
	t.Run.Data, t.Run.HeldOut, t.Run.HeldOutSequences = t.Set, t.Set.HeldOut(), t.HeldOut
	o := t.Computing
	if err := t.take(m, &o); err != nil {
		return err
	}
	t.Engine, err = cpu.New(t.Run, o)
	return err
}

// base reads the frozen model of a run of adapters; it returns nil in other runs.
func (t *Trainer) base(ctx context.Context, frozen func(context.Context, wire.Hash, int) ([]float32, error)) ([]float32, error) {
	if t.Model.LoRA == (llama.LoRA{}) {
		return nil, nil
	}
	want, _ := t.Spec.From() // Check demands it
	n := t.Model.Base().Layout().Len()
	if t.From == "" {
		err := errors.New("it is not on this machine")
		if frozen != nil {
			var params []float32
			if params, err = frozen(ctx, want, n); err == nil {
				return params, nil
			}
		}
		at := "DIR"
		if strings.Contains(t.Spec.Model.FromLocation, "://") {
			at = t.Spec.Model.FromLocation
		}
		return nil, fmt.Errorf("the run trains adapters of the model with the parameters %s: %w; name a copy with --from %s", want, err, at)
	}
	m, err := model.Open(t.From)
	if err != nil {
		return nil, err
	}
	if got := m.Hash(); got != want || len(m.Params) != n {
		return nil, fmt.Errorf("the model in %q has the parameters %s, but the run's adapters belong to %s", t.From, got, want)
	}
	return m.Params, nil
}

// take opens the device that m names, and makes its model part of o.
func (t *Trainer) take(m Machine, o *cpu.Options) (err error) {
	if t.devices, err = vulkan.Choose(m.Device, vulkan.Cache(), t.Model.Numerics, m.Tell); err != nil || len(t.devices) == 0 {
		return err
	}
	onDevice, err := t.Run.Codec.New(t.Model.Layout(), nil)
	if err != nil {
		return err
	}
	o.Micro *= len(t.devices) // so that none waits for the others
	model, err := t.devices.NewModel(t.Model, t.Run.Base, t.Run.Sequence, o.Micro, t.Run.Inner != nil, onDevice)
	switch {
	case err == nil:
		t.model = model
		o.Device, o.DeviceFailed = model, func(err error) {
			m.Tell(fmt.Sprintf("%v is left out until the next start, and the share is computed again on the processors: %v", t.devices, err))
		}
	case m.Device == vulkan.Auto:
		m.Tell(fmt.Sprintf("%v is not used: %v", t.devices, err))
	default:
		return fmt.Errorf("--device %s: %w", m.Device, err)
	}
	return nil
}

// NewEngine makes an engine with this trainer's settings, on the processors. The caller must close
// it.
func (t *Trainer) NewEngine(run engine.Run) (engine.Engine, error) {
	return cpu.New(run, t.Computing)
}

// Close frees the workers and the data set.
func (t *Trainer) Close() {
	if t.Engine != nil {
		t.Engine.Close()
	}
	if t.model != nil {
		t.model.Close()
	}
	t.devices.Close()
	t.Set.Close()
}

// Initial returns the run's first parameters: made from its seed, or read from the checkpoint that
// it continues. It returns nil if that is not on this machine.
func (t *Trainer) Initial() []float32 {
	if _, ok := t.Spec.From(); ok && t.Spec.Model.LoRA == nil {
		if t.From == "" {
			return nil
		}
		m, err := model.Open(t.From)
		if err != nil || len(m.Params) != t.Model.Layout().Len() {
			return nil // damaged meanwhile; peers have the model
		}
		return m.Params
	}
	params, err := t.Spec.InitialParams()
	if err != nil {
		panic("entrain: a checked specification has no model: " + err.Error())
	}
	return params
}

// MicroBatch is the number of sequences computed at once: enough to keep the processor busy, few
// enough to spare memory. The bits do not depend on it.
const MicroBatch = 8
