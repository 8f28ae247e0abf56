package verify

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// blocksMax bounds the blocks of a codec whose steps can be disputed: a referee keeps about 50
// bytes per block while the run lasts. With blocks of 64 by 64 the bound allows four billion
// parameters.
const blocksMax = 1 << 20

// rules are the parts of a specification that determine a step's program and its inputs.
type rules struct {
	setup    trace.Setup
	model    *trace.Model
	tail     func(c dispute.Case) trace.Tail
	frozen   int       // parameters of the frozen model, 0 in a run without one
	base     wire.Hash // their hash
	params   int       // parameters, which is also the number of floats in an optimizer state
	most     uint32    // most sequences in a share
	gradient bool      // a step is disputed up to its gradient, and needs no state
	manifest wire.Hash // hash of the data's manifest
	order    wire.Hash // seed of the order of the sequences
	first    uint64    // first sequence of that order that the run trains on
}

// newRules reads a specification. The error explains why the run's steps cannot be disputed.
func newRules(s spec.Spec) (*rules, error) {
	cfg, err := s.Llama()
	if err != nil {
		return nil, err
	}
	layout := cfg.Layout()
	if !s.Disputable() {
		return nil, fmt.Errorf("steps with optimizer.codec = %q cannot be disputed", s.Optimizer.Kind().Name)
	}
	r := &rules{
		setup:  trace.Setup{Model: cfg, Sequence: s.Data.Sequence},
		params: layout.Len(), gradient: s.Buckets(), order: s.DataSeed(), first: s.First(), most: max(s.Batch.Start, s.Batch.End),
	}
	if cfg.LoRA != (llama.LoRA{}) {
		r.frozen = cfg.Base().Layout().Len()
		r.base, _ = s.From() // Check demands it
	}
	if r.model, err = trace.NewModel(r.setup); err != nil {
		return nil, err
	}
	if r.tail, err = newTail(s, layout); err != nil {
		return nil, err
	}
	if s.Data.Manifest == "" {
		return nil, errors.New("data.manifest is not set: sequences cannot be identified")
	}
	if r.manifest, err = wire.ParseHash(s.Data.Manifest); err != nil {
		return nil, fmt.Errorf("data.manifest: %w", err)
	}
	if _, err := r.program(dispute.Case{Sequences: r.most}); err != nil {
		return nil, fmt.Errorf("a step of %d sequences: %w", r.most, err)
	}
	return r, nil
}

// newTail returns what makes the tail of each step. In a run of buckets nobody serves the optimizer
// state that a step begins from, so its tail ends with the gradient.
func newTail(s spec.Spec, layout tensor.Layout) (func(dispute.Case) trace.Tail, error) {
	if s.Buckets() {
		tails, err := trace.NewGradientTails(layout)
		if err != nil {
			return nil, err
		}
		return func(c dispute.Case) trace.Tail { return tails.Tail(c.Commitment) }, nil
	}
	kind := s.Optimizer.Kind()
	if n := kind.Disputable(s.Optimizer, layout); n > blocksMax {
		return nil, fmt.Errorf("the parameters have %d blocks, at most %d can be disputed: increase optimizer.%s.block",
			n, blocksMax, kind.Name)
	}
	made, err := s.Optimizer.New(layout, nil)
	if err != nil {
		return nil, err
	}
	tails, err := trace.NewTails(made.(codec.Disputable), layout)
	if err != nil {
		return nil, err
	}
	if s.Slices() {
		tails.CommitPieces()
	}
	schedule, err := s.Schedule()
	if err != nil {
		return nil, err
	}
	return func(c dispute.Case) trace.Tail {
		v := c.Commitment
		return tails.Tail(schedule.LR(uint32(c.Step)), trace.Share{Run: v.Run, Round: uint32(v.Round), Member: uint32(v.Member)})
	}, nil
}

// program returns the program of a step.
func (r *rules) program(c dispute.Case) (trace.Program, error) {
	return r.model.Program(c.Sequences, r.tail(c))
}
