package adversary

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/key"
)

// Miners returns the kinds of cheats of a run that exchanges by buckets and is scored by
// validators. They cheat in what they seal, in what they keep and show of it, and as verifiers;
// package bucket refuses tricks with objects and names. Those that seal must earn nothing, except
// that the kind gradient, which does its work, must earn no more than the honest. Where results
// are verified, those whose gradient is not the committed one are convicted.
func Miners() []Kind {
	kinds := sealers()
	for i, k := range kinds {
		if k.Checked {
			kinds[i].Offences = wrongResult()
		}
	}
	for _, k := range officials() {
		if k.Name == "lazy-verifier" || k.Name == "false-accuser" {
			kinds = append(kinds, k)
		}
	}
	return append(kinds, Kind{Name: "hide", Sometimes: true,
		Tries: "works, and shows its commitments and reveals, some of them late, to two thirds of the members, so that the others cannot apply what is accepted",
		make:  func(m *member) (hooks, error) { return hooks{}, m.hideObjects() }})
}

// sealers cheat in what they seal.
func sealers() []Kind {
	return []Kind{
		{Name: "noise", Checked: true, Tries: "seals random numbers as long as honest ones, to be paid without working", make: miner(func(m *member, c *slice.Codec) (hooks, error) {
			return hooks{own: m.noiseStep(c), lies: aboutItself}, nil
		})},
		{Name: "copy", Checked: true, Tries: "seals a mosaic of what others have revealed so far", make: miner(func(m *member, c *slice.Codec) (hooks, error) {
			a := &album{codec: c, values: make([]byte, c.SealedLen())}
			return hooks{own: m.copiedStep(c, a), check: a.see}, nil
		})},
		{Name: "stale", Checked: true, Tries: "works once and seals that result in every window", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.staleStep()}, nil
		})},
		{Name: "half-data", Checked: true, Tries: "trains on the first half of its share and expects pay for all of it", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.halfStep}, nil
		})},
		{Name: "wrong-data", Checked: true, Tries: "trains on the same sequences in every window instead of its share", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.favouriteStep}, nil
		})},
		{Name: "sign-flip", Tries: "computes its share, and seals the negated update", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.sealedStep(Flipped)}, nil
		})},
		{Name: "vanish", Checked: true, Tries: "works for four windows, then seals noise for four and deletes those reveals once they are accepted", make: miner(func(m *member, c *slice.Codec) (hooks, error) {
			return m.vanishingHooks(c), nil
		})},
		{Name: "gradient", Tries: "computes its share, and seals the gradient, scaled to an honest update, for a cosine near 1", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.blendStep(1)}, nil
		})},
		{Name: "blend", Tries: "computes its share, and seals half of the gradient and half of the update", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.blendStep(0.5)}, nil
		})},
		{Name: "earlier", Tries: "computes its share, and seals the update of the window before", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			var before []byte
			return hooks{own: m.sealedStep(func(sealed []byte) {
				now := slices.Clone(sealed[codec.HeaderLen:])
				copy(sealed[codec.HeaderLen:], before)
				before = now
			})}, nil
		})},
		{Name: "long", Tries: "computes its share, and seals the update three and a half times as long, just below the bound of four medians", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.sealedStep(func(sealed []byte) { enlarge(sealed, 7, 2) })}, nil
		})},
		{Name: "scale", Tries: "computes its share, and seals every value as large as possible", make: miner(func(m *member, _ *slice.Codec) (hooks, error) {
			return hooks{own: m.sealedStep(Scaled)}, nil
		})},
	}
}

// miner returns a kind for runs of the slice codec.
func miner(f func(*member, *slice.Codec) (hooks, error)) func(*member) (hooks, error) {
	return func(m *member) (hooks, error) {
		c, ok := m.codec.(*slice.Codec)
		if !ok {
			return hooks{}, errors.New("it is a kind of runs that exchange by buckets, with optimizer.codec slice")
		}
		return f(m, c)
	}
}

// perUnit is the number of a sealed value that means one learning rate.
const perUnit = 16

// sealedMax is the largest value of a sealed update.
const sealedMax = 127

// scaledBy is the factor of a scaled update, within the range of sealed values.
const scaledBy = 64

// Flipped negates the values of a sealed update.
func Flipped(sealed []byte) {
	for i, v := range sealed[codec.HeaderLen:] {
		sealed[codec.HeaderLen+i] = byte(-int8(v))
	}
}

// Scaled enlarges the values of a sealed update as far as possible, with their signs.
func Scaled(sealed []byte) { enlarge(sealed, scaledBy, 1) }

// enlarge multiplies the values of a sealed update by a fraction, as far as their range goes.
func enlarge(sealed []byte, by, over int) {
	for i, v := range sealed[codec.HeaderLen:] {
		sealed[codec.HeaderLen+i] = byte(int8(max(-sealedMax, min(int(int8(v))*by/over, sealedMax))))
	}
}

// Noise fills a sealed update with values from -most to most, uniformly, from a stream of 64 random
// bits.
func Noise(sealed []byte, most uint8, random func() uint64) {
	values := sealed[codec.HeaderLen:]
	span := 2*uint64(most) + 1
	for i := range values {
		values[i] = byte(int8(random()%span) - int8(most))
	}
}

// noiseMost makes noise about as long as an honest update. Values are in sixteenths of the learning
// rate, and honest ones rarely exceed one and a half of it.
const noiseMost = 24

// blank returns a sealed update that changes nothing.
func (m *member) blank(c *slice.Codec, step uint32) ([]byte, error) {
	return c.Encode(nil, make([]float32, c.StateLen()), make([]float32, m.honest.ParamsLen()), m.o.Run.Schedule.LR(step))
}

// noiseStep seals random numbers.
func (m *member) noiseStep(c *slice.Codec) step {
	return func(ctx context.Context, _, _ engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		sealed, err := m.blank(c, step)
		if err != nil {
			return engine.Result{}, err
		}
		gradient := m.secretly()
		m.mu.Lock()
		Noise(sealed, noiseMost, m.random.Uint64)
		m.mu.Unlock()
		return m.made(sealed, spans, step, gradient), ctx.Err()
	}
}

// album holds the newest revealed values of others, each in its place of a sealed update.
type album struct {
	codec  *slice.Codec
	mu     sync.Mutex // guards values
	values []byte
}

// see records the values of a reveal.
func (a *album) see(reveal []byte) {
	_, seed, err := a.codec.Open(reveal)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	values := a.codec.Values(nil, reveal)
	for _, r := range a.codec.Ranges(seed) {
		for i := r.From; i < r.To; i++ {
			a.values[codec.HeaderLen+i] = byte(int8(values[0] * perUnit))
			values = values[1:]
		}
	}
}

// copiedStep seals what others have revealed so far.
func (m *member) copiedStep(c *slice.Codec, a *album) step {
	return func(ctx context.Context, _, _ engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		sealed, err := m.blank(c, step)
		if err != nil {
			return engine.Result{}, err
		}
		a.mu.Lock()
		copy(sealed[codec.HeaderLen:], a.values[codec.HeaderLen:])
		a.mu.Unlock()
		return m.made(sealed, spans, step, m.secretly()), ctx.Err()
	}
}

// halfStep trains on the first half of the share.
func (m *member) halfStep(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	total := batch.Total(spans)
	result, err := m.honest.Step(ctx, params, state, batch.Cut(spans, 0, (total+1)/2), step)
	result.Tokens = uint64(total) * uint64(m.o.Run.Sequence)
	return result, err
}

// sealedStep computes correctly and changes what is sealed. The commitment is to the changed
// update, with correct work.
func (m *member) sealedStep(change func(sealed []byte)) step {
	return func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		result, err := m.honest.Step(ctx, params, state, spans, step)
		if err == nil {
			change(result.Payload)
		}
		return result, err
	}
}

// idleWindows is the number of windows in a row in which vanish works, and in which it does not.
const idleWindows = 4

// vanishingHooks seals noise in some windows, and deletes its reveals when the window's set is
// decided.
func (m *member) vanishingHooks(c *slice.Codec) hooks {
	noise := m.noiseStep(c)
	idle := func(step uint32) bool { return step/idleWindows%2 == 1 }
	deleted := coordinator.Round(0)
	return hooks{
		own: func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
			if idle(step) {
				return noise(ctx, params, state, spans, step)
			}
			return m.honest.Step(ctx, params, state, spans, step)
		},
		see: func() []dispute.Signed {
			for back := coordinator.Round(3); back > 0; back-- {
				r, ok := m.state.At(m.state.Round() - back)
				if !ok || !r.Final() || !r.Trains() || !idle(uint32(r.Step())) || r.Number() <= deleted {
					continue
				}
				deleted = r.Number()
				keep := func(n bucket.Name) bool { return n.Kind != bucket.KindReveal || n.Window != r.Number() }
				x := m.bucket.Exchange
				run := m.state.ID()
				m.loop.Post(func() {
					x.DeleteBefore(run, r.Number()+1, keep, time.Minute, func(int, error) {})
				})
			}
			return nil
		},
	}
}

// hideObjects has the member's bucket show its commitments and reveals to some members only (where
// readers are not known, to those who ask first), half of the reveals late, and copies of others'
// results to nobody.
func (m *member) hideObjects() (err error) {
	if m.o.Show == nil {
		return errors.New("nobody can say who reads the bucket")
	}
	shown := map[bucket.Name]coordinator.Member{}
	m.bucket.Registered, err = m.o.Show(func(reader key.Public, n bucket.Name) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case !m.hasState || n.Kind == bucket.KindState:
			return true
		case n.Kind == bucket.KindReveal && m.early(n), n.Kind == bucket.KindCopy:
			return false
		case n.Kind != bucket.KindCommitment && n.Kind != bucket.KindReveal:
			return true
		}
		from := m.o.Hide
		if from == 0 {
			from = m.state.Count() / 3
		}
		if reader.IsZero() {
			shown[n]++
			return shown[n]+from < m.state.Count()
		}
		for i := range m.state.Count() {
			switch k := m.state.Key(i); {
			case from == 0:
				return true
			case k == reader:
				return m.ours(k)
			case k != m.self && !m.ours(k):
				from--
			}
		}
		return true
	})
	return err
}

// early reports whether a reveal is to be shown later: half of them in the first half of the
// window, when their name says.
func (m *member) early(n bucket.Name) bool {
	r, ok := m.state.At(n.Window + 1)
	if !ok || n.Window%2 == 0 {
		return false
	}
	wait := uint64(m.state.Config().RoundTrainMs) * uint64(n.Content[0]) / 512
	return uint64(m.loop.Now().UnixMilli()) < r.OpenedMs()+wait
}

// blendStep seals the share's gradient, scaled to the length of the accumulated update, in place
// of a part of that update.
func (m *member) blendStep(part float64) step {
	return func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		result, err := m.honest.Step(ctx, params, state, spans, step)
		if err != nil {
			return result, err
		}
		g, err := m.honest.Gradient(ctx, params, spans)
		if err != nil {
			return result, err
		}
		replace(result.Payload, engine.Values(g.Values), part)
		return result, nil
	}
}

// replace moves the values of a sealed update by a part of the way to others, scaled to its length.
func replace(sealed []byte, values []float32, part float64) {
	at := sealed[codec.HeaderLen:]
	var was, is float64
	for i, v := range at {
		was += float64(int(int8(v)) * int(int8(v)))
		is += float64(float64(values[i]) * float64(values[i]))
	}
	if is == 0 {
		return
	}
	scale := math.Sqrt(was / is)
	for i := range at {
		x := math.RoundToEven(float64(part*scale*float64(values[i])) + float64((1-part)*float64(int8(at[i]))))
		at[i] = byte(int8(max(-sealedMax, min(x, sealedMax))))
	}
}
