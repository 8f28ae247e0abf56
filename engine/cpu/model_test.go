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

func (g *gadget) Start(params []float32, gradient bool) error {
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
