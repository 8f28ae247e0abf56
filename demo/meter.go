package demo

import (
	"context"

	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/wire"
)

// paragraphTokens is the length of the demo's sample.
const paragraphTokens = 400

// final returns the held-out loss of the model in a checkpoint, and a paragraph by it.
func final(ctx context.Context, t *trainer.Trainer, dir string) (loss float32, text string, err error) {
	g := model.Generator{Sampling: llama.Sampling{Temperature: 0.7, TopK: 40}, Seed: wire.Sum("entrain/demo")}
	if err := g.Open(dir); err != nil {
		return 0, "", err
	}
	if loss, err = t.Engine.HeldOut(ctx, cpu.Floats(g.Params)); err != nil {
		return 0, "", err
	}
	text, err = g.Text(ctx, "The rays of light ", paragraphTokens, nil)
	return loss, text, err
}
