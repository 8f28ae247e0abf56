// Package cpu is the engine that computes on the machine's processors with package exact. Its
// results are the definition for every other engine.
//
// The share's gradient is the mean over its sequences, or the change that several inner steps over
// parts of them make ([optim.Inner]). The number of sequences computed at once is a matter of
// memory and changes no bit (see package llama).
package cpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/trace"
)

// Config is what an engine computes with.
type Config struct {
	Model    llama.Config
	Codec    codec.Codec
	Schedule optim.Schedule
	Inner    *optim.Inner // nil: a share is one gradient
	Pool     *exact.Pool
	Data     engine.Source
	HeldOut  engine.Source // may be nil
	// HeldOutSequences is the number of sequences of the held-out split that a measurement reads.
	HeldOutSequences uint64
	Sequence         int // tokens trained on in one sequence
	Micro            int // sequences computed at once
}

// Engine is an [engine.Engine]. It holds the memory for activations and gradients.
type Engine struct {
	cfg    Config
	model  *llama.Model
	length int
	inner  *inner // nil if a share is one gradient
	grad   []float32
	tokens []uint32
}

var _ engine.Engine = (*Engine)(nil)

// New allocates an engine.
func New(cfg Config) (*Engine, error) {
	if cfg.Micro < 1 || cfg.Sequence < 1 || cfg.Sequence > cfg.Model.Context {
		return nil, fmt.Errorf("engine: %d sequences of %d tokens at once do not fit a context of %d",
			cfg.Micro, cfg.Sequence, cfg.Model.Context)
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

// Step implements [engine.Engine].
func (e *Engine) Step(
	ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32,
) (engine.Result, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return engine.Result{}, errNoSequences
	}
	p, s := floats(params), floats(state)
	lr := e.cfg.Schedule.LR(step)
	var loss float32
	var err error
	if e.inner != nil {
		loss, err = e.walk(ctx, p, s, spans, lr)
	} else {
		loss, err = e.gradient(ctx, p, spans, total)
	}
	if err != nil {
		return engine.Result{}, err
	}
	payload, err := e.cfg.Codec.Encode(nil, e.inner.part(s, e.length), e.grad, lr)
	if err != nil {
		return engine.Result{}, err
	}
	e.inner.keep(s, e.length)
	return engine.Result{
		Payload: payload, Loss: loss, Tokens: uint64(total) * uint64(e.cfg.Sequence),
		Gradient: merkle.Root(e.Leaves(Floats(e.grad))),
		LR:       lr, GradNorm: codec.Norm(e.cfg.Pool, e.grad),
	}, nil
}

var errNoSequences = errors.New("engine: a share without sequences")

// gradient leaves the mean gradient of the share in e.grad.
func (e *Engine) gradient(
	ctx context.Context, params []float32, spans []batch.Span, total int,
) (loss float32, err error) {
	if source, ok := e.cfg.Data.(interface{ Ahead(first, n uint64) }); ok {
		for _, span := range spans {
			source.Ahead(span.Start, uint64(span.Count))
		}
	}
	clear(e.grad)
	err = e.read(ctx, spans, func(n int) error {
		l, err := e.model.Grad(params, e.grad, e.rows(n), n, e.cfg.Sequence, total)
		loss += l * float32(n) / float32(total)
		return err
	})
	return loss, err
}

// rows returns the tokens of the first n sequences read.
func (e *Engine) rows(n int) []uint32 { return e.tokens[:n*(e.cfg.Sequence+1)] }

// read reads the sequences of spans, at most Micro at once, and calls do after each batch of n.
func (e *Engine) read(ctx context.Context, spans []batch.Span, do func(n int) error) error {
	filled := 0
	flush := func() error {
		if filled == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n := filled
		filled = 0
		return do(n)
	}
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			filled++
			if err := e.cfg.Data.Read(i, e.rows(filled)[(filled-1)*(e.cfg.Sequence+1):]); err != nil {
				return fmt.Errorf("sequence %d: %w", i, err)
			}
			if filled == e.cfg.Micro {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// Apply implements [engine.Engine].
func (e *Engine) Apply(params engine.Vector, payloads [][]byte, step uint32) error {
	return e.cfg.Codec.Apply(floats(params), payloads, e.cfg.Schedule.LR(step))
}

// Check implements [engine.Engine].
func (e *Engine) Check(payload []byte) error { return e.cfg.Codec.Check(payload) }

// Gradient implements [engine.Engine].
func (e *Engine) Gradient(
	ctx context.Context, params engine.Vector, spans []batch.Span,
) (engine.Gradient, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return engine.Gradient{}, errNoSequences
	}
	loss, err := e.gradient(ctx, floats(params), spans, total)
	if err != nil {
		return engine.Gradient{}, err
	}
	grad := Floats(e.grad)
	return engine.Gradient{Values: grad, Root: merkle.Root(e.Leaves(grad)), Loss: loss}, nil
}

// Loss implements [engine.Engine].
func (e *Engine) Loss(ctx context.Context, params engine.Vector, spans []batch.Span) (float64, error) {
	total := batch.Total(spans)
	if total == 0 {
		return 0, errNoSequences
	}
	var sum float64
	err := e.read(ctx, spans, func(n int) error {
		l, err := e.model.Loss(floats(params), e.rows(n), n, e.cfg.Sequence)
		sum += float64(float64(l) * float64(n))
		return err
	})
	if err != nil {
		return 0, err
	}
	return sum / float64(total), nil
}

// HeldOut implements [engine.Engine].
func (e *Engine) HeldOut(ctx context.Context, params engine.Vector) (float32, error) {
	if e.cfg.HeldOut == nil || e.cfg.HeldOutSequences == 0 {
		return 0, errors.New("engine: there is no held-out split")
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
		l, err := e.model.Loss(floats(params), e.rows(n), n, e.cfg.Sequence)
		if err != nil {
			return 0, err
		}
		sum += float64(l) * float64(n)
		i += uint64(n)
	}
	return float32(sum / float64(e.cfg.HeldOutSequences)), nil
}

// Trace implements [engine.Engine].
func (e *Engine) Trace(ctx context.Context, p trace.Program, src trace.Sources) (*trace.Trace, error) {
	return trace.Run(ctx, e.cfg.Pool, p, src)
}

// ParamsLen implements [engine.Engine].
func (e *Engine) ParamsLen() int { return e.length }

// StateLen implements [engine.Engine].
func (e *Engine) StateLen() int {
	n := e.cfg.Codec.StateLen()
	if e.inner != nil {
		n += e.inner.StateLen(e.length)
	}
	return n
}

// PayloadMax implements [engine.Engine].
func (e *Engine) PayloadMax() int { return e.cfg.Codec.PayloadMax() }
