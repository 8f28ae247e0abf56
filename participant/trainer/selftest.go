package trainer

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// selfTestHash is the hash of the self-test's outcome. It is part of the definition of the exact
// arithmetic, and changes only with it.
const selfTestHash = "2f2b58beb08b4f6a42d4b4e31159e6f26be98f9d21d0bea8c720e5a78f8ede48"

// SelfTest trains a tiny model for a few steps and compares the resulting bits with those that
// every machine must reach. A machine that misses them (broken memory, an overclocked processor, a
// compiler's fault) would only produce results that get rejected.
func SelfTest(ctx context.Context, o cpu.Options) error {
	got, err := selfTestRun(ctx, o)
	if err != nil {
		return fmt.Errorf("self-test of the arithmetic: %w", err)
	}
	if got.String() != selfTestHash {
		return fmt.Errorf("self-test of the arithmetic: this machine computes %s where all others compute %s; "+
			"its results would be refused: check its memory and cooling, undo overclocking, and if that does not help report it with the output of entrain --version",
			got, selfTestHash)
	}
	return nil
}

// selfTestRun computes the hash of parameters, optimizer state and payloads after a few steps.
func selfTestRun(ctx context.Context, o cpu.Options) (wire.Hash, error) {
	// No kernel's tile divides these sizes, so the edges are computed too.
	const steps, sequence = 3, 37
	o.Micro = 3
	model := llama.Config{Vocab: 61, Hidden: 40, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 10, FFN: 88, Context: 64, Theta: 10000, Eps: 1e-5, Tied: true}
	seed := wire.Sum("entrain/self-test")
	codec := distro.Config{Block: 16, TopK: 4, Decay: 0.9, WeightDecay: 0.1, ClipNorm: 1}
	schedule := optim.Schedule{Kind: optim.Cosine, Base: 1e-2, WarmupSteps: 1, Steps: steps, Final: 1e-3}
	e, err := cpu.New(engine.Run{Model: model, Codec: codec, Schedule: schedule,
		Data: randomTokens{seed, model.Vocab}, Sequence: sequence}, o)
	if err != nil {
		return wire.Hash{}, err
	}
	defer e.Close()
	params := llama.Init(model, seed)
	state := make([]float32, e.StateLen())
	var sent [][]byte
	for step := uint32(1); step <= steps; step++ {
		spans := []batch.Span{{Start: uint64(step) * 10, Count: 5}}
		r, err := e.Step(ctx, cpu.Floats(params), cpu.Floats(state), spans, step)
		if err != nil {
			return wire.Hash{}, err
		}
		if err := e.Apply(cpu.Floats(params), [][]byte{r.Payload}, step); err != nil {
			return wire.Hash{}, err
		}
		sent = append(sent, r.Payload)
	}
	tree := []wire.Hash{merkle.BlobRoot(tensor.Bytes(params)), merkle.BlobRoot(tensor.Bytes(state))}
	for _, payload := range sent {
		tree = append(tree, merkle.BlobRoot(payload))
	}
	return merkle.Root(tree), nil
}

// randomTokens is a data set made from a seed.
type randomTokens struct {
	seed  wire.Hash
	vocab int
}

func (r randomTokens) Read(i uint64, dst []uint32) error {
	source := prng.New(r.seed, fmt.Sprintf("sequence %d", i))
	for k := range dst {
		dst[k] = uint32(source.Uint64n(uint64(r.vocab)))
	}
	return nil
}
