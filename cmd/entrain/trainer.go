package main

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// trainer is all that computes for a run, made from its specification and its data.
type trainer struct {
	spec      spec.Spec
	model     llama.Config
	tokenizer tokenizer.Tokenizer
	set       *data.Set
	pool      *exact.Pool
	parts     cpu.Config // what the engine was made of
	engine    *cpu.Engine
	from      string // checkpoint that the run goes on from, if it is on this machine
	heldOut   uint64 // sequences that a measurement of the held-out loss reads; 0: there are none
}

// newTrainer opens the data in dir, or at the addresses that it lists, which must be the run's, and allocates what training takes. A
// measurement of the held-out loss reads at most heldOutMost sequences. Close must be called.
func newTrainer(ctx context.Context, s spec.Spec, dir string, workers int, heldOutMost uint64) (*trainer, error) {
	manifest, err := wire.ParseHash(s.Data.Manifest)
	if err != nil {
		return nil, fmt.Errorf("the run's data.manifest %q: %w", s.Data.Manifest, err)
	}
	t := &trainer{spec: s}
	if t.model, err = s.Llama(); err != nil {
		return nil, err
	}
	t.set, err = openData(ctx, dir, manifest, data.Options{SequenceTokens: uint32(s.Data.Sequence), Seed: s.DataSeed(), First: s.First()})
	if err != nil {
		return nil, err
	}
	if err := t.make(s, workers, heldOutMost); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// make makes what training takes besides the data.
func (t *trainer) make(s spec.Spec, workers int, heldOutMost uint64) (err error) {
	m := t.set.Manifest()
	if int(m.Vocab) > t.model.Vocab {
		return fmt.Errorf("data set %q has a vocabulary of %d, the model one of %d", m.Name, m.Vocab, t.model.Vocab)
	}
	if t.tokenizer, err = t.set.Tokenizer(); err != nil {
		return err
	}
	if err := sameTokenizer(s, m, t.tokenizer, nil); err != nil {
		return err
	}
	schedule, err := s.Schedule()
	if err != nil {
		return err
	}
	t.pool = exact.NewPool(workers)
	codec, err := s.Codec(t.model.Layout(), t.pool)
	if err != nil {
		return err
	}
	t.heldOut = min(heldOutMost, t.set.HeldOut().Len())
	t.parts = cpu.Config{
		Model: t.model, Codec: codec, Schedule: schedule, Inner: s.Optimizer.Inner(), Pool: t.pool,
		Data: t.set, HeldOut: t.set.HeldOut(), HeldOutSequences: t.heldOut,
		Sequence: s.Data.Sequence, Micro: microBatch,
	}
	if t.engine, err = cpu.New(t.parts); err != nil {
		return err
	}
	return nil
}

func (t *trainer) close() {
	if t.pool != nil {
		t.pool.Close()
	}
	t.set.Close()
}

// initial makes the run's first parameters, or reads them from the checkpoint that it goes on from; nil if that is not here. The
// specification was checked, so they can be made.
func (t *trainer) initial() []float32 {
	if _, ok := t.spec.From(); ok {
		if t.from == "" {
			return nil
		}
		m, err := model.Open(t.from)
		if err != nil || len(m.Params) != t.model.Layout().Len() {
			return nil // damaged meanwhile; peers have the model
		}
		return m.Params
	}
	params, err := t.spec.InitialParams()
	if err != nil {
		panic("entrain: a checked specification has no model: " + err.Error())
	}
	return params
}

// microBatch is how many sequences are computed at once: enough to keep the processor busy, few enough to spare memory. The bits do not depend on it.
const microBatch = 8
