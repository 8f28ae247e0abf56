package slice

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/codec/codectest"
)

func TestCodec(t *testing.T) {
	for _, o := range []Config{
		{Compression: 5, Leaf: 16, Decay: 1, WeightDecay: .1, ClipNorm: 1},
		{Compression: 7, Leaf: 64, Decay: .9},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) { codectest.Test(t, o) })
	}
}
