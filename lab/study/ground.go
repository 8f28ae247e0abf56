package study

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/internal/opticks"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// ground is what the runs of a comparison share: a text as sequences of bytes, partly held out, and
// an untrained model.
type ground struct {
	model    llama.Config
	sequence int // tokens of a sequence that are trained on
	heldOut  uint64
	pool     *exact.Pool
	dir      string
	manifest wire.Hash
	set      *data.Set
	start    []float32
}

// heldOutPermille is the held-out share of the text.
const heldOutPermille = 50

// newGround prepares a text. The caller closes it. The first parameters follow from the seed; "" is
// that of specifications.
func newGround(ctx context.Context, text string, model llama.Config, sequence int, heldOut uint64, threads int, seed string) (g *ground, err error) {
	g = &ground{model: model, sequence: sequence, pool: exact.NewPool(threads)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
			g = nil
		}
	}()
	if g.dir, err = os.MkdirTemp("", "entrain-bench-"); err != nil {
		return g, err
	}
	if text == "" {
		if text, err = opticks.Write(g.dir); err != nil {
			return g, err
		}
	}
	format, err := source.DetectFormat(text)
	if err != nil {
		return g, err
	}
	m, err := data.Prepare(ctx, g.dir, []string{text}, data.PrepareOptions{Name: "bench", Tokenizer: tokenizer.Bytes{}, Format: format, HeldOutPermille: heldOutPermille})
	if err != nil {
		return g, err
	}
	g.manifest = m.Hash()
	if g.set, err = data.Open(ctx, g.dir, g.manifest, data.Options{SequenceTokens: uint32(sequence), Seed: spec.Default(all.Kinds()).DataSeed()}); err != nil {
		return g, err
	}
	g.heldOut = min(heldOut, g.set.HeldOut().Len())
	g.start = llama.Init(model, wire.Sum("entrain/model-seed", []byte(cmp.Or(seed, spec.Default(all.Kinds()).Model.Seed))))
	return g, nil
}

func (g *ground) close() error {
	if g.set != nil {
		g.set.Close()
	}
	g.pool.Close()
	if g.dir == "" {
		return nil
	}
	return os.RemoveAll(g.dir)
}

// engine returns an engine that trains on the ground's text.
func (g *ground) engine(c codec.Options, rates optim.Schedule, inner *optim.Inner) (*cpu.Engine, error) {
	if err := rates.Check(); err != nil {
		return nil, err
	}
	return cpu.New(engine.Run{
		Model: g.model, Codec: c, Schedule: rates, Inner: inner, Data: g.set, HeldOut: g.set.HeldOut(),
		HeldOutSequences: g.heldOut, Sequence: g.sequence,
	}, cpu.Options{Workers: g.pool.Workers(), Micro: 8})
}

// fresh returns a copy of the initial parameters.
func (g *ground) fresh() []float32 { return append([]float32(nil), g.start...) }
