package web

import (
	"context"
	"testing"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// writeCheckpoint writes a checkpoint of a very small model of step 10 to a directory.
func writeCheckpoint(t testing.TB, dir string) {
	t.Helper()
	m := llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 16, Context: 32, Theta: 10_000, Eps: 1e-5, Tied: true}
	err := atomicfile.WriteDir(context.Background(), dir, func(create atomicfile.Create) error {
		_, err := checkpoint.Write(create, checkpoint.Model{
			Run: stageRun, Epoch: 1, Round: 11, Step: 10, Tokenizer: tokenizer.Bytes{}, Layout: m.Layout(), Params: llama.Init(m, wire.Sum("test/seed")),
			Config: checkpoint.Config{Vocab: m.Vocab, Hidden: m.Hidden, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim,
				FFN: m.FFN, Context: m.Context, Theta: m.Theta, Eps: m.Eps, Tied: m.Tied},
		}, checkpoint.Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
