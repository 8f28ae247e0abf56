package vulkan

import (
	"testing"

	"github.com/entrain-network/entrain/llama"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// adapting are inner steps of adapters.
var adapting = func() method {
	m := innerSteps
	m.lora = llama.LoRA{Rank: 3, Alpha: 5, Targets: llama.AllTargets}
	return m
}()

// frozenOf returns the copies of a frozen model's matrices.
func frozenOf(m *Model) (all []part) {
	for _, x := range m.m.adapters.all {
		all = append(all, part{x.from, x.frozen.First(x.out * x.in)})
	}
	return all
}

// In a run of adapters the frozen model goes to the device once, and only adapters and their state
// come back.
func TestAdaptersStayOnTheDevice(t *testing.T) {
	some := gradients
	some.lora = llama.LoRA{Rank: 2, Alpha: 4, Targets: 1<<3 | 1<<5}
	for name, by := range map[string]method{"distro, some matrices": some, "sparseloco, all": adapting} {
		model := codedModel(t, by)
		plain, on := coded(t, by, nil, nil), coded(t, by, model, func(err error) { t.Error(err) })
		adapters, whole := uint64(4*by.model().Layout().Len()), uint64(4*small.Layout().Len())
		for round := range uint32(4) {
			before := model.Traffic()
			on.round(t, round+1)
			plain.round(t, round+1)
			if !on.same(plain) {
				t.Fatalf("%s, round %d: other bits than the processors'", name, round)
			}
			moved := model.Traffic().Since(before)
			t.Logf("%s, round %d: %d bytes there and %d back, of %d of adapters and %d of the model", name, round, moved.To, moved.From, adapters, whole)
			to := 20*uint64(model.words()) + 16<<10
			if round == 0 {
				to += 4 * adapters
			}
			if moved.To > to {
				t.Errorf("%s, round %d: %d bytes there, want at most %d", name, round, moved.To, to)
			}
		}
	}
}
