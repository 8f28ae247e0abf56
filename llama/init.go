package llama

import (
	"strings"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Init returns a run's initial parameters. The same seed gives the same parameters on every
// machine.
//
// Gains are 1 and biases 0. Matrices are random, independent for each tensor's name, with mean 0
// and a standard deviation of √(2/(5·Hidden)) (T. Nguyen and J. Salazar, "Transformers without
// Tears", 2019). For o_proj and down_proj, which add to the residual stream, it is divided by
// √(2·Layers), so that the stream does not grow with depth (A. Radford et al., "Language Models are
// Unsupervised Multitask Learners", 2019, §2.3). For embeddings it is 0.02. Each value is the sum
// of four uniform 16-bit numbers, shifted and scaled: close to normal, never beyond 3.5 standard
// deviations, and exact in integers. With LoRA, B is 0, so that a run begins with the frozen model,
// and A random with a standard deviation of √(1/(3·in)), as in PEFT. Init panics if cfg.Check finds
// a fault.
func Init(cfg Config, seed wire.Hash) []float32 {
	params := exact.Make[float32](cfg.Layout().Len())
	for _, t := range cfg.Layout().Tensors() {
		filling(cfg, t, seed)(t.Of(params))
	}
	return params
}

// InitParts calls part with the parameters that Init returns, some at a time and in order. It does
// not hold more of them than that; part must not keep them.
func InitParts(cfg Config, seed wire.Hash, part func([]float32)) {
	buffer := make([]float32, min(initPart, cfg.Layout().Len()))
	for _, t := range cfg.Layout().Tensors() {
		fill := filling(cfg, t, seed)
		for left := t.Len; left > 0; {
			x := buffer[:min(left, len(buffer))]
			fill(x)
			part(x)
			left -= len(x)
		}
	}
}

// initPart is the number of parameters that InitParts makes at once.
const initPart = 1 << 20

// filling returns what fills a tensor: each call goes on where the one before ended.
func filling(cfg Config, t tensor.Tensor, seed wire.Hash) func([]float32) {
	base := exact.Sqrt(2 / float32(5*cfg.Hidden))
	switch {
	case strings.HasSuffix(t.Name, ".bias"), strings.HasSuffix(t.Name, adapterB):
		return func(x []float32) { clear(x) }
	case strings.HasSuffix(t.Name, adapterA):
		return randomize(deviationA(t.Shape[1]), seed, t.Name)
	case len(t.Shape) == 1:
		return func(x []float32) {
			for i := range x {
				x[i] = 1
			}
		}
	case strings.HasSuffix(t.Name, "embed_tokens.weight"):
		return randomize(0.02, seed, t.Name)
	case strings.HasSuffix(t.Name, "o_proj.weight"), strings.HasSuffix(t.Name, "down_proj.weight"):
		return randomize(base/exact.Sqrt(float32(2*cfg.Layers)), seed, t.Name)
	}
	return randomize(base, seed, t.Name)
}

// randomize returns what fills a tensor with random values of a standard deviation.
func randomize(deviation float32, seed wire.Hash, name string) func(x []float32) {
	const (
		mean  = 2 * 0xffff             // mean of the sum of four numbers from 0 to 65535
		sigma = 37837.22724647748      // its standard deviation, √((2^32-1)/3)
		label = "entrain/llama/weight" // separates this use of the seed from others
	)
	source := prng.New(seed, label+" "+name)
	unit := deviation / sigma
	return func(x []float32) {
		for i := range x {
			u := source.Uint64()
			sum := int32(u&0xffff) + int32(u>>16&0xffff) + int32(u>>32&0xffff) + int32(u>>48)
			x[i] = float32(float32(sum-mean) * unit)
		}
	}
}
