package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// gadget is a device that fails in one of its calls.
type gadget struct {
	*host
	fails string
	with  error
	calls int
}

func (g *gadget) fail(call string) error {
	if g.calls++; call == g.fails {
		return g.with
	}
	return nil
}

func (g *gadget) Start(params []float32, _ uint64, gradient bool) error {
	g.start(params, make([]float32, len(params)))
	return g.fail("Start")
}

func (g *gadget) Grad(tokens []uint32, n, total int) (float32, error) {
	loss, err := g.host.Grad(tokens, n, total)
	return loss, errors.Join(err, g.fail("Grad"))
}

func (g *gadget) Loss(tokens []uint32, n int) (float32, error) {
	loss, err := g.host.Loss(tokens, n)
	return loss, errors.Join(err, g.fail("Loss"))
}

func (g *gadget) Gradient(grad []float32) error {
	copy(grad, g.grad)
	return g.fail("Gradient")
}

func gadgetEngine(t *testing.T, fails string, with error, failed func(error)) (*Engine, *gadget) {
	t.Helper()
	pool := exact.NewPool(1)
	t.Cleanup(pool.Close)
	m, err := llama.New(model, pool, 4, sequence)
	if err != nil {
		t.Fatal(err)
	}
	g := &gadget{host: &host{Model: m, sequence: sequence}, fails: fails, with: with}
	e, err := New(engine.Run{
		Model: model, Data: counted{missing: 5}, HeldOut: counted{}, HeldOutSequences: 7, Sequence: sequence,
		Codec:    distro.Config{Block: 16, TopK: 8, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1},
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3, WarmupSteps: 2},
	}, Options{Workers: 1, Micro: 4, Device: g, DeviceFailed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, g
}

// A device that fails in the middle of a share costs nothing but time.
func TestAFailingDeviceLosesNothing(t *testing.T) {
	broken := errors.New("broken")
	spans := []batch.Span{{Start: 100, Count: 9}}
	want := engine.Result{}
	for _, fails := range []string{"", "Start", "Grad", "Gradient", "Loss"} {
		var told []error
		e, g := gadgetEngine(t, fails, broken, func(err error) { told = append(told, err) })
		params, state := Floats(initial()), Floats(make([]float32, e.StateLen()))
		r, err := e.Step(t.Context(), params, state, spans, 1)
		if err != nil {
			t.Fatal(err)
		}
		// Both in one memory: the device fails when the state is in place of the parameters.
		one, g2 := gadgetEngine(t, fails, broken, nil)
		memory := Floats(make([]float32, len(state)))
		in := func(v Floats) engine.Late {
			return engine.Late{Vector: memory, Fill: func() error { copy(memory, v); return nil }}
		}
		o, err := one.Step(t.Context(), in(params), in(make(Floats, len(state))), spans, 1)
		if err != nil || !bytes.Equal(o.Payload, r.Payload) || o.Gradient != r.Gradient || !slices.Equal(memory, state) || g2.calls == 0 {
			t.Errorf("%q: in one memory another result: %v", fails, err)
		}
		lost := errors.New("no file")
		if _, err := one.Step(t.Context(), in(params), engine.Late{Vector: memory, Fill: func() error { return lost }}, spans, 1); !errors.Is(err, lost) {
			t.Errorf("%q: a state that cannot be read: %v", fails, err)
		}
		loss, err := e.Loss(t.Context(), params, spans)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.HeldOut(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if fails == "" {
			want = r
		}
		if !bytes.Equal(r.Payload, want.Payload) || r.Gradient != want.Gradient || r.Loss != want.Loss || loss == 0 {
			t.Errorf("%q: another result", fails)
		}
		if fails == "" && (len(told) > 0 || g.calls == 0) || fails != "" && (len(told) != 1 || !errors.Is(told[0], broken)) {
			t.Errorf("%q: told %v after %d calls", fails, told, g.calls)
		}
		if calls := g.calls; fails != "" {
			if _, err := e.Gradient(t.Context(), params, spans); err != nil || g.calls != calls {
				t.Errorf("%q: the device is used after its failure: %v", fails, err)
			}
		}
	}
}

// stepper is a device that takes inner steps, and fails in one call of a kind. What it leaves behind then is garbage.
type stepper struct {
	host
	fails string
	left  int // calls of that kind up to the one that fails
}

var errLost = errors.New("device lost")

func (s *stepper) fail(call string, spoil ...[]float32) error {
	if call == s.fails {
		if s.left--; s.left == 0 {
			for _, x := range spoil {
				for i := range x {
					x[i] = 77
				}
			}
			return errLost
		}
	}
	return nil
}

func (s *stepper) Start(params []float32, _ uint64, _ bool) error {
	s.start(slices.Clone(params), make([]float32, len(params)))
	return s.fail("Start")
}

func (s *stepper) Grad(tokens []uint32, n, total int) (float32, error) {
	loss, err := s.host.Grad(tokens, n, total)
	return loss, errors.Join(err, s.fail("Grad"))
}

func (s *stepper) Gradient(grad []float32) error {
	copy(grad, s.grad)
	return s.fail("Gradient", grad)
}

func (s *stepper) Moments(mean, square []float32) error {
	return errors.Join(s.host.Moments(mean, square), s.fail("Moments"))
}

func (s *stepper) Norm() (float64, error) {
	norm, err := s.host.Norm()
	return norm, errors.Join(err, s.fail("Norm"))
}

func (s *stepper) Update(clip float32, at exact.AdamWStep) error {
	return errors.Join(s.host.Update(clip, at), s.fail("Update"))
}

func (s *stepper) Updated(params, mean, square []float32) error {
	m, v, _ := s.inner.adamw.Moments()
	copy(params, s.params)
	copy(mean, m)
	copy(square, v)
	return s.fail("Updated", params, mean, square)
}

// Wherever a device fails in a share of inner steps, the processors' bits follow, of this share and of those after it. With adapters, too,
// whose merged model is another one after each step, and with steps of Muon, which the processors take.
func TestADeviceFailsBetweenInnerSteps(t *testing.T) {
	with := model
	with.LoRA = llama.LoRA{Rank: 5, Alpha: 12, Targets: 1<<0 | 1<<2 | 1<<4}
	for i, cfg := range []llama.Config{model, with, model, with} {
		steps := optim.Inner{Steps: 3, AdamW: optim.DefaultAdamW(), Muon: i > 1, ClipNorm: 1}
		run := engine.Run{Model: cfg, Codec: sparse, Data: counted{}, Sequence: sequence, Inner: &steps, Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3}}
		start, calls := initial(), []string{"Start", "Grad", "Moments", "Norm", "Update", "Updated"}
		if cfg.LoRA.Rank > 0 {
			run.Base, start = initial(), llama.Init(cfg, wire.Sum("adapters"))
		}
		if cfg.LoRA.Rank > 0 || steps.Muon {
			calls = []string{"Start", "Grad", "Gradient"}
		}
		rounds := func(d Model, failed func(error)) (results []engine.Result, params, state Floats) {
			e, err := New(run, Options{Workers: 1, Micro: 2, Device: d, DeviceFailed: failed})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			params, state = Floats(slices.Clone(start)), make(Floats, e.StateLen())
			for step := range uint32(3) {
				r, err := e.Step(t.Context(), params, state, []batch.Span{{Start: uint64(100 * step), Count: 6}}, step+1)
				if err == nil {
					err = e.Apply(params, [][]byte{r.Payload}, step+1)
				}
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, r)
			}
			return results, params, state
		}
		want, params, state := rounds(nil, nil)
		for _, call := range calls {
			for _, left := range []int{1, 2, 3, 5} {
				pool := exact.NewPool(1)
				m, err := llama.New(cfg.Base(), pool, 2, sequence)
				if err != nil {
					t.Fatal(err)
				}
				in, err := newInner(&steps, cfg, pool)
				if err != nil {
					t.Fatal(err)
				}
				d, told := &stepper{host{Model: m, sequence: sequence, pool: pool, inner: in}, call, left}, 0
				results, gotParams, gotState := rounds(d, func(err error) {
					if told++; !errors.Is(err, errLost) {
						t.Errorf("%s: told %v", call, err)
					}
				})
				pool.Close()
				for i, r := range results {
					if !bytes.Equal(r.Payload, want[i].Payload) || r.Gradient != want[i].Gradient || r.Loss != want[i].Loss {
						t.Errorf("adapters of rank %d, call %d of %s fails: round %d has other bits", cfg.LoRA.Rank, left, call, i+1)
					}
				}
				if !slices.Equal(gotParams, params) || !slices.Equal(gotState, state) {
					t.Errorf("adapters of rank %d, call %d of %s fails: other parameters or another state", cfg.LoRA.Rank, left, call)
				}
				if reached := d.left <= 0; reached != (told == 1) {
					t.Errorf("call %d of %s: told %d times", left, call, told)
				}
			}
		}
	}
}

// Errors that are not the device's do not end its use.
func TestADeviceIsNotToBlameForOthers(t *testing.T) {
	e, g := gadgetEngine(t, "", nil, func(err error) { t.Errorf("the device is blamed: %v", err) })
	state := Floats(make([]float32, e.StateLen()))
	if _, err := e.Step(t.Context(), Floats(initial()), state, []batch.Span{{Start: 0, Count: 8}}, 1); !errors.Is(err, errMissing) {
		t.Errorf("%v, want %v", err, errMissing)
	}
	infinite := slices.Clone(initial())
	infinite[len(infinite)/2] = float32(inf())
	if _, err := e.Step(t.Context(), Floats(infinite), state, []batch.Span{{Start: 100, Count: 8}}, 1); !errors.Is(err, llama.ErrNotFinite) {
		t.Errorf("%v, want %v", err, llama.ErrNotFinite)
	}
	calls := g.calls
	if _, err := e.Step(t.Context(), Floats(initial()), state, []batch.Span{{Start: 100, Count: 8}}, 1); err != nil || g.calls == calls {
		t.Errorf("the device is not used any more: %v", err)
	}
}

// A device on which a share is not finite that is finite here is wrong.
func TestADeviceIsToBlameForItsInfinities(t *testing.T) {
	told := 0
	e, _ := gadgetEngine(t, "Gradient", fmt.Errorf("here: %w", llama.ErrNotFinite), func(error) { told++ })
	if _, err := e.Gradient(t.Context(), Floats(initial()), []batch.Span{{Start: 100, Count: 8}}); err != nil || told != 1 {
		t.Errorf("%v, told %d times", err, told)
	}
}
