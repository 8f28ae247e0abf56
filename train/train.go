// Package train computes one member's share of one round, and applies accepted sets: the arithmetic of a run, and nothing else.
//
// A step is one function,
//
//	(parameters, optimizer state, sequences, step) -> (payload, new optimizer state)
//
// with the same bits on every machine, so that anyone can compute it again. The share's gradient is the mean over its sequences, or what several
// steps over parts of them come to ([optim.Inner]); how many of them are computed at once is a matter of memory and changes no bit (see package llama).
package train

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/merkle/parallel"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Source gives sequences of tokens by index: data.Set is one. A source that has a method Ahead(first, n uint64) is told of each span of a share
// before it is read.
type Source interface {
	// Read fills dst, of the run's sequence length plus one, with sequence i.
	Read(i uint64, dst []uint32) error
}

// Config is what an engine computes with.
type Config struct {
	Model    llama.Config
	Codec    codec.Codec
	Schedule optim.Schedule
	Inner    *optim.Inner // nil: a share is one gradient
	Pool     *exact.Pool
	Data     Source
	HeldOut  Source // may be nil
	// HeldOutSequences is how many sequences of the held-out split a measurement reads.
	HeldOutSequences uint64
	Sequence         int // tokens trained on in one sequence
	Micro            int // sequences computed at once
}

// Engine computes shares. It holds the memory for activations and gradients, so it is for one job at a time; Check and Leaves may run beside it.
type Engine struct {
	cfg    Config
	model  *llama.Model
	length int
	inner  *inner // nil if a share is one gradient
	grad   []float32
	tokens []uint32
}

// New allocates an engine.
func New(cfg Config) (*Engine, error) {
	if cfg.Micro < 1 || cfg.Sequence < 1 || cfg.Sequence > cfg.Model.Context {
		return nil, fmt.Errorf("train: %d sequences at once and sequences of %d tokens do not fit a context of %d", cfg.Micro, cfg.Sequence, cfg.Model.Context)
	}
	model, err := llama.New(cfg.Model, cfg.Pool, cfg.Micro, cfg.Sequence)
	if err != nil {
		return nil, err
	}
	n := cfg.Model.Layout().Len()
	inner, err := newInner(cfg.Inner, n, cfg.Pool)
	if err != nil {
		return nil, err
	}
	return &Engine{
		cfg: cfg, model: model, length: n, inner: inner,
		grad: make([]float32, n), tokens: make([]uint32, cfg.Micro*(cfg.Sequence+1)),
	}, nil
}

// Result is what a step yields beside the new optimizer state.
type Result struct {
	Payload []byte
	Loss    float32 // mean over the share, nats a token
	Tokens  uint64  // trained on

	// Gradient is the BlobRoot of the share's mean gradient before clipping, or of its pseudo-gradient. Only who computed the share knows it, so a commitment to it
	// (coordinator.WorkHash) is proof of having computed.
	Gradient wire.Hash

	// For people who watch; they bind nobody.
	LR       float32 // the step's learning rate
	GradNorm float64 // Euclidean norm of what Gradient is the root of
}

// Step computes the share given by spans of sequence indexes on params and updates state, the member's optimizer state, in place.
// After an error (ctx ended, data missing, a gradient that is not finite) state is as it was.
func (e *Engine) Step(ctx context.Context, params, state []float32, spans []batch.Span, step uint32) (Result, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return Result{}, fmt.Errorf("train: a share without sequences")
	}
	lr := e.lr(step)
	var loss float32
	var err error
	if e.inner != nil {
		loss, err = e.walk(ctx, params, state, spans, lr)
	} else {
		loss, err = e.gradient(ctx, params, spans, total)
	}
	if err != nil {
		return Result{}, err
	}
	payload, err := e.cfg.Codec.Encode(nil, e.inner.part(state, e.length), e.grad, lr)
	if err != nil {
		return Result{}, err
	}
	e.inner.keep(state, e.length)
	return Result{
		Payload: payload, Loss: loss, Tokens: uint64(total) * uint64(e.cfg.Sequence), Gradient: merkle.Root(e.Leaves(e.grad)),
		LR: lr, GradNorm: codec.Norm(e.cfg.Pool, e.grad),
	}, nil
}

// gradient leaves the mean gradient of the share in e.grad.
func (e *Engine) gradient(ctx context.Context, params []float32, spans []batch.Span, total int) (loss float32, err error) {
	if source, ok := e.cfg.Data.(interface{ Ahead(first, n uint64) }); ok {
		for _, span := range spans {
			source.Ahead(span.Start, uint64(span.Count))
		}
	}
	clear(e.grad)
	rows := e.cfg.Sequence + 1
	filled := 0
	flush := func() error {
		if filled == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := e.model.Grad(params, e.grad, e.tokens[:filled*rows], filled, e.cfg.Sequence, total)
		if err != nil {
			return err
		}
		loss += l * float32(filled) / float32(total)
		filled = 0
		return nil
	}
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			if err := e.cfg.Data.Read(i, e.tokens[filled*rows:(filled+1)*rows]); err != nil {
				return 0, fmt.Errorf("sequence %d: %w", i, err)
			}
			if filled++; filled == e.cfg.Micro {
				if err := flush(); err != nil {
					return 0, err
				}
			}
		}
	}
	return loss, flush()
}

// Apply turns params into the next round's by the payloads of an accepted set in canonical order; step is the one they were made in.
func (e *Engine) Apply(params []float32, payloads [][]byte, step uint32) error {
	return e.cfg.Codec.Apply(params, payloads, e.lr(step))
}

// lr is the rate of a step. Runs count steps from 1 and schedules from 0; the first step of a warmup from zero must not be one of rate zero.
func (e *Engine) lr(step uint32) float32 { return e.cfg.Schedule.LR(step) }

// Check decodes a payload strictly.
func (e *Engine) Check(payload []byte) error { return e.cfg.Codec.Check(payload) }

// HeldOut is the mean loss on the first sequences of the held-out split, in nats a token.
func (e *Engine) HeldOut(ctx context.Context, params []float32) (float32, error) {
	if e.cfg.HeldOut == nil || e.cfg.HeldOutSequences == 0 {
		return 0, fmt.Errorf("train: there is no held-out split")
	}
	rows := e.cfg.Sequence + 1
	var sum float64
	for i := uint64(0); i < e.cfg.HeldOutSequences; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n := int(min(uint64(e.cfg.Micro), e.cfg.HeldOutSequences-i))
		for k := range n {
			if err := e.cfg.HeldOut.Read(i+uint64(k), e.tokens[k*rows:(k+1)*rows]); err != nil {
				return 0, err
			}
		}
		l, err := e.model.Loss(params, e.tokens[:n*rows], n, e.cfg.Sequence)
		if err != nil {
			return 0, err
		}
		sum += float64(l) * float64(n)
		i += uint64(n)
	}
	return float32(sum / float64(e.cfg.HeldOutSequences)), nil
}

// Leaves are the merkle leaves of the little-endian bytes of values, chunk by chunk.
func (e *Engine) Leaves(values []float32) []wire.Hash {
	return parallel.Leaves(e.cfg.Pool, tensor.Bytes(values))
}

// ParamsLen is the number of parameters.
func (e *Engine) ParamsLen() int { return e.length }

// StateLen is the number of float32s of a member's optimizer state.
func (e *Engine) StateLen() int {
	n := e.cfg.Codec.StateLen()
	if e.inner != nil {
		n += e.inner.StateLen(e.length)
	}
	return n
}

// PayloadMax is the length in bytes of the longest payload.
func (e *Engine) PayloadMax() int { return e.cfg.Codec.PayloadMax() }
