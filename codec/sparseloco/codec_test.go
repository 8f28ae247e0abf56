package sparseloco

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/codec/codectest"
)

func TestCodec(t *testing.T) {
	for _, o := range []Options{
		{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 1, InnerSteps: 2},
		{Chunk: 4096, TopK: 64, Decay: .95, OuterRate: .9, InnerSteps: 1, WeightDecay: .1, ClipNorm: 1},
		{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 2, InnerSteps: 3, InnerOptimizer: InnerMuon},
		{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 1, InnerSteps: 2, ClipChunks: 3},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) { codectest.Test(t, o) })
	}
}
