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
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/trace"
)

// Options are the settings that change no result.
type Options struct {
	Workers int // threads that compute, 1 to exact.MaxWorkers
	Micro   int // sequences computed at once
	// Kernel is the name of one of exact.Kernels. The default is the fastest.
	Kernel string
	// Device, if not nil, computes losses and gradients instead of the workers. After its first
	// failure they compute the share again, and all that follow. DeviceFailed is told why.
	Device       Model
	DeviceFailed func(error)
}

// Engine is an [engine.Engine]. It holds the memory for activations and gradients.
type Engine struct {
	run     engine.Run
	micro   int
	codec   codec.Codec
	pool    *exact.Pool
	model   *host
	device  Model // nil: none, or it has failed
	coder   Coder // the device, if it runs the codec
	adapts  bool  // the device merges the adapters
	failed  func(error)
	length  int
	inner   *inner // nil if a share is one gradient
	adapted adapted
	grad    []float32
	tokens  []uint32
}

var _ engine.Engine = (*Engine)(nil)

// New allocates an engine for a run. The caller must close it.
func New(run engine.Run, o Options) (*Engine, error) {
	if o.Micro < 1 || run.Sequence < 1 || run.Sequence > run.Model.Context {
		return nil, fmt.Errorf("engine: %d sequences of %d tokens at once do not fit a context of %d",
			o.Micro, run.Sequence, run.Model.Context)
	}
	if o.Workers < 1 || o.Workers > exact.MaxWorkers {
		return nil, fmt.Errorf("engine: %d workers, want 1 to %d", o.Workers, exact.MaxWorkers)
	}
	kernels := exact.Kernels()
	k := slices.IndexFunc(kernels, func(k exact.Kernel) bool { return o.Kernel == "" || o.Kernel == k.Name() })
	if k < 0 {
		return nil, fmt.Errorf("engine: this processor has no kernel %q", o.Kernel)
	}
	e := &Engine{run: run, micro: o.Micro, pool: exact.NewPoolOf(o.Workers, kernels[k]), device: o.Device, failed: o.DeviceFailed}
	if err := e.make(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// make allocates all but the pool.
func (e *Engine) make() (err error) {
	layout := e.run.Model.Layout()
	e.length = layout.Len()
	m, err := llama.New(e.run.Model.Base(), e.pool, e.micro, e.run.Sequence)
	if err != nil {
		return err
	}
	m.Freeze(e.run.Model.LoRA.Targets)
	if e.codec, err = e.run.Codec.New(layout, e.pool); err != nil {
		return err
	}
	if e.inner, err = newInner(e.run.Inner, e.run.Model, e.pool); err != nil {
		return err
	}
	if e.adapted, err = newAdapted(e.run, e.pool, e.inner); err != nil {
		return err
	}
	if a, ok := e.device.(Adapter); ok {
		e.adapts = a.Adapts()
	}
	if c, ok := e.device.(Coder); ok && !e.inner.here() && (e.adapted.lora == nil || e.adapts) && c.Code(e.codec) {
		e.coder = c
	}
	e.model = &host{Model: m, sequence: e.run.Sequence, pool: e.pool, inner: e.inner}
	e.grad, e.tokens = exact.Make[float32](e.length), make([]uint32, e.micro*(e.run.Sequence+1))
	return nil
}

// Close implements [engine.Engine]. The device stays open.
func (e *Engine) Close() {
	e.pool.Close()
}

// String describes what computes.
func (e *Engine) String() string {
	workers := fmt.Sprintf("%d workers on %s kernels", e.pool.Workers(), e.pool.Kernel().Name())
	if e.device != nil {
		return fmt.Sprintf("%v, and %s", e.device, workers)
	}
	return workers
}

// Step implements [engine.Engine].
func (e *Engine) Step(
	ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32,
) (engine.Result, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return engine.Result{}, errNoSequences
	}
	lr := e.run.Schedule.LR(step)
	var s *vector
	var l losses
	var c coded
	var err error
	if e.inner == nil {
		l, err = e.gradient(ctx, params, spans, total, func(m Model) (err error) {
			if s, err = ready(state); err == nil {
				c, err = e.encode(m, s, lr)
			}
			return err
		})
	} else if s, err = ready(state); err == nil {
		var p *vector
		if p, err = ready(params); err == nil {
			l, c, err = e.walk(ctx, p, s, spans, lr)
		}
	}
	if err != nil {
		return engine.Result{}, err
	}
	e.keep(s, c)
	return engine.Result{
		Payload: c.payload, Loss: float32(l.mean()), Tokens: uint64(total) * uint64(e.run.Sequence),
		Gradient: merkle.Root(c.gradient), LR: lr, GradNorm: c.norm,
	}, nil
}

var errNoSequences = errors.New("engine: a share without sequences")

// gradient computes the mean gradient of the share, and passes the model that has it to use.
func (e *Engine) gradient(
	ctx context.Context, params engine.Vector, spans []batch.Span, total int, use func(m Model) error,
) (l losses, err error) {
	e.ahead(spans)
	err = e.compute(params, e.grad, func(m Model) (err error) {
		if l, err = e.add(ctx, m, spans, total); err != nil {
			return err
		}
		return use(m)
	})
	return l, err
}

// losses are mean losses of sequences, each weighted by the sequences' worth of learnt tokens.
type losses struct{ sum, weight float64 }

func (l *losses) add(o losses) { l.sum, l.weight = l.sum+o.sum, l.weight+o.weight }

// mean returns the mean loss of a learnt token, or 0 if none is learnt.
func (l losses) mean() float64 {
	if l.weight == 0 {
		return 0
	}
	return l.sum / l.weight
}

// losses returns the mean loss of the first n sequences read, weighted.
func (e *Engine) losses(loss float32, n int) losses {
	weight := float64(llama.Learnt(e.rows(n), e.run.Sequence)) / float64(e.run.Sequence)
	return losses{float64(float64(loss) * weight), weight} // rounded, not fused with a sum
}

// ahead tells the data which sequences come next.
func (e *Engine) ahead(spans []batch.Span) {
	if source, ok := e.run.Data.(interface{ Ahead(first, n uint64) }); ok {
		for _, span := range spans {
			source.Ahead(span.Start, uint64(span.Count))
		}
	}
}

// add adds the mean gradient of total sequences to m's.
func (e *Engine) add(ctx context.Context, m Model, spans []batch.Span, total int) (l losses, err error) {
	err = e.read(ctx, spans, func(n int) error {
		loss, err := m.Grad(e.rows(n), n, total)
		l.add(e.losses(loss, n))
		return err
	})
	return l, err
}

// rows returns the tokens of the first n sequences read.
func (e *Engine) rows(n int) []uint32 { return e.tokens[:n*(e.run.Sequence+1)] }

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
			if err := e.run.Data.Read(i, e.rows(filled)[(filled-1)*(e.run.Sequence+1):]); err != nil {
				return fmt.Errorf("sequence %d: %w", i, err)
			}
			if filled == e.micro {
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
	v, lr, next := vectorOf(params), e.run.Schedule.LR(step), versions.Add(1)
	if e.coder != nil && e.coder.Holds(v.version) && e.accepts(payloads, lr) {
		leaves, err := e.coder.Apply(v.Floats, e.grad, next, payloads, lr)
		if err == nil {
			copy(v.Floats, e.grad)
			v.changed(next, leaves)
			return nil
		}
		e.leave(err)
	}
	if err := e.codec.Apply(v.Floats, payloads, lr); err != nil {
		return err
	}
	e.patch(v, next, payloads)
	v.changed(next, nil)
	return nil
}

// patch gives the device what a set has changed, where that is a slice of the parameters.
func (e *Engine) patch(v *vector, next uint64, payloads [][]byte) {
	s, sliced := e.codec.(codec.Sliceable)
	p, ok := e.device.(Patcher)
	if !sliced || !ok || len(payloads) == 0 {
		return
	}
	_, seed, err := s.Open(payloads[0])
	if err == nil {
		err = p.Patch(v.Floats, v.version, next, s.Ranges(seed))
	}
	if err != nil {
		e.leave(err)
	}
}

// accepts reports whether the codec applies a set. If not, its Apply says why.
func (e *Engine) accepts(payloads [][]byte, lr float32) bool {
	_, weightDecay := e.clipping()
	return codec.CheckSet(e.codec.Check, payloads, lr, weightDecay) == nil
}

// Check implements [engine.Engine].
func (e *Engine) Check(payload []byte) error { return e.codec.Check(payload) }

// Gradient implements [engine.Engine].
func (e *Engine) Gradient(
	ctx context.Context, params engine.Vector, spans []batch.Span,
) (engine.Gradient, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return engine.Gradient{}, errNoSequences
	}
	l, err := e.gradient(ctx, params, spans, total, func(m Model) error { return m.Gradient(e.grad) })
	if err != nil {
		return engine.Gradient{}, err
	}
	grad := Floats(e.grad)
	return engine.Gradient{Values: grad, Root: merkle.Root(e.Leaves(grad)), Loss: float32(l.mean())}, nil
}

// Loss implements [engine.Engine].
func (e *Engine) Loss(ctx context.Context, params engine.Vector, spans []batch.Span) (float64, error) {
	if batch.Total(spans) == 0 {
		return 0, errNoSequences
	}
	l, err := e.forward(params, func(do func(n int) error) error { return e.read(ctx, spans, do) })
	return l.mean(), err
}

// forward returns the losses of what read reads.
func (e *Engine) forward(params engine.Vector, read func(do func(n int) error) error) (l losses, err error) {
	err = e.compute(params, nil, func(m Model) error {
		l = losses{}
		return read(func(n int) error {
			loss, err := m.Loss(e.rows(n), n)
			l.add(e.losses(loss, n))
			return err
		})
	})
	if err != nil {
		l = losses{}
	}
	return l, err
}

// HeldOut implements [engine.Engine].
func (e *Engine) HeldOut(ctx context.Context, params engine.Vector) (float32, error) {
	if e.run.HeldOut == nil || e.run.HeldOutSequences == 0 {
		return 0, errors.New("engine: there is no held-out split")
	}
	l, err := e.forward(params, func(do func(n int) error) error { return e.heldOut(ctx, do) })
	return float32(l.mean()), err
}

// heldOut reads the sequences that a measurement takes, at most Micro at once, and calls do after
// each batch of n.
func (e *Engine) heldOut(ctx context.Context, do func(n int) error) error {
	rows := e.run.Sequence + 1
	for i := uint64(0); i < e.run.HeldOutSequences; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := int(min(uint64(e.micro), e.run.HeldOutSequences-i))
		for k := range n {
			if err := e.run.HeldOut.Read(i+uint64(k), e.tokens[k*rows:(k+1)*rows]); err != nil {
				return err
			}
		}
		if err := do(n); err != nil {
			return err
		}
		i += uint64(n)
	}
	return nil
}

// Trace implements [engine.Engine].
func (e *Engine) Trace(ctx context.Context, p trace.Program, src trace.Sources) (*trace.Trace, error) {
	return trace.Run(ctx, e.pool, p, src)
}

// ParamsLen implements [engine.Engine].
func (e *Engine) ParamsLen() int { return e.length }

// StateLen implements [engine.Engine].
func (e *Engine) StateLen() int {
	n := e.codec.StateLen()
	if e.inner != nil {
		n += e.inner.StateLen(e.length)
	}
	return n
}

// PayloadMax implements [engine.Engine].
func (e *Engine) PayloadMax() int { return e.codec.PayloadMax() }

// Base implements [engine.Engine].
func (e *Engine) Base() []float32 { return e.run.Base }
