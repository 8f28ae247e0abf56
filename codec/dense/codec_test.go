package dense

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/codec/codectest"
)

func TestCodec(t *testing.T) {
	for _, o := range []Config{
		{WeightDecay: .1, ClipNorm: 2},
		{},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) { codectest.Test(t, o) })
	}
}
