package distro

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/codec/codectest"
)

func TestCodec(t *testing.T) {
	for _, o := range []Config{
		{Block: 16, TopK: 4, Decay: .97, WeightDecay: .05, ClipNorm: 3},
		{Block: 64, TopK: 32, Decay: .95, WeightDecay: .1, ClipNorm: 1},
		{Block: 17, TopK: 3, Decay: .5, WeightDecay: .1, ClipNorm: .1},
		{Block: 128, TopK: 64, Decay: 1, VotesMax: 2},
		{Block: 1, TopK: 1},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) { codectest.Test(t, o) })
	}
}
