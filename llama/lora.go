package llama

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// LoRA says which matrices of a frozen model have adapters (E. Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models", 2021). The zero value is none: all parameters are trained.
//
// An adapter of a matrix W (out, in) is A (Rank, in) and B (out, Rank). The model computes with
// W + Alpha/Rank·B·A. The layout of a Config with adapters has only them; see Adapted.
type LoRA struct {
	Rank    int     // 1 to MaxRank; 0: no adapters
	Alpha   float32 // above 0, at most 1e6
	Targets Targets
}

// MaxRank is the greatest rank of adapters.
const MaxRank = 1 << 10

// Targets is a set of the matrices of every layer. Its bits are in the order of targetNames.
type Targets uint8

// targetNames are the matrices that can have adapters, in the order of the layout, and the modules
// that hold them.
var targetNames = [...]struct{ module, name string }{
	{"self_attn", "q_proj"}, {"self_attn", "k_proj"}, {"self_attn", "v_proj"}, {"self_attn", "o_proj"},
	{"mlp", "gate_proj"}, {"mlp", "up_proj"}, {"mlp", "down_proj"},
}

// AllTargets has all matrices of a layer.
const AllTargets Targets = 1<<len(targetNames) - 1

// ParseTargets returns the set of the matrices with the given names, such as "q_proj", each at most
// once.
func ParseTargets(names []string) (t Targets, err error) {
	for _, name := range names {
		i := slices.IndexFunc(targetNames[:], func(n struct{ module, name string }) bool { return n.name == name })
		if i < 0 {
			return 0, fmt.Errorf("%.40q is not a matrix of a layer: choose among %s", name, strings.Join(AllTargets.Names(), ", "))
		}
		if t&(1<<i) != 0 {
			return 0, fmt.Errorf("%q is named twice", name)
		}
		t |= 1 << i
	}
	return t, nil
}

// Names returns the names of the matrices in t.
func (t Targets) Names() (names []string) {
	for i, n := range targetNames {
		if t&(1<<i) != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// Scale returns Alpha/Rank.
func (l LoRA) Scale() float32 { return float32(float64(l.Alpha) / float64(l.Rank)) }

// check returns the faults of l for a model of shape c.
func (l LoRA) check(c Config) (faults []error) {
	if l == (LoRA{}) {
		return nil
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("lora."+format, args...)) }
	if l.Rank < 1 || l.Rank > MaxRank {
		fault("rank: %d must be 1 to %d", l.Rank, MaxRank)
	}
	if !(l.Alpha > 0 && l.Alpha <= 1e6) {
		fault("alpha: %g must be above 0 and at most 1e6", l.Alpha)
	}
	if l.Targets == 0 || l.Targets > AllTargets {
		fault("targets: there must be at least one matrix")
	}
	for i := range targetNames {
		if out, in := c.targetShape(i); l.Targets&(1<<i) != 0 && l.Rank > min(out, in) {
			fault("rank: %d is more than %s of %d by %d can have", l.Rank, targetNames[i].name, out, in)
		}
	}
	return faults
}

// targetShape returns the shape of the matrix that is bit i of Targets.
func (c Config) targetShape(i int) (out, in int) {
	d, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return [...]int{q, kv, kv, d, c.FFN, c.FFN, d}[i], [...]int{d, d, d, q, d, d, c.FFN}[i]
}

// Base returns the Config of the whole model: c without adapters.
func (c Config) Base() Config {
	c.LoRA = LoRA{}
	return c
}

// adapterSpecs lists the adapters, under the names that PEFT gives them: of each target A, then B.
func (c Config) adapterSpecs() (specs []tensor.Spec) {
	for l := range c.Layers {
		for i, n := range targetNames {
			if c.LoRA.Targets&(1<<i) == 0 {
				continue
			}
			name := fmt.Sprintf("base_model.model.model.layers.%d.%s.%s.", l, n.module, n.name)
			out, in := c.targetShape(i)
			specs = append(specs, tensor.Spec{Name: name + adapterA, Shape: []int{c.LoRA.Rank, in}},
				tensor.Spec{Name: name + adapterB, Shape: []int{out, c.LoRA.Rank}})
		}
	}
	return specs
}

const (
	adapterA = "lora_A.weight"
	adapterB = "lora_B.weight"
)

// An Adapter is where a matrix with an adapter, and its adapter, are in their layouts.
type Adapter struct {
	Layer  int
	Name   string        // of the matrix in its layer, as in Targets
	Tensor int           // the matrix, in the layout of the Base
	W      tensor.Tensor // (out, in)
	A, B   int           // the adapter's tensors, in the layout of the Config
}

// Adapters lists the adapters of c, in the order of its layout.
func (c Config) Adapters() (list []Adapter) {
	base := c.Base().Layout().Tensors()
	at := 0
	for l := range c.Layers {
		for i, n := range targetNames {
			if c.LoRA.Targets&(1<<i) == 0 {
				continue
			}
			name := fmt.Sprintf("model.layers.%d.%s.%s.weight", l, n.module, n.name)
			w := slices.IndexFunc(base, func(t tensor.Tensor) bool { return t.Name == name })
			list = append(list, Adapter{Layer: l, Name: n.name, Tensor: w, W: base[w], A: at, B: at + 1})
			at += 2
		}
	}
	return list
}

// freeze leaves out of w, a gradient, the matrices that nothing needs: all but the targets and
// those that one product computes with them. A zero t needs all.
func (w *weights) freeze(t Targets) {
	if t == 0 {
		return
	}
	w.embed, w.head = nil, nil
	for l := range w.layers {
		layer := &w.layers[l]
		for _, m := range []struct {
			matrix  *[]float32
			targets Targets
		}{{&layer.qkv, 1<<0 | 1<<1 | 1<<2}, {&layer.o, 1 << 3}, {&layer.gu, 1<<4 | 1<<5}, {&layer.down, 1 << 6}} {
			if t&m.targets == 0 {
				*m.matrix = nil
			}
		}
	}
}

// Freeze makes Grad compute the gradients of these matrices only. What it adds to others is
// undefined, but finite. The bits of these do not change.
func (m *Model) Freeze(but Targets) { m.trained = but }

// Adapted is a frozen model with adapters. It computes
//
//	S  = s·A            s = Alpha/Rank; each element rounded
//	W' = W + B·S        a chain from W over the rank
//
// and from the gradient G of W', as Model.Grad computes it for a model with the matrices W',
//
//	dB = G·Sᵀ           chains from +0
//	dA = s·(Bᵀ·G)       chains from +0; each element then rounded once more
//
// These are the gradients of y = x·Wᵀ + s·(x·Aᵀ)·Bᵀ, and the model that others get, merged, is to
// the last bit the one that was trained. An Adapted must not be used concurrently.
type Adapted struct {
	cfg      Config
	pool     *exact.Pool
	base     []float32 // not changed
	merged   []float32 // with the adapters of the last Merge
	adapters []Adapter
	tensors  []tensor.Tensor // of the layout of cfg
	scaled   []float32       // S
}

// NewAdapted returns the model cfg.Base with the parameters base and adapters as cfg has them. It
// retains base.
func NewAdapted(cfg Config, pool *exact.Pool, base []float32) (*Adapted, error) {
	if cfg.LoRA == (LoRA{}) {
		return nil, fmt.Errorf("model: it has no adapters")
	}
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if n := cfg.Base().Layout().Len(); len(base) != n {
		return nil, fmt.Errorf("model: the base has %d parameters, but adapters are for one of %d", len(base), n)
	}
	most := 0
	for i := range targetNames {
		_, in := cfg.targetShape(i)
		most = max(most, in)
	}
	return &Adapted{
		cfg: cfg, pool: pool, base: base, merged: slices.Clone(base), adapters: cfg.Adapters(), tensors: cfg.Layout().Tensors(),
		scaled: make([]float32, cfg.LoRA.Rank*most),
	}, nil
}

// Base returns the parameters of the frozen model.
func (a *Adapted) Base() []float32 { return a.base }

// each calls f with every matrix W (out, in), its S, A and B.
func (a *Adapted) each(adapters []float32, f func(i int, at Adapter, s, matB []float32, out, in int)) {
	for i, at := range a.adapters {
		out, in := at.W.Shape[0], at.W.Shape[1]
		s := a.scaled[:a.cfg.LoRA.Rank*in]
		scale(s, a.tensors[at.A].Of(adapters), a.cfg.LoRA.Scale())
		f(i, at, s, a.tensors[at.B].Of(adapters), out, in)
	}
}

// scale computes y = by·x.
func scale(y, x []float32, by float32) {
	for i, v := range x {
		y[i] = float32(by * v)
	}
}

// Merge returns the parameters of the whole model with the given adapters, which are valid until
// the next Merge.
func (a *Adapted) Merge(adapters []float32) []float32 {
	r := a.cfg.LoRA.Rank
	a.each(adapters, func(_ int, at Adapter, s, matB []float32, out, in int) {
		w := at.W.Of(a.merged)
		copy(w, at.W.Of(a.base))
		exact.Gemm(a.pool, out, in, r, matB, r, 1, s, in, 1, w, in, true)
	})
	return a.merged
}

// Gradient sets dst to the gradient of the adapters, where grad is that of the whole model with
// them. The error wraps ErrNotFinite and names the first tensor whose gradient is not finite.
func (a *Adapted) Gradient(dst, adapters, grad []float32) error {
	r, by := a.cfg.LoRA.Rank, a.cfg.LoRA.Scale()
	a.each(adapters, func(_ int, at Adapter, s, matB []float32, out, in int) {
		g, dA := at.W.Of(grad), a.tensors[at.A].Of(dst)
		exact.Gemm(a.pool, out, r, in, g, in, 1, s, 1, in, a.tensors[at.B].Of(dst), r, false)
		exact.Gemm(a.pool, r, in, out, matB, 1, r, g, in, 1, dA, in, false)
		scale(dA, dA, by)
	})
	if i := exact.Finite(dst); i >= 0 {
		at := slices.IndexFunc(a.tensors, func(t tensor.Tensor) bool { return i < t.Offset+t.Len })
		t := a.tensors[at]
		return fmt.Errorf("element %d of the gradient of %q is %g: %w", i-t.Offset, t.Name, dst[i], ErrNotFinite)
	}
	return nil
}

// deviationA returns the standard deviation of the elements of A at the beginning, that of PEFT's:
// Kaiming's uniform distribution with a = √5, between ±1/√in.
func deviationA(in int) float32 { return exact.Sqrt(1 / float32(3*in)) }

// alphaOf returns alpha if it is given, or twice the rank, which is customary.
func alphaOf(rank int, alpha float64) float32 {
	if alpha == 0 {
		return 2 * float32(rank)
	}
	return float32(math.Min(alpha, math.MaxFloat32))
}

// NewLoRA returns adapters of a rank for the matrices with the given names, or for all if there are
// none. An alpha of 0 is twice the rank.
func NewLoRA(rank int, alpha float64, targets []string) (LoRA, error) {
	l := LoRA{Rank: rank, Alpha: alphaOf(rank, alpha), Targets: AllTargets}
	if len(targets) == 0 {
		return l, nil
	}
	var err error
	l.Targets, err = ParseTargets(targets)
	return l, err
}
