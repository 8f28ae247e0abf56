package main

import (
	"fmt"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/spec"
)

// sizes is what a run takes of a member's machine and line, estimated.
type sizes struct {
	Parameters uint64 `json:"parameters"`
	Model      uint64 `json:"model_bytes"`   // fetched once, by who joins
	Memory     uint64 `json:"memory_bytes"`  // of a member; checkpoints being written and disputes come on top
	Payload    uint64 `json:"payload_bytes"` // a member's result in one round, at most
}

// sizesOf estimates what a run takes.
func sizesOf(s spec.Spec) (z sizes, err error) {
	model, err := s.Llama()
	if err != nil {
		return z, err
	}
	pool := exact.NewPool(1)
	defer pool.Close()
	codec, err := s.Codec(model.Layout(), pool)
	if err != nil {
		return z, fmt.Errorf("the run's codec: %w", err)
	}
	n := uint64(model.Layout().Len())
	state, work := uint64(codec.StateLen()), n
	if inner := s.Optimizer.Inner(); inner != nil {
		state += uint64(inner.StateLen(int(n)))
		work = 4 * n // the gradient, the parameters on the way, and the optimizer's moments
	}
	// Parameters: those of this round, those before, which peers may still ask for, and those being made; with overlap one more. States: as
	// before and after a step, and with verification those of the rounds whose checks are not drawn. And what a step works with.
	params, states := 3+uint64(s.Members.Overlap), uint64(2)
	if s.Trust.VerificationPercent > 0 {
		states += 2
	}
	z = sizes{Parameters: n, Model: 4 * n, Payload: uint64(codec.PayloadMax())}
	z.Memory = 4*(params*n+states*state+work) + stepBytes(model, microBatch*s.Data.Sequence)
	return z, nil
}

// stepBytes estimates what a backward pass of so many tokens holds of each layer, and the logits.
func stepBytes(c llama.Config, rows int) uint64 {
	d, heads := c.Hidden, (c.Heads+2*c.KVHeads)*c.HeadDim
	layer := rows * (2*d + heads + c.Heads*c.HeadDim + 2*c.FFN + 2*c.Heads)
	rest := rows * (4*d + 2*heads + 2*c.FFN)
	return 4 * (uint64(c.Layers)*uint64(layer) + uint64(rest))
}
