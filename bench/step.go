package bench

import (
	"fmt"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// A Step is a training step as every engine has one: the gradient of a batch, and a step of AdamW.
type Step struct {
	cfg             llama.Config
	model           *llama.Model
	optimizer       *optim.AdamW
	params, grad    []float32
	tokens          []uint32
	batch, sequence int
}

// newStep returns the step of a new model. Each step trains on batch sequences of sequence tokens,
// which are random, and the same in every step. Pool computes it.
func newStep(cfg llama.Config, batch, sequence int, pool *exact.Pool) (*Step, error) {
	model, err := llama.New(cfg, pool, batch, sequence)
	if err != nil {
		return nil, err
	}
	seed := wire.Sum("entrain/bench")
	params := llama.Init(cfg, seed)
	optimizer, err := optim.NewAdamW(len(params), optim.DefaultAdamW(), pool)
	if err != nil {
		return nil, err
	}
	tokens, source := make([]uint32, batch*(sequence+1)), prng.New(seed, "tokens")
	for i := range tokens {
		tokens[i] = uint32(source.Uint64n(uint64(cfg.Vocab)))
	}
	return &Step{cfg: cfg, model: model, optimizer: optimizer, params: params, grad: exact.Make[float32](len(params)),
		tokens: tokens, batch: batch, sequence: sequence}, nil
}

// stepRate is the learning rate of a Step: it matters to no speed, and lets the loss fall as it
// should.
const stepRate = 1e-3

// Run does the step once and returns the loss before it.
func (s *Step) Run() (loss float32, err error) {
	clear(s.grad)
	loss, err = s.model.Grad(s.params, s.grad, s.tokens, s.batch, s.sequence, s.batch)
	if err != nil {
		return loss, fmt.Errorf("training step: %w", err)
	}
	s.optimizer.Step(s.params, s.grad, stepRate)
	return loss, nil
}

// Params is the number of parameters.
func (s *Step) Params() int { return len(s.params) }

// Tokens is the number of tokens trained on in a step.
func (s *Step) Tokens() int { return s.batch * s.sequence }

// Operations is the number of floating-point operations that a step's matrix products need: see
// StepOperations.
func (s *Step) Operations() float64 { return float64(s.Tokens()) * StepOperations(s.cfg, s.sequence) }

// StepOperations is the number of floating-point operations that the matrix products of a
// training step need, a token: two for each multiply-add, forward once and backward twice. A
// token is multiplied with each weight of each matrix but the embedding, and attends to itself
// and to those before it, half the sequence on average. What is computed again to save memory
// does not count, nor does what is not a product of matrices.
func StepOperations(c llama.Config, sequence int) float64 {
	heads, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	layer := c.Hidden*(heads+2*kv) + heads*c.Hidden + 3*c.Hidden*c.FFN
	weights := c.Layers*layer + c.Vocab*c.Hidden
	attention := c.Layers * 2 * heads * (sequence + 1) / 2 // scores, and their product with the values
	return 3 * 2 * float64(weights+attention)
}

// stepMemory estimates the bytes that a Step takes: parameters, gradient and the two means of
// AdamW; what the backward pass needs of each layer; and the logits of what is computed at a
// time.
func stepMemory(c llama.Config, batch, sequence int) uint64 {
	rows := batch * sequence
	if c.Tied {
		rows = sequence // a tied model computes one sequence at a time
	}
	d, heads := c.Hidden, (c.Heads+2*c.KVHeads)*c.HeadDim
	layer := rows * (2*d + heads + c.Heads*c.HeadDim + 2*c.FFN + 2*c.Heads)
	rest := rows * (4*d + 2*heads + 2*c.FFN + c.Vocab)
	return 4 * uint64(4*c.Layout().Len()+c.Layers*layer+rest)
}
