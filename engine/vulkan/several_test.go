package vulkan

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// openedAgain is the first device, opened two times more with the proof of the first.
var openedAgain = sync.OnceValues(func() (all Devices, err error) {
	first, err := opened()
	if err != nil {
		return nil, err
	}
	cache, err := os.MkdirTemp("", "entrain-vulkan")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(cache)
	if err := first.remember(cache); err != nil {
		return nil, err
	}
	return Choose("vulkan:0,vulkan:0", cache, llama.Exact, nil)
})

// several returns devices that are all the first one.
func several(t *testing.T) Devices {
	t.Helper()
	first := device(t)
	others, err := openedAgain()
	if err != nil {
		t.Fatal(err)
	}
	return append(Devices{first}, others...)
}

// Faster devices have more layers, the first fewer by the head, and each has one.
func TestLayersGoBySpeed(t *testing.T) {
	cfg := llama.Config{Vocab: 50257, Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 2048, Context: 1024, Theta: 10000, Eps: 1e-5}
	for _, c := range []struct {
		speeds []float64
		want   []int
	}{
		{[]float64{5, 5}, []int{3, 9}}, {[]float64{1, 1, 1}, []int{1, 5, 6}}, {[]float64{9, 3}, []int{8, 4}}, {[]float64{1, 99}, []int{1, 11}},
		{[]float64{2, 1, 3}, []int{1, 2, 9}}, {slices.Repeat([]float64{1}, 12), slices.Repeat([]int{1}, 12)},
	} {
		if got := split(cfg, c.speeds); !slices.Equal(got, c.want) {
			t.Errorf("speeds %v: layers %v, want %v", c.speeds, got, c.want)
		}
	}
}

// Several devices compute the bits of one, however sequences are cut into passes.
func TestSeveralDevicesAreOne(t *testing.T) {
	devices := several(t)
	const seq, n = 17, 5
	pool := exact.NewPool(1)
	defer pool.Close()
	for _, c := range []struct {
		cfg     llama.Config
		devices int
	}{
		{with(untied, func(c *llama.Config) { c.Layers = 5 }), 3},
		{with(tied(untied), func(c *llama.Config) { c.Layers, c.Bias = 3, true }), 2},
		{with(eight(untied, 64), func(c *llama.Config) { c.QKNorm = true }), 2},
	} {
		host, err := llama.New(c.cfg, pool, n, seq)
		if err != nil {
			t.Fatal(err)
		}
		params := llama.Init(c.cfg, wire.Sum("several"))
		tokens, want := random(c.cfg, n*(seq+1), rand.New(rand.NewPCG(8, 8))), make([]float32, len(params))
		wantLoss, err := host.Grad(params, want, tokens, n, seq, n)
		if err != nil {
			t.Fatal(err)
		}
		m, err := devices[:c.devices].NewModel(c.cfg, nil, seq, n, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			if err := m.Start(params, 3, true); err != nil {
				t.Fatal(err)
			}
			loss, err := m.Grad(tokens, n, n)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, len(params))
			if err := m.Gradient(got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) || loss != wantLoss {
				t.Errorf("%d devices, tied %v: another gradient, or loss %v instead of %v", c.devices, c.cfg.Tied, loss, wantLoss)
			}
			if round == 1 {
				continue
			}
			if got, err := m.Loss(tokens, n); got != wantLoss || err != nil {
				t.Errorf("%d devices, tied %v: loss %v instead of %v: %v", c.devices, c.cfg.Tied, got, wantLoss, err)
			}
		}
		m.Close()
	}
}

// A member with several devices sends what one without sends, with and without inner steps, and goes
// on when one of them goes wrong.
func TestAMemberWithSeveralDevices(t *testing.T) {
	devices := several(t)[:2]
	sparse := sparseloco.Options{Chunk: 256, TopK: 16, Decay: 0.95, OuterRate: 1, InnerSteps: 2, WeightDecay: 0.1, ClipNorm: 1}
	for _, run := range []engine.Run{{Codec: gradients.codec}, {Codec: sparse, Inner: sparse.Inner()}, {Codec: sparse, Inner: sparse.Inner(), Base: adapting.frozen()}} {
		if run.Model = small; run.Base != nil {
			run.Model = adapting.model()
		}
		run.Data, run.Sequence, run.Schedule = counted{}, 20, optim.Schedule{Kind: optim.Constant, Base: 3e-3}
		round := func(on cpu.Model, left int) (r [2]engine.Result, state cpu.Floats, told []string) {
			if on != nil {
				on = &forgetful{on.(*pipeline), left}
			}
			e, err := cpu.New(run, cpu.Options{Workers: 1, Micro: 6, Device: on, DeviceFailed: func(err error) { told = append(told, err.Error()) }})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			params, state := e.Load(llama.Init(run.Model, wire.Sum("several"))), make(cpu.Floats, e.StateLen())
			for i := range r {
				if r[i], err = e.Step(t.Context(), params, state, []batch.Span{{Start: uint64(50 * i), Count: 8}}, uint32(i+1)); err != nil {
					t.Fatal(err)
				}
				if err := e.Apply(params, [][]byte{r[i].Payload}, uint32(i+1)); err != nil {
					t.Fatal(err)
				}
			}
			return r, state, told
		}
		want, state, _ := round(nil, 0)
		for _, left := range []int{0, 2} {
			m, err := devices.NewModel(run.Model, run.Base, 20, 6, run.Inner != nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, after, told := round(m, left)
			m.Close()
			if !bytes.Equal(got[0].Payload, want[0].Payload) || !bytes.Equal(got[1].Payload, want[1].Payload) || got[1].Gradient != want[1].Gradient || !slices.Equal(after, state) {
				t.Errorf("inner steps %v, wrong at call %d: other bits than the processors'", run.Inner != nil, left)
			}
			if (left > 0) != (len(told) == 1) {
				t.Errorf("inner steps %v, wrong at call %d: told %q", run.Inner != nil, left, told)
			}
		}
	}
}

// forgetful loses the second device's parameters before a call of Grad.
type forgetful struct {
	*pipeline
	left int
}

func (f *forgetful) Grad(tokens []uint32, n, total int) (float32, error) {
	if f.left--; f.left == 0 {
		m := f.stages[1]
		if err := m.m.params.parts.write(make([]float32, m.Layout().Len())); err != nil {
			return 0, err
		}
	}
	return f.pipeline.Grad(tokens, n, total)
}
