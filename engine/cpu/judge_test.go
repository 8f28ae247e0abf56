package cpu

import (
	"errors"
	"math"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
)

func TestTheGradientOfAShareIsThatOfItsStep(t *testing.T) {
	spans := []batch.Span{{Start: 3, Count: 5}, {Start: 100, Count: 4}}
	a, b := newEngine(t, 1, 4, counted{}), newEngine(t, 2, 3, counted{})
	step, err := a.Step(t.Context(), Floats(initial()), Floats(make([]float32, a.StateLen())), spans, 3)
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Gradient(t.Context(), Floats(initial()), spans)
	if err != nil {
		t.Fatal(err)
	}
	// A loss is of parts as large as fit, each rounded.
	if g.Root != step.Gradient || math.Abs(float64(g.Loss-step.Loss)) > 1e-6*float64(step.Loss) {
		t.Errorf("root %s and loss %v, in the step they are %s and %v", g.Root, g.Loss, step.Gradient, step.Loss)
	}
	if merkle.BlobRoot(tensor.Bytes(engine.Values(g.Values))) != g.Root {
		t.Error("the root is not that of the values")
	}
	if _, err := b.Gradient(t.Context(), Floats(initial()), nil); err == nil {
		t.Error("there is a gradient of no sequences")
	}
}

func TestTheLossOfSpansIsTheMeanOfTheirSequences(t *testing.T) {
	e := newEngine(t, 1, 4, counted{})
	spans := []batch.Span{{Start: 3, Count: 5}, {Start: 100, Count: 4}}
	got, err := e.Loss(t.Context(), Floats(initial()), spans)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			l, err := e.Loss(t.Context(), Floats(initial()), []batch.Span{{Start: i, Count: 1}})
			if err != nil {
				t.Fatal(err)
			}
			sum += l
		}
	}
	if math.Abs(got-sum/9) > 1e-6 || got <= 0 {
		t.Errorf("loss %v, mean of the sequences %v", got, sum/9)
	}
	if _, err := e.Loss(t.Context(), Floats(initial()), nil); err == nil {
		t.Error("there is a loss on no sequences")
	}
	e = newEngine(t, 1, 4, counted{missing: 101})
	if _, err := e.Loss(t.Context(), Floats(initial()), spans); !errors.Is(err, errMissing) {
		t.Errorf("missing data: %v", err)
	}
}
