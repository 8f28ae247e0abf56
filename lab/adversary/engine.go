package adversary

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// step computes a share, as engine.Engine's Step does.
type step func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error)

// dishonestEngine computes the member's own shares, and those of others, as the kind does.
type dishonestEngine struct {
	engine.Engine
	m *member
}

// Step implements engine.Engine.
func (e dishonestEngine) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	e.m.mu.Lock()
	self, known := e.m.index()
	who, _, found := e.m.trainerOf(spans)
	e.m.mu.Unlock()
	do := e.Engine.Step
	switch {
	case known && found && who == self:
		if e.m.hooks.own != nil {
			do = e.m.hooks.own
		}
	case e.m.hooks.others != nil:
		do = e.m.hooks.others
	}
	return do(ctx, params, state, spans, step)
}

// Gradient implements engine.Engine. It is called for shares of others.
func (e dishonestEngine) Gradient(ctx context.Context, params engine.Vector, spans []batch.Span) (engine.Gradient, error) {
	if e.m.hooks.others == nil {
		return e.Engine.Gradient(ctx, params, spans)
	}
	r, err := e.m.hooks.others(ctx, params, nil, spans, 0)
	return engine.Gradient{Root: r.Gradient, Loss: r.Loss}, err
}

// Check implements engine.Engine.
func (e dishonestEngine) Check(payload []byte) error {
	err := e.Engine.Check(payload)
	if err == nil && e.m.hooks.check != nil {
		e.m.hooks.check(payload)
	}
	return err
}

// made returns a result of a share that was not computed. The payload is well formed, and the rest
// plausible, except for the gradient's root.
func (m *member) made(payload []byte, spans []batch.Span, step uint32, gradient wire.Hash) engine.Result {
	return engine.Result{
		Payload: payload, Loss: m.rumour(), Tokens: uint64(batch.Total(spans)) * uint64(m.o.Run.Sequence),
		Gradient: gradient, LR: m.o.Run.Schedule.LR(step), GradNorm: 1,
	}
}

// rumour returns the least loss that others state.
func (m *member) rumour() float32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) == 0 {
		return 3
	}
	_, s := least(m.seen[slices.Max(slices.Collect(maps.Keys(m.seen)))])
	return float32(s.Commitment.Loss) / 1000
}

// secretly returns noise for one share, taking the lock.
func (m *member) secretly() wire.Hash {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noise()
}

// randomStep sends the code of a random gradient.
func (m *member) randomStep(gradient func([]batch.Span) wire.Hash) step {
	grad := []float32(nil)
	return func(ctx context.Context, _, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		if grad == nil {
			grad = make([]float32, m.honest.ParamsLen())
		}
		random := prng.New(m.secretly(), "gradient")
		for i := 0; i < len(grad); i += 8 {
			x := random.Uint64()
			for k := i; k < min(i+8, len(grad)); k++ {
				grad[k] = float32(int8(x)) / 1024
				x >>= 8
			}
		}
		left := slices.Clone(engine.Values(state))
		payload, err := m.codec.Encode(nil, left, grad, m.o.Run.Schedule.LR(step))
		if err != nil {
			return engine.Result{}, err
		}
		m.honest.Copy(state, m.honest.Load(left))
		return m.made(payload, spans, step, gradient(spans)), ctx.Err()
	}
}

// emptyStep sends a code that changes nothing, and keeps the state.
func (m *member) emptyStep(ctx context.Context, _, _ engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	n := m.honest.StateLen()
	payload, err := m.codec.Encode(nil, make([]float32, n), make([]float32, m.honest.ParamsLen()), m.o.Run.Schedule.LR(step))
	if err != nil {
		return engine.Result{}, err
	}
	return m.made(payload, spans, step, m.secretly()), ctx.Err()
}

// staleStep works once and sends that result again in every round.
func (m *member) staleStep() step {
	var payload []byte
	return func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		if payload != nil {
			return m.made(payload, spans, step, m.secretly()), ctx.Err()
		}
		result, err := m.honest.Step(ctx, params, state, spans, step)
		if err == nil {
			payload = result.Payload
		}
		return result, err
	}
}

// favouriteStep trains on the same few sequences in every round, whatever its share.
func (m *member) favouriteStep(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	wrong := []batch.Span{{Start: 0, Count: batch.Total(spans)}}
	if wrong[0].Start == spans[0].Start {
		wrong[0].Start += uint64(wrong[0].Count)
	}
	return m.honest.Step(ctx, params, state, wrong, step)
}

// flipStep computes correctly, and then flips one bit of the optimizer state, as broken memory
// would.
func (m *member) flipStep(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	result, err := m.honest.Step(ctx, params, state, spans, step)
	if err != nil {
		return result, err
	}
	m.mu.Lock()
	at, bit := m.random.Uint64n(uint64(state.Len())), m.random.Uint64n(mantissaBits)
	m.mu.Unlock()
	values := slices.Clone(engine.Values(state))
	values[at] = math.Float32frombits(math.Float32bits(values[at]) ^ 1<<bit)
	m.honest.Copy(state, m.honest.Load(values))
	return result, nil
}

// mantissaBits are the bits of a float32 whose change leaves it finite.
const mantissaBits = 23

// gradientStep encodes a changed gradient, with a changed learning rate.
func (m *member) gradientStep(change func(grad []float32, lr float32) float32) step {
	return func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		g, err := m.honest.Gradient(ctx, params, spans)
		if err != nil {
			return engine.Result{}, err
		}
		grad, left := slices.Clone(engine.Values(g.Values)), slices.Clone(engine.Values(state))
		norm, lr := codec.Norm(nil, grad), m.o.Run.Schedule.LR(step)
		payload, err := m.codec.Encode(nil, left, grad, change(grad, lr))
		if err != nil {
			return engine.Result{}, err
		}
		m.honest.Copy(state, m.honest.Load(left))
		r := m.made(payload, spans, step, g.Root)
		r.Loss, r.GradNorm = g.Loss, norm
		return r, nil
	}
}

// flip negates the gradient.
func flip(grad []float32, lr float32) float32 {
	for i := range grad {
		grad[i] = -grad[i]
	}
	return lr
}

// scaleBy is the factor of a scaled gradient.
const scaleBy = 1000

// scale enlarges the gradient, and also the learning rate, because clipping would undo the former.
// Signs have no size, so the effect is a momentum that ignores everything else.
func scale(grad []float32, lr float32) float32 {
	for i := range grad {
		grad[i] *= scaleBy
	}
	return min(lr*scaleBy, codec.LRMax)
}

// poison is data in which every sequence repeats one token, which teaches a model to say nothing
// else.
type poison struct {
	engine.Source
	token uint32
}

// Read implements engine.Source.
func (p poison) Read(_ uint64, dst []uint32) error {
	for i := range dst {
		dst[i] = p.token
	}
	return nil
}

// poisonStep trains on made-up data.
func (m *member) poisonStep() (step, error) {
	run := m.o.Run
	run.Data = poison{Source: run.Data, token: uint32(run.Model.Vocab - 1)}
	e, err := m.o.NewEngine(run)
	if err != nil {
		return nil, err
	}
	return e.Step, nil
}
